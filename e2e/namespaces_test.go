// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
)

// TestAColdStartInManyNamespaces: a receiver that knows no object yet gets events about pods of all
// namespaces at once. No event loses its owners, and there are few requests.
// It runs alone: what it promises takes the whole machine.
func TestAColdStartInManyNamespaces(t *testing.T) {
	const namespaces, each = 200, 2
	c := ownCluster(t, controlplane.Options{})
	all := c.makeTeams(t, namespaces, each)
	emit := func(t *testing.T, reason string) {
		makeMany(t, len(all), func(i int) {
			pod := all[i].pod()
			c.makeEvent(t, pod.GetNamespace(), eventAbout(reason, referenceTo(pod)))
		})
	}
	check := func(t *testing.T, r *running, g *gateway, reason string) {
		chains := map[string]chained{}
		for _, one := range all {
			chains[string(one.pod().GetUID())] = one
		}
		resolutions := map[string]int{}
		for _, rec := range r.await(len(all), about("", reason)) {
			resolutions[rec.resolution()]++
			if rec.resolution() != "complete" {
				continue
			}
			chain := chains[rec.text("k8s.object.uid")]
			resourceIs(t, rec, merge(completeChainOf(chain...), map[string]any{"tilt.manifest": chain[2].GetName()}))
		}
		assert.Equal(t, map[string]int{"complete": len(all)}, resolutions)
		assert.LessOrEqual(t, len(g.requests(isOwnerLookup)), 3*namespaces+20, "requests")
	}

	for name, test := range map[string]struct {
		reason string
		delay  time.Duration
		early  bool // whether the events exist when the receiver starts
	}{
		"they exist when it starts":                                 {"Early", 0, true},
		"they exist when it starts, the API server is far away":     {"EarlyFar", far, true},
		"they come after its start":                                 {"Late", 0, false},
		"they come after its start, and the API server is far away": {"LateFar", far, false},
	} {
		t.Run(name, func(t *testing.T) {
			if test.early {
				emit(t, test.reason)
			}
			g := newGateway(t, c.Kubeconfig())
			g.inject(delay(test.delay, isOwnerLookup))
			// Longer than the default: a busy test machine answers late. The benchmark has the default.
			r := c.run(t, g.config(), "start_at: beginning", "include_reasons: ["+test.reason+"]", "owners: {lookup_timeout: 10s}")
			if !test.early {
				emit(t, test.reason)
			}
			check(t, r, g, test.reason)
		})
	}
}

// far is how long a request to an API server in another region takes.
const far = 100 * time.Millisecond

// delay lets the requests that the test wants take longer.
func delay(by time.Duration, want func(*http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if want(r) {
			time.Sleep(by)
		}
		return false
	}
}

// makeTeams makes namespaces with some Deployments each, which have a ReplicaSet and a pod.
func (c *cluster) makeTeams(t *testing.T, namespaces, each int) []chained {
	t.Helper()
	all := make([]chained, namespaces*each)
	makeMany(t, namespaces, func(i int) {
		ns := fmt.Sprintf("team-%03d", i)
		_, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
		if !assert.NoError(t, err) {
			return
		}
		for j := range each {
			name := fmt.Sprint("app-", j)
			all[i*each+j] = c.makeDeployed(t, ns, name, labelled("tilt-manifest", name))
		}
	})
	require.False(t, t.Failed())
	return all
}
