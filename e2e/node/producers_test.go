// SPDX-License-Identifier: Apache-2.0

package node

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// `make record-producers` runs all situations and writes their events to
// testdata/producers/kubernetes, where the golden test of the receiver reads them. `go test` runs
// only a few, because some take minutes.
var record = flag.Bool("record", false, "run all situations, and write their events to testdata/producers/kubernetes")

// producers causes the events that kubelet, scheduler and controllers record. A recorder and a
// Collector see all events of the cluster, also those of the node's start.
type producers struct {
	*cluster
	recorder *recorder
	emitted  *harness.Backend // what the Collector emits
}

func (c *cluster) newProducers(t *testing.T) *producers {
	t.Helper()
	p := &producers{cluster: c, emitted: harness.NewBackend(t)}
	harness.Run(t, harness.Otelcol(t), harness.InRepository("e2e", "node", "testdata", "producers.yaml"),
		"KUBECONFIG="+c.KubeconfigFor(t, "producers", "deploy/manifests/default.yaml"), "BACKEND="+p.emitted.URL)
	p.recorder = startRecorder(t, c.Cluster)
	return p
}

// run runs the situations, all at the same time.
func (p *producers) run(t *testing.T) {
	for _, s := range situations {
		if !s.always && !*record {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.run(t, p)
		})
	}
}

// applyManifest applies the situation's manifest, if it has one.
func (c *cluster) applyManifest(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join("e2e", "node", "testdata", "situations", name+".yaml")
	if _, err := os.Stat(harness.InRepository(path)); err == nil {
		c.Apply(t, path)
	}
}
