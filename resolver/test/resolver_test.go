// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"cmp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newResolver returns a resolver for the fake API server. The end of the test closes it. If the
// timeout in settings is zero, nothing times out.
func newResolver(t testing.TB, a *apitest.Objects, settings resolver.Settings) *resolver.Resolver {
	if settings.LookupTimeout == 0 {
		settings.LookupTimeout = time.Minute
	}
	r, err := resolver.New(a.RESTConfig(), settings)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// resolve returns the chain of one reference.
func resolve(t testing.TB, r *resolver.Resolver, ref resolver.Reference) resolver.Chain {
	chains := r.Resolve(t.Context(), []resolver.Reference{ref})
	require.Len(t, chains, 1)
	require.NotEmpty(t, chains[0].Objects)
	return chains[0]
}

// refTo returns a reference with all fields.
func refTo(o apitest.Object) resolver.Reference {
	return resolver.Reference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID)}
}

// text writes a chain as tests expect it: kind.group/namespace/name=uid, from the requested object
// upwards, and the resolution.
func text(c resolver.Chain) string {
	var parts []string
	for _, o := range c.Objects {
		parts = append(parts, objectText(o))
	}
	return strings.Join(parts, " < ") + ": " + string(c.Resolution)
}

func objectText(o *resolver.Object) string {
	text := o.GroupKind().String() + "/"
	if o.Namespace != "" {
		text += o.Namespace + "/"
	}
	text += o.Name
	if o.UID != "" {
		text += "=" + string(o.UID)
	}
	return text
}

// clock is a clock that only tests advance.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// observed counts the calls of an observer.
type observed struct {
	mu      sync.Mutex
	results map[string]int
	hits    int
	refused []string
}

func (o *observed) Forbidden(verb string, resource schema.GroupResource, namespace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refused = append(o.refused, verb+" "+resource.String()+" in "+namespace)
}

func (o *observed) LookupDone(err error, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.results == nil {
		o.results = make(map[string]int)
	}
	o.results[cmp.Or(string(resolver.ResolutionOf(err)), "found")]++
}

func (o *observed) CacheHit() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hits++
}

func (o *observed) counts() (results map[string]int, hits int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	results, hits = o.results, o.hits
	o.results, o.hits = nil, 0
	return results, hits
}
