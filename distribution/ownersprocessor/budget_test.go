// SPDX-License-Identifier: Apache-2.0

package ownersprocessor

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// TestWhatItCostsTheAPIServer: the figures of README.md, for 5,000 pods of 500 Deployments in 50 namespaces, whose data
// comes every 15 s from 100 nodes.
func TestWhatItCostsTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const namespaces, deployments, replicas, nodes = 50, 10, 10, 100
		api := newCluster()
		var pods []apitest.Object
		for i := range namespaces {
			for j := range deployments {
				pods = append(pods, deployed(api, fmt.Sprint("ns-", i), fmt.Sprint("app-", j), replicas)...)
			}
		}
		e := newEnricher(t, api, nil)
		round := func() (requests int) {
			for some := range slices.Chunk(pods, len(pods)/nodes) {
				all, _ := send(t, e, some...)
				require.NotContains(t, all, "")
				time.Sleep(15 * time.Second / nodes)
			}
			return len(api.Seen())
		}
		cold := round()
		assert.LessOrEqual(t, cold, 3*namespaces+20, "a list for each kind and namespace, and a few single reads")
		assert.Zero(t, round(), "what is known costs nothing")

		pods = append(pods, deployed(api, "ns-0", "new", replicas)...)
		added := round()
		assert.LessOrEqual(t, added, 2*replicas)
		pods = append(pods, deployed(api, "ns-0", "app-0-again", 1)...)
		assert.LessOrEqual(t, round(), 3, "a pod of a new Deployment")

		refreshed := 0
		for range 4 * 20 { // rounds of 15 s: 20 minutes
			refreshed += round()
		}
		assert.LessOrEqual(t, refreshed, 2*(3*namespaces+20))
		t.Logf("requests: %d at the start, %d for %d pods of a new Deployment, %d in 20 minutes", cold, added, replicas, refreshed)
	})
}

// deployed puts a Deployment and returns its pods.
func deployed(api *apitest.Objects, namespace, name string, replicas int) (pods []apitest.Object) {
	in := func(apiVersion, kind, name string, controller ...apitest.Object) apitest.Object {
		o := object(apiVersion, kind, name, "uid-"+namespace+"-"+name, controller...)
		o.Namespace = namespace
		api.Put(o)
		return o
	}
	set := in("apps/v1", "ReplicaSet", name+"-1", in("apps/v1", "Deployment", name))
	for i := range replicas {
		pods = append(pods, in("v1", "Pod", fmt.Sprintf("%s-1-%d", name, i), set))
	}
	return pods
}
