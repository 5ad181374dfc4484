// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// BenchmarkRecord is what a record costs, from the pipeline to the storage. Half of the records repeat Events.
func BenchmarkRecord(b *testing.B) {
	w := startWatching(b, newDisks(), nil)
	defer w.stop(b)
	var all []plog.Logs
	for i := range 200 {
		batch := plog.NewLogs()
		for j := range 50 {
			line := fmt.Sprintf("0s Pod/web%d-aaa-%d !Unhealthy{app} node=node-%d namespace=n%d event=%d x%d/0s: Readiness probe failed: HTTP probe failed with statuscode: 503", i%100, j, j, i%10, (i*50+j)%5000, 1+i/100)
			story.Records(line)[0].Logs(time.Now()).ResourceLogs().MoveAndAppendTo(batch.ResourceLogs())
		}
		all = append(all, batch)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		t := w.all[1].(*output).tracker
		t.take(context.Background(), all[i%len(all)])
		t.watch.live.AddUnlessUsed()
		t.watch.store.save(context.Background(), t.watch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(50*b.N), "ns/record")
}
