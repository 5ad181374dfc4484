// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// restarts is a Collector that is killed and started again with the same storage.
type restarts struct {
	c         *cluster
	namespace string
	directory string // of file_storage
}

// start starts the Collector.
func (r restarts) start(t *testing.T, settings ...string) *collector {
	t.Helper()
	return startCollector(t, r.c.Kubeconfig(), append(settings,
		"receivers::kube_events::namespaces: ["+r.namespace+"]",
		"receivers::kube_events::storage: file_storage",
		fmt.Sprintf("extensions::file_storage: {directory: %q}", r.directory),
		"service::extensions: [file_storage]",
	)...)
}

// recordOf makes an event and returns its record.
func (r restarts) recordOf(t *testing.T, col *collector, ev *corev1.Event) record {
	t.Helper()
	name := r.c.makeEvent(t, r.namespace, ev).Name
	var found []record
	eventually(t, func() bool {
		found = nil
		for _, rec := range col.emitted() {
			if rec.text("k8s.event.name") == name {
				found = append(found, rec)
			}
		}
		return len(found) > 0
	}, "a record of %s", name)
	return found[0]
}

func TestAfterAKillTheOwnersOfObjectsThatAreDeletedMeanwhileAreKnown(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	for name, settings := range map[string][]string{
		"with the same configuration": nil,
		"and a label is newly wanted": {"receivers::kube_events::extract::labels: [{tag_name: tilt.manifest, key: tilt-manifest}, {tag_name: team, key: team}]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := restarts{c, c.newNamespace(t), t.TempDir()}
			pod, rs, deployment := c.makeShop(t, r.namespace)
			want := merge(completeChainOf(pod, rs, deployment), map[string]any{"tilt.manifest": "shop"})

			first := r.start(t)
			before := r.recordOf(t, first, eventAbout("Created", referenceTo(pod)))
			resourceIs(t, before, want)
			first.Kill()
			for _, o := range []*object{pod, rs, deployment} {
				c.remove(t, o)
			}

			second := r.start(t, settings...)
			after := r.recordOf(t, second, eventAbout("Killing", referenceTo(pod)))
			resourceIs(t, after, want)
			assert.Equal(t, "complete", after.resolution())

			// Another pod of the name has no owner, and is not the old one.
			again := c.make(t, r.namespace, "v1", "Pod", pod.GetName())
			resourceIs(t, r.recordOf(t, second, eventAbout("Created", referenceTo(again))), completeChainOf(again))
		})
	}
}
