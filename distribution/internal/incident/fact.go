// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// The bounds of texts: anybody may write any text into an Event.
const (
	maxMessage = 1024
	maxName    = 256 // bytes; no name or reason of Kubernetes is longer
	maxChain   = 32  // objects
	maxMoments = 32  // of a fact
)

// Object is a Kubernetes object with the name that kubectl uses.
type Object struct{ Kind, Group, Name string }

// String returns the form of kubectl: replicaset.apps/fe-649447bf8.
func (o Object) String() string { return o.GroupKind() + "/" + o.Name }

// GroupKind returns the kind with its group: replicaset.apps.
func (o Object) GroupKind() string {
	if o.Group == "" {
		return o.Kind
	}
	return o.Kind + "." + o.Group
}

// Key identifies a workload by its name: one that was deleted and created again is the same. The namespace
// of an object without one is empty.
type Key struct {
	Cluster, Namespace string
	Top                Object
}

// ID returns an id for addresses. Nobody can compute a name that has the id of another workload: it
// is cut from SHA-256 over the parts with their lengths.
func (k Key) ID() string {
	var content []byte
	for _, part := range []string{k.Cluster, k.Namespace, k.Top.Kind, k.Top.Group, k.Top.Name} {
		content = append(binary.BigEndian.AppendUint64(content, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(content)
	return "w" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))
}

// MarshalJSON writes the parts of the key, and its id.
func (k Key) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ID        string `json:"id"`
		Cluster   string `json:"cluster,omitempty"`
		Namespace string `json:"namespace,omitempty"`
		Kind      string `json:"kind"`
		Group     string `json:"group,omitempty"`
		Name      string `json:"name"`
	}{k.ID(), k.Cluster, k.Namespace, k.Top.Kind, k.Top.Group, k.Top.Name})
}

// compare compares the ids. They are hashes, so that callers compare everything else first.
func (k Key) compare(other Key) int {
	if k == other {
		return 0
	}
	return cmp.Compare(k.ID(), other.ID())
}

// Fact is one Event in its newest state.
type Fact struct {
	Event     string // the Event's UID
	Record    string // log.record.uid of its newest record
	Type      string // any type but Normal counts as a warning
	Reason    string
	Kind      string // what the reason and the message mean: see rollout.KindOf
	Message   string
	Reporter  string
	Key       Key      // of the workload
	Workload  string   // its key in rollout.Model; empty: it has none
	Chain     []Object // from the workload down to the object of the Event; never empty
	Pod       string   // the pod's UID; empty: the Event is about another object
	Revision  string
	Container string
	Init      bool
	Node      string
	Related   string // the name of the related object, such as the pod that preempts
	Manifest  string // tilt.manifest
	Count     int64  // occurrences in all
	First     time.Time
	Last      time.Time
	Moments   []Moment // when records said that it occurred, the oldest first
}

// Moment is a time at which an Event occurred, so many times since the moment before.
type Moment struct {
	At time.Time
	N  int64
}

// Object is the object of the Event.
func (f *Fact) Object() Object { return f.Chain[len(f.Chain)-1] }

// IsWarning reports whether the type is not Normal.
func (f *Fact) IsWarning() bool { return f.Type != "Normal" }

// factsIn returns a fact for each record of an Event.
func factsIn(logs plog.Logs, now time.Time) (all []*Fact) {
	for _, resource := range logs.ResourceLogs().All() {
		attributes := resource.Resource().Attributes()
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				if record.EventName() == "k8s.event" {
					all = append(all, factOf(attributes, record, now))
				}
			}
		}
	}
	return all
}

func factOf(resource pcommon.Map, record plog.LogRecord, now time.Time) *Fact {
	event, key := record.Attributes(), rollout.KeyOf(resource)
	at := bounded(rollout.TimeOf(cmp.Or(record.Timestamp(), record.ObservedTimestamp())), now)
	f := &Fact{
		Event: text(event, "k8s.event.uid"), Record: text(event, "log.record.uid"),
		Type: rollout.Cut(record.SeverityText(), maxName), Reason: text(event, "k8s.event.reason"),
		Message: rollout.Cut(record.Body().AsString(), maxMessage), Reporter: text(event, "k8s.event.reporting_controller"),
		Workload: rollout.Cut(key.Workload, 2*maxName), Chain: chainOf(resource), Pod: podOf(resource),
		Revision:  rollout.Cut(key.Revision, 2*maxName),
		Container: text(resource, "k8s.container.name"), Init: strings.Contains(text(event, "k8s.object.fieldpath"), "initContainers"),
		Node: nodeOf(resource, record), Related: text(event, "k8s.event.related.name"), Manifest: text(resource, "tilt.manifest"),
		Count: max(1, rollout.Number(event, "k8s.event.count")), First: at, Last: at,
		Moments: []Moment{{at, min(max(1, rollout.Number(event, "k8s.event.occurrences")), maxCount)}},
	}
	f.Count = min(f.Count, maxCount)
	f.Kind = rollout.KindOf(f.Reason, f.Message)
	f.Key = Key{
		Cluster:   cmp.Or(text(resource, "k8s.cluster.uid"), text(resource, "k8s.cluster.name")),
		Namespace: text(resource, "k8s.namespace.name"), Top: f.Chain[0],
	}
	if since, err := time.Parse(time.RFC3339Nano, text(event, "k8s.event.start_time")); err == nil && f.Count > 1 && since.Before(at) {
		f.First = rollout.Bounded(since.UTC())
	}
	return f
}

// maxCount bounds counts, so that sums of what anybody writes do not overflow.
const maxCount = 1 << 40

// bounded returns a time that is not in the future: the clock of a producer can be ahead.
func bounded(at, now time.Time) time.Time {
	if at.After(now) {
		return now
	}
	return at
}

// assigned matches the message of the scheduler: its Events have no node.
var assigned = regexp.MustCompile(`^Successfully assigned \S+ to (\S+)$`)

func nodeOf(resource pcommon.Map, record plog.LogRecord) string {
	if match := assigned.FindStringSubmatch(record.Body().AsString()); match != nil && text(resource, "k8s.object.kind") == "Pod" {
		return rollout.Cut(match[1], maxName)
	}
	return text(resource, "k8s.node.name")
}

func podOf(resource pcommon.Map) string {
	if text(resource, "k8s.object.kind") != "Pod" || strings.Contains(text(resource, "k8s.object.api_version"), "/") {
		return ""
	}
	return cmp.Or(text(resource, "k8s.pod.uid"), text(resource, "k8s.object.uid"))
}

// chainOf returns the owners in reverse order, and then the involved object. The record has the
// nearest owner first.
func chainOf(resource pcommon.Map) (chain []Object) {
	if owners, ok := resource.Get("k8s.owner.chain"); ok && owners.Type() == pcommon.ValueTypeSlice {
		last := owners.Slice().Len() - 1
		for i, owner := range owners.Slice().All() {
			if i >= maxChain && i < last {
				continue // The end of the chain is the workload.
			}
			kind, name, _ := strings.Cut(rollout.Cut(owner.AsString(), 3*maxName), "/")
			kind, group, _ := strings.Cut(kind, ".")
			chain = append(chain, Object{kind, group, name})
		}
	}
	slices.Reverse(chain)
	involved, top := objectIn(resource, "k8s.object."), objectIn(resource, "k8s.workload.")
	if len(chain) == 0 && top.Name != "" && (top.Kind != involved.Kind || top.Name != involved.Name) {
		chain = []Object{top} // The records have no chain.
	}
	return append(chain, involved)
}

// objectIn returns the object that attributes with this prefix describe.
func objectIn(resource pcommon.Map, prefix string) Object {
	group, _, named := strings.Cut(text(resource, prefix+"api_version"), "/")
	if !named {
		group = ""
	}
	return Object{strings.ToLower(text(resource, prefix+"kind")), group, text(resource, prefix+"name")}
}

func text(m pcommon.Map, key string) string { return rollout.Cut(rollout.Text(m, key), maxName) }

// join adds a newer record of the same Event. One with a count that is known repeats a record.
func (f *Fact) join(newer *Fact) (isNew bool) {
	if newer.Count <= f.Count {
		return false
	}
	first, moments := f.First, slices.Concat(f.Moments, newer.Moments)
	if newer.First.Before(first) {
		first = newer.First
	}
	last := f.Last
	*f = *newer
	f.First, f.Moments = first, moments
	if last.After(f.Last) {
		f.Last = last
	}
	if len(f.Moments) > maxMoments {
		f.Moments = withoutNearest(f.Moments)
	}
	return true
}

// withoutNearest joins the two moments with the shortest time between them, so that no pause appears that was none.
func withoutNearest(moments []Moment) []Moment {
	nearest := 1
	for i := 2; i < len(moments); i++ {
		if moments[i].At.Sub(moments[i-1].At) < moments[nearest].At.Sub(moments[nearest-1].At) {
			nearest = i
		}
	}
	moments[nearest-1].N += moments[nearest].N
	return slices.Delete(moments, nearest, nearest+1)
}

// part returns the object below the workload that rolls out by itself, of a custom resource that owns several; zero:
// there is none.
func (f *Fact) part() (part Object) {
	if len(f.Chain) > 2 && slices.Contains([]string{"deployment.apps", "statefulset.apps", "daemonset.apps"}, f.Chain[1].GroupKind()) {
		return f.Chain[1]
	}
	return part
}

// size is about how many bytes the fact takes in memory.
func (f *Fact) size() int {
	size := 512 + len(f.Message) + len(f.Event) + len(f.Record) + len(f.Workload) + len(f.Revision)
	for _, o := range f.Chain {
		size += 48 + len(o.Name) + len(o.Group) + len(o.Kind)
	}
	return size
}
