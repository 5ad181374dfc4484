// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// resourceIs compares a record's resource with what is expected besides the cluster.
func resourceIs(t *testing.T, r record, want map[string]any) {
	t.Helper()
	assert.NotEmpty(t, r.text("k8s.cluster.uid"))
	assert.Equal(t, want, without(r.resource, "k8s.cluster.uid"))
}

// objectAttributes are what a resource says of an object under a prefix such as k8s.workload.
func objectAttributes(prefix string, o *object) map[string]any {
	return map[string]any{
		prefix + ".api_version": o.GetAPIVersion(), prefix + ".kind": o.GetKind(), prefix + ".name": o.GetName(), prefix + ".uid": string(o.GetUID()),
	}
}

func merge(parts ...map[string]any) map[string]any {
	all := map[string]any{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

func TestADeploymentsEventsSayWhoOwnsThem(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	r := kube.run(t, in(ns))
	fe := kube.make(t, ns, "apps/v1", "Deployment", "fe", labelled("tilt-manifest", "shop"))
	rs := kube.awaitObject(t, ns, "apps/v1", "ReplicaSet", ownedByUID(fe.GetUID()))
	pod := kube.awaitObject(t, ns, "v1", "Pod", ownedByUID(rs.GetUID()))

	failed := r.await(1, about(ns, "Scheduled"))[0]
	assert.Equal(t, "complete", failed.resolution())
	resourceIs(t, failed, merge(map[string]any{
		"k8s.namespace.name":  ns,
		"k8s.pod.name":        pod.GetName(),
		"k8s.pod.uid":         string(pod.GetUID()),
		"k8s.replicaset.name": rs.GetName(),
		"k8s.replicaset.uid":  string(rs.GetUID()),
		"k8s.deployment.name": "fe",
		"k8s.deployment.uid":  string(fe.GetUID()),
		"k8s.owner.chain":     []any{"replicaset.apps/" + rs.GetName(), "deployment.apps/fe"},
		"tilt.manifest":       "shop",
	}, objectAttributes("k8s.object", pod), objectAttributes("k8s.owner", rs), objectAttributes("k8s.workload", fe)))

	scaling := r.await(1, about(ns, "ScalingReplicaSet"))[0]
	resourceIs(t, scaling, merge(map[string]any{
		"k8s.namespace.name":  ns,
		"k8s.deployment.name": "fe",
		"k8s.deployment.uid":  string(fe.GetUID()),
		"tilt.manifest":       "shop",
	}, objectAttributes("k8s.object", fe), objectAttributes("k8s.workload", fe)))

	created := r.await(1, about(ns, "SuccessfulCreate"))[0]
	assert.Equal(t, "deployment.apps/fe", created.chain())
	require.Equal(t, corev1.EventTypeNormal, created.text("k8s.event.type"))
}
