// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// takeTurns updates two replicas one after the other, and kills the one that leads. It ends
// installed.
func (r *release) takeTurns(t *testing.T) {
	r.install(t)
	r.count(t, "rolling update", func(*traffic) { r.rollOut(t) }, r)
	r.count(t, "the leader's pod deleted without a grace period", func(*traffic) { r.killLeader(t) }, r)
}

// rollOut replaces the pods by new ones, as `kubectl rollout restart` does.
func (r *release) rollOut(t *testing.T) {
	t.Helper()
	r.apply(t, "upgrade", values{"podAnnotations": values{"restarted-at": time.Now().Format(time.RFC3339)}})
}

// killLeader kills the pod that holds the lease, and waits until another one holds it.
func (r *release) killLeader(t *testing.T) {
	t.Helper()
	leader := r.holder(t)
	harness.Eventually(t, func() bool {
		for _, pod := range r.pods(t, r.name) {
			if strings.Contains(r.log(t, &pod), leader) { // It logs its identity when it starts.
				r.kill(t, &pod)
				return true
			}
		}
		return false
	}, "the pod of the leader %s", leader)
	harness.Eventually(t, func() bool { return r.holder(t) != leader }, "another leader than %s", leader)
	r.awaitRollout(t, r.name)
}

// holder is the identity of the lease's holder.
func (r *release) holder(t *testing.T) string {
	t.Helper()
	lease, err := r.CoordinationV1().Leases(r.name).Get(t.Context(), r.name+"-leader", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, lease.Spec.HolderIdentity)
	return *lease.Spec.HolderIdentity
}

// drain does what `kubectl drain` does: it lets no new pod on the node, and evicts the pods of the
// releases. There is no other node for their successors. So it uncordons the node when the budget of
// the replicas forbids the next eviction, and evicts that replica when its sister is ready again.
// No budget protects the pods of the releases that have only one.
func (c *cluster) drain(t *testing.T, replicas *release, singles ...*release) {
	t.Helper()
	both := replicas.pods(t, replicas.name)
	require.Len(t, both, 2)
	c.cordon(t, true)
	for _, r := range singles {
		pods := r.pods(t, r.name)
		require.Len(t, pods, 1)
		require.NoError(t, c.evict(t, &pods[0]))
	}
	require.NoError(t, c.evict(t, &both[0]))
	harness.Eventually(t, func() bool { return len(replicas.pods(t, replicas.name)) == 2 }, "a successor of %s", both[0].Name)
	err := c.evict(t, &both[1])
	assert.True(t, apierrors.IsTooManyRequests(err), "the budget protects the last replica: %v", err)
	c.cordon(t, false)
	for _, r := range append(singles, replicas) {
		r.awaitRollout(t, r.name)
	}
	harness.Eventually(t, func() bool { return c.evict(t, &both[1]) == nil }, "the eviction of %s", both[1].Name)
	harness.Eventually(t, func() bool {
		now := replicas.pods(t, replicas.name)
		return len(now) == 2 && now[0].UID != both[1].UID && now[1].UID != both[1].UID
	}, "a successor of %s", both[1].Name)
	replicas.awaitRollout(t, replicas.name)
}

// evict evicts a pod, if no budget forbids it.
func (c *cluster) evict(t *testing.T, pod *corev1.Pod) error {
	t.Helper()
	return c.PolicyV1().Evictions(pod.Namespace).Evict(t.Context(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: metav1.NewPreconditionDeleteOptions(string(pod.UID)),
	})
}

// cordon lets no new pods on the node, or lets them again.
func (c *cluster) cordon(t *testing.T, cordoned bool) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec": {"unschedulable": %t}}`, cordoned)
	_, err := c.CoreV1().Nodes().Patch(t.Context(), c.node.Name(), types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}
