// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestOneTenantsHugeObjectsCostTheOthersNothing: 121 KiB of events about objects of 200 KiB once
// took 3 GiB of memory, also after each restart. The Collector has what a limit of 128 MiB allows,
// with the GOMEMLIMIT that the chart derives from it.
func TestOneTenantsHugeObjectsCostTheOthersNothing(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "94MiB") // So this test runs alone.
	odd, ordinary := kube.newNamespace(t), kube.newNamespace(t)
	huge := strings.Repeat("x", 200<<10)
	kube.make(t, odd, "v1", "ConfigMap", "owned", ownedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: huge, UID: "uid"}))
	kube.make(t, odd, "v1", "ConfigMap", "annotated", annotated("team", huge))
	kube.make(t, ordinary, "v1", "ConfigMap", "plain", annotated("team", "shop"))

	settings := []string{
		fmt.Sprintf("receivers::kube_events: {namespaces: [%s, %s], storage: file_storage}", odd, ordinary),
		"receivers::kube_events::extract::annotations: [{tag_name: team, key: team}]",
		fmt.Sprintf("extensions::file_storage: {directory: %q}", t.TempDir()),
		"service::extensions: [file_storage]",
	}
	const each = 400 // events about an object, of 150 bytes each
	records := func(col *collector, reason string) (found []record) {
		for _, r := range col.emitted() {
			if r.text("k8s.event.reason") == reason {
				found = append(found, r)
			}
		}
		return found
	}

	col := startCollector(t, kube.Kubeconfig(), settings...)
	for round := range 2 {
		for _, object := range []struct{ namespace, name string }{{odd, "owned"}, {odd, "annotated"}, {ordinary, "plain"}} {
			kube.makeEvents(t, object.namespace, each, func(int) *corev1.Event {
				ev := eventAbout(fmt.Sprintf("%s%d", object.name, round), corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: object.name})
				ev.Name = unique("tenant")
				return ev
			})
		}
		for reason, check := range map[string]func(r record){
			"owned":     func(r record) { assert.Equal(t, "not_found", r.resolution()) },
			"annotated": func(r record) { assert.Len(t, r.text("team"), 1<<10) },
			"plain":     func(r record) { assert.Equal(t, "shop", r.text("team")) },
		} {
			eventually(t, func() bool { return len(records(col, fmt.Sprint(reason, round))) >= each }, "the events about %s", reason)
			for _, r := range records(col, fmt.Sprint(reason, round)) {
				check(r)
			}
		}
		process, err := procfs.NewProc(col.PID())
		require.NoError(t, err)
		status, err := process.NewStatus()
		require.NoError(t, err)
		assert.LessOrEqual(t, status.VmHWM>>20, uint64(128), "MiB of memory at most, in process %d", round)
		require.NoError(t, col.Kill())
		col = startCollector(t, kube.Kubeconfig(), settings...)
	}
}
