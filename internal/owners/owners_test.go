// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/text"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	tags   = []extract.Tag
	values = map[string]string
)

var (
	shop       = apitest.Object{APIVersion: "v1", Kind: "Namespace", Name: "shop", UID: "shop-uid", Labels: values{"team": "web"}}
	otherSpace = apitest.Object{APIVersion: "v1", Kind: "Namespace", Name: "default", UID: "default-uid", Labels: values{"team": "base"}}
	node1      = apitest.Object{APIVersion: "v1", Kind: "Node", Name: "node-1", UID: "node-uid", Labels: values{"zone": "z1"}}
	deployment = apitest.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "fe", UID: "fe-uid"}
	pod        = apitest.Object{
		APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "fe-a", UID: "pod-uid", Labels: values{"app": "fe"},
		Owners: []metav1.OwnerReference{apitest.OwnedBy(deployment, true)},
	}
)

// fixture is an API server with these objects, and an Owners in front of it.
type fixture struct {
	*Owners
	api *apitest.Objects

	mu        sync.Mutex
	forbidden []string
}

// LookupDone, CacheHit and Forbidden implement resolver.Observer.
func (*fixture) LookupDone(error, time.Duration) {}
func (*fixture) CacheHit()                       {}
func (f *fixture) Forbidden(verb string, resource schema.GroupResource, _ string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forbidden = append(f.forbidden, verb+" "+resource.String())
}

func newFixture(t *testing.T, labels ...extract.Rule) *fixture {
	t.Helper()
	extractor, err := extract.New(extract.Settings{Labels: labels})
	require.NoError(t, err)
	f := &fixture{api: apitest.NewObjects(t)}
	f.api.Put(shop, otherSpace, node1, deployment, pod)
	config := DefaultConfig()
	config.LookupTimeout = 10 * time.Second
	r, err := config.NewResolver(f.api.RESTConfig(), extractor, false, f)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	f.Owners = New(r, extractor)
	return f
}

func TestOptionsThatCannotBeMeant(t *testing.T) {
	require.NoError(t, DefaultConfig().Check())
	for want, change := range map[string]func(*Config){
		"owners.max_depth: 101":       func(c *Config) { c.MaxDepth = 101 },
		"owners.max_depth: 0":         func(c *Config) { c.MaxDepth = 0 },
		"owners.lookup_timeout: 0s":   func(c *Config) { c.LookupTimeout = 0 },
		"owners.cache_size: 20000000": func(c *Config) { c.CacheSize = 20_000_000 },
		"owners.cache_ttl: -1s":       func(c *Config) { c.CacheTTL = -time.Second },
	} {
		config := DefaultConfig()
		change(&config)
		assert.ErrorContains(t, config.Check(), want)
	}
}

func TestEachOptionIsForItsOwnLimit(t *testing.T) {
	extractor, err := extract.New(extract.Settings{})
	require.NoError(t, err)
	for limit, change := range map[string]func(*Config){
		"MaxDepth":      func(c *Config) { c.MaxDepth = -1 },
		"LookupTimeout": func(c *Config) { c.LookupTimeout = -1 },
		"CacheSize":     func(c *Config) { c.CacheSize = -1 },
		"CacheTTL":      func(c *Config) { c.CacheTTL = -1 },
	} {
		config := DefaultConfig()
		change(&config)
		_, err := config.NewResolver(&rest.Config{}, extractor, false, nil)
		assert.ErrorContains(t, err, limit+" must not be negative")
	}
}

// about is an observation of an event about an object; reporter is the node of the kubelet that
// reports it, or empty.
func about(o apitest.Object, reporter string) observation.Observation {
	ev := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: cmp.Or(o.Namespace, "default"), Name: o.Name + ".1", Labels: values{"team": "ci", "zone": "none"}},
		InvolvedObject: corev1.ObjectReference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name},
	}
	if reporter != "" {
		ev.Source = corev1.EventSource{Component: "kubelet", Host: reporter}
	}
	return observation.Observation{Event: ev}
}

var (
	fromNamespace = extract.Rule{TagName: "team", Key: "team", From: extract.FromNamespace}
	fromNode      = extract.Rule{TagName: "zone", Key: "zone", From: extract.FromNode}
	fromEvent     = extract.Rule{TagName: "by", Key: "team", From: extract.FromEvent}
)

func TestTagsOfTheNamespaceAndTheNode(t *testing.T) {
	mirror := apitest.Object{
		APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "static", UID: "static-uid",
		Owners: []metav1.OwnerReference{apitest.OwnedBy(node1, true)},
	}
	withoutNamespace := pod
	withoutNamespace.Namespace = ""
	inDefault := apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "fe-a", UID: "other-uid"}
	volume := apitest.Object{APIVersion: "v1", Kind: "PersistentVolume", Name: "disk", UID: "disk-uid"}
	volumeInShop := volume
	volumeInShop.Namespace = "shop"
	nodeInDefault := node1
	nodeInDefault.Namespace = "default"
	for name, tt := range map[string]struct {
		of       apitest.Object
		reporter string
		want     tags
	}{
		"a pod's event of a kubelet":                            {pod, "node-1", tags{{Name: "team", Value: "web"}, {Name: "zone", Value: "z1"}}},
		"a pod's event of another program":                      {pod, "", tags{{Name: "team", Value: "web"}}},
		"a pod that does not exist":                             {apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "gone"}, "node-1", tags{{Name: "team", Value: "web"}, {Name: "zone", Value: "z1"}}},
		"a pod that a Node owns":                                {mirror, "", tags{{Name: "team", Value: "web"}, {Name: "zone", Value: "z1"}}},
		"a pod whose event names no namespace":                  {withoutNamespace, "", tags{{Name: "team", Value: "base"}}},
		"a kubelet's event about another object":                {deployment, "node-1", tags{{Name: "team", Value: "web"}}},
		"a Node":                                                {node1, "node-1", tags{{Name: "zone", Value: "z1"}}},
		"a Node whose event names a namespace":                  {nodeInDefault, "", tags{{Name: "zone", Value: "z1"}}},
		"a cluster-scoped object":                               {volume, "", nil},
		"a cluster-scoped object whose event is of a namespace": {volumeInShop, "", tags{{Name: "team", Value: "web"}}},
		"a Namespace is its own":                                {shop, "", tags{{Name: "team", Value: "web"}}},
		"a Node that does not exist":                            {pod, "node-9", tags{{Name: "team", Value: "web"}}},
		"a node name that no Node can have":                     {pod, "../pods", tags{{Name: "team", Value: "web"}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, fromNamespace, fromNode)
			f.api.Serve("v1", "PersistentVolume", "persistentvolumes", false)
			f.api.Put(mirror, inDefault, volume)
			observations := []observation.Observation{about(tt.of, tt.reporter)}
			f.Resolve(t.Context(), observations)
			assert.ElementsMatch(t, tt.want, observations[0].Tags.Resource)
			assert.Empty(t, observations[0].Tags.Record)
		})
	}
}

// TestANamespaceSpeaksOnlyForItsOwnObjects: the API server accepts the first events of each kind, and
// refuses those whose involved object names another namespace.
func TestANamespaceSpeaksOnlyForItsOwnObjects(t *testing.T) {
	issuer := apitest.Object{APIVersion: "cert.example.com/v1", Kind: "ClusterIssuer", Name: "ca", UID: "ca-uid", Labels: values{"app": "ca"}}
	inNamespace := func(o apitest.Object, namespace string) apitest.Object {
		o.Namespace = namespace
		return o
	}
	withoutVersion := inNamespace(issuer, "tenant-b")
	withoutVersion.APIVersion = ""
	for name, tt := range map[string]struct {
		of      apitest.Object
		stored  string
		foreign bool
		// alsoWithoutLookups is set if the same holds if owners are not looked up.
		alsoWithoutLookups bool
	}{
		"a Node, from a namespace":                              {inNamespace(node1, "tenant-b"), "tenant-b", true, true},
		"a Node, from its own events":                           {node1, "default", false, true},
		"a Node, from default with a namespace":                 {inNamespace(node1, "default"), "default", false, true},
		"a Node, from kube-system":                              {inNamespace(node1, "kube-system"), "kube-system", false, true},
		"another Namespace":                                     {inNamespace(shop, "tenant-b"), "tenant-b", true, true},
		"a Namespace, from itself":                              {inNamespace(shop, "shop"), "shop", false, true},
		"a Namespace, from default":                             {shop, "default", false, true},
		"a custom resource without a namespace, from one":       {inNamespace(issuer, "tenant-b"), "tenant-b", true, false},
		"a custom resource without a namespace and a version":   {withoutVersion, "tenant-b", true, false},
		"a custom resource without a namespace, from default":   {issuer, "default", false, true},
		"a pod of this namespace":                               {pod, "shop", false, true},
		"a pod without a namespace, from default":               {inNamespace(pod, ""), "default", false, true},
		"a pod without a namespace, from kube-system":           {inNamespace(pod, ""), "kube-system", true, false},
		"a pod without a namespace, from another namespace":     {inNamespace(pod, ""), "tenant-b", true, true},
		"a pod of another namespace":                            {pod, "tenant-b", true, true},
		"a pod of another namespace, from default":              {pod, "default", true, true},
		"a kind that the API server does not serve, in its own": {apitest.Object{APIVersion: "example.com/v1", Kind: "Gone", Namespace: "tenant-b", Name: "x"}, "tenant-b", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, extract.Rule{TagName: "app", Key: "app"}, fromNode, extract.Rule{TagName: "team", Key: "team"})
			f.api.Serve("cert.example.com/v1", "ClusterIssuer", "clusterissuers", false)
			f.api.Put(issuer, inNamespace(pod, "default"))
			for lookups, o := range map[bool]*Owners{true: f.Owners, false: New(nil, f.extractor)} {
				one := about(tt.of, "node-1")
				one.Event.Namespace = tt.stored
				batch := []observation.Observation{one}
				o.Resolve(t.Context(), batch)
				isForeign := tt.foreign && (lookups || tt.alsoWithoutLookups)
				require.Equal(t, isForeign, batch[0].Chain.Resolution == observation.Foreign, "with lookups: %v", lookups)
				if !isForeign {
					continue
				}
				assert.Equal(t, []*resolver.Object{{Namespace: tt.stored}}, batch[0].Chain.Objects)
				assert.Nil(t, batch[0].Chain.End())
				assert.Empty(t, slices.Concat(batch[0].Tags.Resource, batch[0].Tags.Record, batch[0].Tags.Metric))
			}
		})
	}
}

// TestAForeignEventSharesNothingWithATrueOne: both are in a batch, and refer to the object in the same
// way.
func TestAForeignEventSharesNothingWithATrueOne(t *testing.T) {
	f := newFixture(t, fromNamespace, fromNode)
	batch := []observation.Observation{about(node1, ""), about(node1, ""), about(node1, "")}
	batch[1].Event.Namespace = "shop"
	batch[2].Event.Namespace = "kube-system"
	f.Resolve(t.Context(), batch)
	zone, team := extract.Tag{Name: "zone", Value: "z1"}, extract.Tag{Name: "team", Value: "web"}
	for i, want := range []tags{{zone}, {team}, {zone}} {
		assert.Equal(t, want, batch[i].Tags.Resource, "it has the tags of the Namespace that it counts in")
	}
	nearest := newFixture(t, extract.Rule{TagName: "zone", Key: "zone"})
	nearest.Resolve(t.Context(), batch)
	for i, want := range []tags{{zone}, nil, {zone}} {
		assert.Equal(t, want, batch[i].Tags.Resource)
	}
}

func TestEachNamespaceAndNodeIsLookedUpOnce(t *testing.T) {
	f := newFixture(t, fromNamespace, fromNode)
	var batch []observation.Observation
	for i := range 20 {
		p := pod
		p.Name = fmt.Sprint("fe-", i%3)
		batch = append(batch, about(p, "node-1"))
	}
	batch = append(batch, about(node1, "node-1"), about(shop, ""))
	for range 2 {
		f.Resolve(t.Context(), batch)
	}
	requests := strings.Join(f.api.Seen(), "\n") + "\n"
	assert.Equal(t, 1, strings.Count(requests, "/api/v1/namespaces?list\n"), requests)
	assert.Equal(t, 1, strings.Count(requests, "/nodes/node-1\n"), requests)
}

func TestWithoutARuleNothingMoreIsLookedUp(t *testing.T) {
	for name, rules := range map[string][]extract.Rule{"no rules": nil, "the chain and the Event": {{TagName: "app", Key: "app"}, fromEvent}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, rules...)
			batch := []observation.Observation{about(pod, "node-1")}
			f.Resolve(t.Context(), batch)
			assert.Len(t, batch[0].Chain.Objects, 2)
			assert.Equal(t, []string{f.api.Path(pod), f.api.Path(deployment)}, f.api.SeenObjects())
		})
	}
	t.Run("an event that names no Node needs none", func(t *testing.T) {
		assert.Empty(t, newLookups([]observation.Observation{about(pod, "")}, extract.Uses{Node: true}).named)
	})
	t.Run("a Node's event needs the Namespace in which it is stored", func(t *testing.T) {
		f := newFixture(t, fromNamespace)
		f.Resolve(t.Context(), []observation.Observation{about(node1, "node-1")})
		assert.ElementsMatch(t, []string{f.api.Path(node1), f.api.Path(otherSpace)}, f.api.SeenObjects(), "its scope is not known before")
	})
}

func TestAFailedLookupOfANamespaceOrNodeCostsOnlyItsTag(t *testing.T) {
	for name, status := range map[string]int{"forbidden": http.StatusForbidden, "not found": http.StatusNotFound, "broken": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, fromNamespace, fromNode, extract.Rule{TagName: "app", Key: "app"}, extract.Rule{TagName: "team", Key: "app"})
			f.api.Fail(f.api.Path(shop), apitest.Fault{Status: status})
			f.api.Fail(f.api.Path(node1), apitest.Fault{Status: status})
			batch := []observation.Observation{about(pod, "node-1")}
			f.Resolve(t.Context(), batch)
			assert.Equal(t, resolver.ResolutionComplete, batch[0].Chain.Resolution)
			assert.Equal(t, tags{{Name: "app", Value: "fe"}, {Name: "team", Value: "fe"}}, batch[0].Tags.Resource, "and the next rule applies")
			if status == http.StatusForbidden {
				assert.ElementsMatch(t, []string{"get namespaces", "get nodes"}, f.forbidden)
			}
		})
	}
}

func TestTagsOfTheEventAreItsOwn(t *testing.T) {
	f := newFixture(t, fromEvent, fromNamespace)
	batch := []observation.Observation{about(pod, ""), about(pod, ""), about(pod, "")}
	batch[1].Event.Labels = values{"team": "second"}
	batch[2].Event.Labels = nil
	f.Resolve(t.Context(), batch)
	for i, want := range []tags{{{Name: "by", Value: "ci"}}, {{Name: "by", Value: "second"}}, nil} {
		assert.Equal(t, want, batch[i].Tags.Record)
		assert.Equal(t, tags{{Name: "team", Value: "web"}}, batch[i].Tags.Resource)
		assert.Equal(t, tags{{Name: "team", Value: "web"}}, batch[i].Tags.Metric)
	}
}

func TestEventsAboutTwoContainersOfAPodShareNoTags(t *testing.T) {
	f := newFixture(t)
	var err error
	f.extractor, err = extract.New(extract.Settings{Service: extract.Service{Metadata: []string{extract.InstanceID}}})
	require.NoError(t, err)
	batch := []observation.Observation{about(pod, ""), about(pod, ""), about(pod, "")}
	batch[0].Event.InvolvedObject.FieldPath = "spec.containers{app}"
	batch[1].Event.InvolvedObject.FieldPath = "spec.containers{proxy}"
	f.Resolve(t.Context(), batch)
	for i, want := range []tags{{{Name: extract.InstanceID, Value: "shop.fe-a.app"}}, {{Name: extract.InstanceID, Value: "shop.fe-a.proxy"}}} {
		assert.Equal(t, want, slices.Concat(batch[i].Tags.Resource, batch[i].Tags.Record))
	}
	assert.Empty(t, slices.Concat(batch[2].Tags.Resource, batch[2].Tags.Record), "it is about no container")
}

func TestWithoutLookupsOnlyTheEventGivesTags(t *testing.T) {
	extractor, err := extract.New(extract.Settings{Labels: []extract.Rule{fromEvent, fromNamespace, fromNode, {TagName: "app", Key: "app"}}})
	require.NoError(t, err)
	batch := []observation.Observation{about(pod, "node-1"), about(shop, "")}
	New(nil, extractor).Resolve(t.Context(), batch)
	for _, o := range batch {
		assert.Equal(t, tags{{Name: "by", Value: "ci"}}, o.Tags.Record)
		assert.Empty(t, o.Tags.Resource)
		assert.Len(t, o.Chain.Objects, 1)
		assert.Empty(t, o.Chain.Resolution)
	}
}

// TestWhatIsKeptOfAnObject: anybody may write any texts into it.
func TestWhatIsKeptOfAnObject(t *testing.T) {
	long := strings.Repeat("x", 2*text.MaxValue)
	isTeam := func(key string) bool { return key == "team" }
	object := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: long, Name: long, GenerateName: long, UID: types.UID(long), Labels: values{"team": long, "app": "fe"}, Annotations: values{"team": "web", "note": long},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: long, Kind: long, Name: long, UID: types.UID(long)}},
	}}
	trim(text.Keys{Label: isTeam, Annotation: isTeam})(&object)
	assert.Equal(t, values{"team": text.Value(long)}, object.Labels)
	assert.Equal(t, values{"team": "web"}, object.Annotations)
	owner := object.OwnerReferences[0]
	for i, kept := range []string{object.Namespace, object.Name, object.GenerateName, string(object.UID), owner.APIVersion, owner.Kind, owner.Name, string(owner.UID)} {
		assert.Len(t, kept, text.MaxValue, "%d", i)
	}
}

func TestOfAnEventOnlyWhatRulesUseIsKept(t *testing.T) {
	ev := about(pod, "").Event
	newFixture(t, fromEvent, fromNode).Keep(ev)
	assert.Equal(t, values{"team": "ci"}, ev.Labels, "the zone is that of the Node")
}
