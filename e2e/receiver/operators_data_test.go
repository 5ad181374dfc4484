// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// operator is a file in testdata/operators.
type operator struct {
	Operator    string
	Integration string // in the chart's rbac.integrations; empty: it has none
	Kinds       []operatorKind
	Objects     []operatorObject // an owner before what it owns
	Events      []operatorEvent

	name    string // of the file, and of the namespace
	kinds   map[string]operatorKind
	objects map[string]*operatorObject // by kind and name
}

// operatorKind is a kind of kinds.yaml, or one that an operator defines.
type operatorKind struct {
	Kind, APIVersion, Plural string
	Scope                    string         // Namespaced if it is empty
	Spec                     map[string]any // of objects without one
}

func (k operatorKind) group() string { return k.APIVersion[:max(0, strings.Index(k.APIVersion, "/"))] }

// namespace is that of the operator, unless the kind has none.
func (k operatorKind) namespace(o *operator) string {
	if k.Scope != "" {
		return ""
	}
	return o.name
}

// operatorObject names objects by kind and name, such as "Pod web-0".
type operatorObject struct {
	Object       string
	GenerateName string
	Controller   string
	Owners       []string // those that do not control
	Annotations  map[string]string
	Spec         map[string]any

	uid types.UID
}

// owner returns the owner that the receiver must follow; empty: there is none.
func (o *operatorObject) owner() string {
	if o.Controller == "" && len(o.Owners) > 0 {
		return o.Owners[0]
	}
	return o.Controller
}

// operatorEvent is one that a recorder of events.k8s.io writes if it has an action.
type operatorEvent struct {
	About                   string
	UID                     types.UID // if the writer does not know the object's UID
	Type, Reason            string
	From, Action, Container string
	Count                   int32
	EveryRight, Chart       outcome // Chart: the same if it is empty

	name string
}

// outcome is "RESOLUTION KIND NAME": the resolution and the workload of the record. If the metric
// has another name, "as NAME" follows; "as -" means that the metric has no name.
type outcome struct{ resolution, kind, name, metric string }

func (o *outcome) UnmarshalText(text []byte) error {
	switch fields := strings.Fields(string(text)); {
	case len(fields) == 3:
		*o = outcome{fields[0], fields[1], fields[2], fields[2]}
	case len(fields) == 5 && fields[3] == "as":
		*o = outcome{fields[0], fields[1], fields[2], strings.TrimPrefix(fields[4], "-")}
	default:
		return fmt.Errorf("%q is not RESOLUTION KIND NAME or RESOLUTION KIND NAME as NAME", text)
	}
	return nil
}

// readOperators reads all operators.
func readOperators(t *testing.T) (all []*operator) {
	t.Helper()
	var builtin []operatorKind
	require.NoError(t, yaml.UnmarshalStrict([]byte(harness.Read(t, "e2e", "receiver", "testdata", "kinds.yaml")), &builtin))
	paths, err := filepath.Glob("testdata/operators/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		o := &operator{name: strings.TrimSuffix(filepath.Base(path), ".yaml"), kinds: map[string]operatorKind{}, objects: map[string]*operatorObject{}}
		require.NoError(t, yaml.UnmarshalStrict(text, o), path)
		require.NotEmpty(t, o.Operator, path)
		for _, k := range append(builtin, o.Kinds...) {
			o.kinds[k.Kind] = k
		}
		for i := range o.Objects {
			o.objects[o.Objects[i].Object] = &o.Objects[i]
		}
		for i := range o.Events {
			e := &o.Events[i]
			e.name = fmt.Sprintf("%s.%d", o.name, i)
			e.Type, e.Count = cmp.Or(e.Type, corev1.EventTypeWarning), max(e.Count, 1)
			e.Chart = cmp.Or(e.Chart, e.EveryRight)
		}
		all = append(all, o)
	}
	return all
}

// split returns the kind and the name of an object.
func (o *operator) split(t *testing.T, text string) (kind operatorKind, name string) {
	t.Helper()
	kindName, name, _ := strings.Cut(text, " ")
	require.Contains(t, o.kinds, kindName, o.name)
	return o.kinds[kindName], name
}

// path returns the objects from the one that an event is about to its workload.
func (o *operator) path(t *testing.T, about string, expected outcome) (path []string) {
	t.Helper()
	for workload := expected.kind + " " + expected.name; ; about = o.objects[about].owner() {
		require.Contains(t, o.objects, about, "%s: no way to %s %v", o.name, workload, path)
		path = append(path, about)
		if about == workload {
			return path
		}
	}
}

func (o *operator) manifest(t *testing.T, described operatorObject) *object {
	t.Helper()
	k, name := o.split(t, described.Object)
	manifest := &object{Object: map[string]any{"apiVersion": k.APIVersion, "kind": k.Kind}}
	manifest.SetName(name)
	manifest.SetGenerateName(described.GenerateName)
	manifest.SetAnnotations(described.Annotations)
	manifest.SetNamespace(k.namespace(o))
	if described.Spec == nil {
		described.Spec = k.Spec
	}
	if described.Spec != nil {
		manifest.Object["spec"] = described.Spec
	}
	var owners []metav1.OwnerReference
	for _, owner := range append(described.Owners, described.Controller) {
		if owner != "" {
			k, name := o.split(t, owner)
			owners = append(owners, metav1.OwnerReference{
				APIVersion: k.APIVersion, Kind: k.Kind, Name: name, Controller: new(owner == described.Controller),
			})
		}
	}
	manifest.SetOwnerReferences(owners)
	return manifest
}

func (o *operator) event(t *testing.T, e operatorEvent) *corev1.Event {
	t.Helper()
	k, name := o.split(t, e.About)
	require.Contains(t, o.objects, e.About)
	about := corev1.ObjectReference{APIVersion: k.APIVersion, Kind: k.Kind, Namespace: k.namespace(o), Name: name}
	about.UID = cmp.Or(e.UID, o.objects[e.About].uid)
	if e.UID != "" && k.Kind == "Node" {
		about.APIVersion = "" // A kubelet's reference to its Node has none.
	}
	if e.Container != "" {
		about.FieldPath = "spec.containers{" + e.Container + "}"
	}
	written := eventAbout(e.Reason, about)
	written.Name, written.Type, written.Source.Component, written.Count = e.name, e.Type, e.From, e.Count
	if e.Action != "" {
		written = &corev1.Event{
			ObjectMeta: written.ObjectMeta, InvolvedObject: about, Type: e.Type, Reason: e.Reason, Message: written.Message,
			EventTime: metav1.NowMicro(), Action: e.Action, ReportingController: e.From, ReportingInstance: e.From + "-0",
		}
		if e.Count > 1 {
			written.Series = &corev1.EventSeries{Count: e.Count, LastObservedTime: metav1.NowMicro()}
		}
	}
	return written
}
