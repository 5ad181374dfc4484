// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

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
