// SPDX-License-Identifier: Apache-2.0

package semconv

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/internal/text"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Writer writes attributes. It leaves out absent values instead of writing empty strings. It bounds
// texts, because some are put together from bounded ones.
type Writer pcommon.Map

// String writes a value unless it is empty. It replaces an existing value.
func (w Writer) String(name, value string) {
	if value != "" {
		pcommon.Map(w).PutStr(name, text.Value(value))
	}
}

// StringIfNew writes a value unless it is empty or the name already exists.
func (w Writer) StringIfNew(name, value string) {
	name = text.Value(name)
	if _, there := pcommon.Map(w).Get(name); !there {
		w.String(name, value)
	}
}

// Int writes a number.
func (w Writer) Int(name string, value int64) { pcommon.Map(w).PutInt(name, value) }

// Time writes a time in RFC 3339, unless it is zero.
func (w Writer) Time(name string, t time.Time) {
	if !t.IsZero() {
		w.String(name, t.UTC().Format(time.RFC3339Nano))
	}
}

// Strings writes a list of strings, unless it is empty.
func (w Writer) Strings(name string, values []string) {
	if len(values) == 0 {
		return
	}
	slice := pcommon.Map(w).PutEmptySlice(name)
	slice.EnsureCapacity(len(values))
	for _, value := range values {
		slice.AppendEmpty().SetStr(text.Value(value))
	}
}

// Disabled has the attributes that users do not want; nil: none.
type Disabled map[string]bool

// RemoveFrom removes the attributes that are disabled.
func (d Disabled) RemoveFrom(attributes pcommon.Map) {
	if len(d) > 0 {
		attributes.RemoveIf(func(name string, _ pcommon.Value) bool { return d[name] })
	}
}

// Cluster names a cluster.
type Cluster struct {
	UID  string // of the namespace kube-system; empty: it is not known
	Name string // as configured; empty: it has none
}

// Cluster writes which cluster something is in.
func (w Writer) Cluster(c Cluster) {
	w.String("k8s.cluster.uid", c.UID)
	w.String("k8s.cluster.name", c.Name)
}

// Object writes k8s.<kind>.name and .uid of an object whose kind the conventions name. If two
// objects have the same kind, the first one stays.
func (w Writer) Object(o *resolver.Object) {
	names, ok := Of(o.GroupKind())
	if !ok {
		return
	}
	if _, there := pcommon.Map(w).Get(names.Name); there {
		return
	}
	w.String(names.Name, o.Name)
	if names.UID != "" {
		w.String(names.UID, string(o.UID))
	}
}

// Identity holds the names of the attributes for an object in a certain role.
type Identity struct{ apiVersion, kind, name, uid string }

// The roles of objects on a chain.
var (
	Owner    = identity("k8s.owner")
	Workload = identity("k8s.workload")
)

func identity(prefix string) Identity {
	return Identity{prefix + ".api_version", prefix + ".kind", prefix + ".name", prefix + ".uid"}
}

// Identity writes api_version, kind, name and uid of an object.
func (w Writer) Identity(names Identity, o *resolver.Object) {
	w.String(names.apiVersion, o.APIVersion)
	w.String(names.kind, o.Kind)
	w.String(names.name, o.Name)
	w.String(names.uid, string(o.UID))
}

// Owners writes the owners of a chain's first object, and the workload, if they are known.
func (w Writer) Owners(chain resolver.Chain) {
	owners := chain.Objects[1:]
	if len(owners) > 0 {
		w.Identity(Owner, owners[0])
		names := make([]string, len(owners))
		for i, owner := range owners {
			names[i] = QualifiedName(owner)
		}
		w.Strings("k8s.owner.chain", names)
	}
	if end := chain.End(); end != nil {
		w.Identity(Workload, end)
	}
}

// QualifiedName returns kind.group/name as kubectl writes it, without a group for core kinds.
func QualifiedName(o *resolver.Object) string {
	kind := strings.ToLower(o.Kind)
	if group := o.GroupKind().Group; group != "" {
		return kind + "." + group + "/" + o.Name
	}
	return kind + "/" + o.Name
}
