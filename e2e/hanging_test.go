// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/deadwebhook"
)

// chained is a pod with its owners, in the order of the chain.
type chained []*object

func (c chained) pod() *object { return c[0] }

// TestAKindWhoseObjectsCannotBeRead: owners of one kind hang or fail. Chains that end there are as
// long as they are known, all others are complete, and the kind is used again when it works again.
func TestAKindWhoseObjectsCannotBeRead(t *testing.T) {
	t.Parallel()
	silent, err := deadwebhook.StartSilent()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, silent.Close()) })
	for name, url := range map[string]string{
		"its conversion webhook refuses connections": deadwebhook.Refusing,
		"its conversion webhook never answers":       silent.URL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Requests that hang in an API server must not be in the way of another test.
			testAKindWhoseObjectsCannotBeRead(t, ownCluster(t, controlplane.Options{}), url)
		})
	}
}

func testAKindWhoseObjectsCannotBeRead(t *testing.T, c *cluster, url string) {
	// More than the receiver sends requests at a time, and each in a namespace of its own, so that
	// no list in a namespace can serve two.
	const workloads, rounds = 40, 2
	kind, err := deadwebhook.Define(t.Context(), c.Dynamic, "dead.example.com", url)
	require.NoError(t, err)
	var dead [workloads]chained
	var healthy [rounds][workloads]chained
	makeMany(t, workloads, func(i int) {
		ns := fmt.Sprintf("team-%02d", i)
		_, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
		assert.NoError(t, err)
		release, err := kind.Create(t.Context(), ns, "tied", nil)
		if !assert.NoError(t, err) {
			return
		}
		dead[i] = chained{c.make(t, ns, "v1", "Pod", "tied-a", controlledBy(release)), release}
		for round := range rounds {
			healthy[round][i] = c.makeDeployed(t, ns, fmt.Sprint("healthy-", round), labelled("tilt-manifest", "shop"))
		}
	})
	r := c.run(t, "start_at: beginning", "include_reasons: [Dead, Healthy, Repaired]", "owners: {lookup_timeout: 5s}")
	emit := func(reason string, about chained) string {
		return c.makeEvent(t, about.pod().GetNamespace(), eventAbout(reason, referenceTo(about.pod()))).Name
	}
	for round := range rounds {
		// Those that cannot be resolved come first, and their chains are shorter, so that their
		// requests are in the way of the others'.
		var ofDead, ofHealthy [workloads]string
		makeMany(t, workloads, func(i int) { ofDead[i] = emit("Dead", dead[i]) })
		makeMany(t, workloads, func(i int) { ofHealthy[i] = emit("Healthy", healthy[round][i]) })
		resolutions := map[string]int{}
		for i := range workloads {
			rec := r.of(t, ofHealthy[i])
			resolutions[rec.resolution()]++
			if rec.resolution() == "complete" {
				resourceIs(t, rec, merge(completeChainOf(healthy[round][i]...), map[string]any{"tilt.manifest": "shop"}))
			}
		}
		require.Equal(t, map[string]int{"complete": workloads}, resolutions, "the healthy ones of round %d", round)
		for i := range workloads {
			rec := r.of(t, ofDead[i])
			require.Contains(t, []string{"timeout", "unavailable"}, rec.resolution())
			resourceIs(t, rec, chainOf(dead[i]...))
		}
	}

	require.NoError(t, kind.Repair(t.Context()))
	for _, repaired := range dead {
		var rec record
		eventually(t, func() bool {
			rec = r.of(t, emit("Repaired", repaired))
			return rec.resolution() == "complete"
		}, "the chain is complete again")
		resourceIs(t, rec, completeChainOf(repaired...))
	}
}

// makeDeployed makes a Deployment, its ReplicaSet and a pod of that, and returns them as a chain.
func (c *cluster) makeDeployed(t *testing.T, ns, name string, deployed ...option) chained {
	t.Helper()
	deployment := c.make(t, ns, "apps/v1", "Deployment", name, deployed...)
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", name+"-1", controlledBy(deployment))
	return chained{c.make(t, ns, "v1", "Pod", name+"-1-a", controlledBy(rs)), rs, deployment}
}
