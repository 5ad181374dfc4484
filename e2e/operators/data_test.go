// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// operator is a file in testdata.
type operator struct {
	Operator    string
	Integration string // in the chart's rbac.integrations; empty: it has none
	Kinds       []kind
	Objects     []object // an owner before what it owns
	Events      []event

	name    string // of the file, and of the namespace
	kinds   map[string]kind
	objects map[string]*object // by kind and name
}

// kind is a kind of builtin.yaml, or one that an operator defines.
type kind struct {
	Kind, APIVersion, Plural string
	Scope                    string         // Namespaced if it is empty
	Spec                     map[string]any // of objects without one
}

// object names objects by kind and name, such as "Pod web-0".
type object struct {
	Object       string
	GenerateName string
	Controller   string
	Owners       []string // those that do not control
	Annotations  map[string]string
	Spec         map[string]any

	uid types.UID
}

// event is one that a recorder of events.k8s.io writes if it has an action.
type event struct {
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

// load reads all operators.
func load(t *testing.T) (all []*operator) {
	t.Helper()
	var builtin []kind
	require.NoError(t, yaml.UnmarshalStrict([]byte(harness.Read(t, "e2e", "operators", "builtin.yaml")), &builtin))
	paths, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		o := &operator{name: strings.TrimSuffix(filepath.Base(path), ".yaml"), kinds: map[string]kind{}, objects: map[string]*object{}}
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
			e.Count = max(e.Count, 1)
			if e.Chart == (outcome{}) {
				e.Chart = e.EveryRight
			}
		}
		all = append(all, o)
	}
	require.NotEmpty(t, all)
	return all
}

// split returns the kind and the name of an object.
func (o *operator) split(t *testing.T, text string) (of kind, name string) {
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

// owner returns the owner that the receiver must follow; empty: there is none.
func (o *object) owner() string {
	if o.Controller == "" && len(o.Owners) > 0 {
		return o.Owners[0]
	}
	return o.Controller
}
