// SPDX-License-Identifier: Apache-2.0

package ownersprocessor

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/internal/logrecord"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/owners"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// fixtures are the operators of the receiver's tests against a real control plane.
const fixtures = "../../e2e/receiver/testdata/"

// operator has the kinds and the objects of one operator, an owner before what it owns.
type operator struct {
	Kinds   []kindOfOperator
	Objects []struct {
		Object, GenerateName, Controller string
		Owners                           []string
	}
}

type kindOfOperator struct{ Kind, APIVersion, Plural, Scope string }

// readOperator returns the objects of an operator, which are in the namespace of its name, its own kinds, and all.
func readOperator(t *testing.T, path string) (objects []apitest.Object, own, all []kindOfOperator) {
	t.Helper()
	var o operator
	read(t, path, &o)
	read(t, fixtures+"kinds.yaml", &all)
	kinds, known := map[string]kindOfOperator{}, map[string]apitest.Object{}
	all = append(all, o.Kinds...)
	for _, k := range all {
		kinds[k.Kind] = k
	}
	for i, described := range o.Objects {
		kind, name, _ := strings.Cut(described.Object, " ")
		k := kinds[kind]
		object := apitest.Object{APIVersion: k.APIVersion, Kind: kind, Name: name, UID: fmt.Sprint("uid-", i), GenerateName: described.GenerateName}
		if k.Scope == "" {
			object.Namespace = strings.TrimSuffix(filepath.Base(path), ".yaml")
		}
		for _, owner := range append(described.Owners, described.Controller) {
			if owner != "" {
				object.Owners = append(object.Owners, apitest.OwnedBy(known[owner], owner == described.Controller))
			}
		}
		known[described.Object] = object
		objects = append(objects, object)
	}
	return objects, o.Kinds, all
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(content, into), path)
}

// ofOwners are the attributes that must be the same on all signals.
func ofOwners(attributes pcommon.Map) map[string]any {
	all := map[string]any{}
	for name, value := range attributes.All() {
		if strings.HasPrefix(name, "k8s.workload.") || strings.HasPrefix(name, "k8s.owner.") {
			all[name] = value.AsRaw()
		}
	}
	return all
}

// onItsEvents are these attributes on the records of events about an object, by the receiver's own code.
func onItsEvents(t *testing.T, receiver *owners.Owners, o apitest.Object) map[string]any {
	t.Helper()
	ev := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(o.Namespace, "default"), Name: "event"},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID),
		},
	}
	observations := []observation.Observation{{Event: ev}}
	receiver.Resolve(t.Context(), observations)
	logs := logrecord.Converter{}.Convert(semconv.Cluster{}, observations)
	return ofOwners(logs.ResourceLogs().At(0).Resource().Attributes())
}

// TestTheWorkloadIsThatOfTheEvents compares what resources and events get about all objects of popular operators that
// a resource can be about: with every permission, and with those that the chart gives by default.
func TestTheWorkloadIsThatOfTheEvents(t *testing.T) {
	paths, err := filepath.Glob(fixtures + "operators/*.yaml")
	require.NoError(t, err)
	require.Greater(t, len(paths), 40)
	compared := 0
	for _, path := range paths {
		objects, own, all := readOperator(t, path)
		for permissions, forbidden := range map[string][]kindOfOperator{"every permission": nil, "those of the chart": own} {
			t.Run(filepath.Base(path)+", "+permissions, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					compared += compareWorkloads(t, objects, all, forbidden)
				})
			})
		}
	}
	assert.Greater(t, compared, 200)
	t.Log(compared, "objects compared")
}

func compareWorkloads(t *testing.T, objects []apitest.Object, served, forbidden []kindOfOperator) (compared int) {
	api := apitest.NewObjectsInMemory()
	for _, k := range served {
		api.Serve(k.APIVersion, k.Kind, k.Plural, k.Scope == "")
	}
	api.Put(objects...)
	connection := &forbidding{api, forbidden}
	e := newEnricher(t, connection, func(c *Config) {
		all := &c.ResourceAttributes
		all.K8sOwnerAPIVersion.Enabled, all.K8sOwnerChain.Enabled, all.K8sOwnerKind.Enabled = true, true, true
		all.K8sOwnerName.Enabled, all.K8sOwnerUID.Enabled = true, true
	})
	r, err := resolver.New(&rest.Config{Host: "http://api", QPS: -1, Transport: connection}, resolver.Settings{})
	require.NoError(t, err)
	defer r.Close()
	receiver := owners.New(r, e.extractor)
	for _, o := range objects {
		gv, _ := schema.ParseGroupVersion(o.APIVersion)
		names, _ := semconv.Of(schema.GroupKind{Group: gv.Group, Kind: o.Kind})
		if _, isField := fields[names.Name]; !isField {
			continue
		}
		resource := map[string]any{names.Name: o.Name, names.UID: o.UID}
		if o.Namespace != "" {
			resource["k8s.namespace.name"] = o.Namespace
		}
		got := ofOwners(enriched(t, e, described{Signal: "metrics", Attributes: resource}))
		assert.Equal(t, onItsEvents(t, receiver, o), got, "%s %s", o.Kind, o.Name)
		assert.NotEmpty(t, got["k8s.workload.kind"], "%s %s", o.Kind, o.Name)
		compared++
	}
	return compared
}

// forbidding is an API server that lets nobody read some kinds.
type forbidding struct {
	*apitest.Objects
	kinds []kindOfOperator
}

func (f *forbidding) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, k := range f.kinds {
		if strings.HasPrefix(r.URL.Path, "/apis/"+k.APIVersion+"/") && strings.Contains(r.URL.Path+"/", "/"+k.Plural+"/") {
			api := &faulty{RoundTripper: f.Objects}
			api.fail("/", fault{status: http.StatusForbidden})
			return api.RoundTrip(r)
		}
	}
	return f.Objects.RoundTrip(r)
}
