// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// livesWithAVolume does to one replica what operators and nodes do. It ends installed.
func (r *release) livesWithAVolume(t *testing.T) {
	r.install(t)
	r.count(t, "helm upgrade, helm rollback", func(f *traffic) {
		f.explains(t, r)
		f.explainsStaticPod(t, r)
		r.apply(t, "upgrade", values{"prometheus": values{"enabled": true}})
		f.passes(t)
		r.helm(t, "rollback", "1")
		r.awaitRollout(t, r.name)
	}, r)
	r.count(t, "pod deleted without a grace period, twice", func(f *traffic) {
		for range 2 {
			r.replacePod(t)
			f.passes(t)
		}
	}, r)
	r.count(t, "helm uninstall, and install again", func(f *traffic) {
		claim := r.claim(t)
		r.helm(t, "uninstall", "--wait", "--timeout", "2m")
		harness.Eventually(t, func() bool { return len(r.pods(t, r.name)) == 0 }, "the end of the pods")
		f.load.Grows(t, 50)
		assert.Equal(t, claim, r.claim(t), "uninstall keeps the volume")
		r.install(t)
		assert.Equal(t, claim, r.claim(t))
	}, r)
}

// losesItsPod kills the only pod of a release without a volume. It ends installed.
func (r *release) losesItsPod(t *testing.T) {
	r.install(t)
	r.count(t, "pod deleted without a grace period", func(*traffic) { r.killLeader(t) }, r)
}

// replacePod kills the release's only pod, and waits for the next one.
func (r *release) replacePod(t *testing.T) {
	t.Helper()
	pods := r.pods(t, r.name)
	require.Len(t, pods, 1)
	r.kill(t, &pods[0])
	harness.Eventually(t, func() bool {
		now := r.pods(t, r.name)
		return len(now) == 1 && now[0].UID != pods[0].UID
	}, "a pod in place of %s", pods[0].Name)
	r.awaitRollout(t, r.name)
}

// claim identifies the release's claim of its volume.
func (r *release) claim(t *testing.T) types.UID {
	t.Helper()
	claim, err := r.CoreV1().PersistentVolumeClaims(r.name).Get(t.Context(), r.name, metav1.GetOptions{})
	require.NoError(t, err)
	return claim.UID
}
