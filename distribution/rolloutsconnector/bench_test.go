// SPDX-License-Identifier: Apache-2.0

package rolloutsconnector

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
)

// load returns the records of pods: half of them of ten that start in each rollout, the others of a
// thousand that crash again and again. They are in requests of the same size.
func load(e *environment, count, size int, epoch time.Time) (requests []plog.Logs) {
	steps := []happening{
		{reason: "Scheduled", message: "Successfully assigned shop/web to worker-1"},
		{reason: "Pulling", message: `Pulling image "registry.example.com/team/app:1.2.3"`, container: "app"},
		{reason: "Pulled", message: `Successfully pulled image "registry.example.com/team/app:1.2.3" in 1.234s (1.234s including waiting). Image size: 123456789 bytes.`, container: "app"},
		{reason: "Created", message: "Container created", container: "app"},
		{reason: "Started", message: "Container started", container: "app"},
	}
	of := func(pod int) subject {
		d := subject{kind: "Deployment", name: fmt.Sprint("web-", pod/10), uid: fmt.Sprint("uid-web-", pod/10)}
		rs := d.owned("ReplicaSet", d.name+"-5d9c8f", "uid-rs-"+d.name)
		return rs.owned("Pod", fmt.Sprint(rs.name, "-", pod), fmt.Sprint("uid-", pod))
	}
	var records []record
	for i := range count {
		at := time.Duration(i) * time.Millisecond
		if i%2 == 0 {
			h := steps[i/2%len(steps)]
			h.at, h.about = at, of(1000+i/2/len(steps))
			records = append(records, record{h, fmt.Sprint("event-", i), at, 1})
			continue
		}
		h := happening{at, of(i / 2 % 1000), "BackOff", "Back-off restarting failed container app", "app"}
		records = append(records, record{h, fmt.Sprint("back-off-", i/2%1000), 0, int64(1 + i/2/1000)})
	}
	for len(records) > 0 {
		n := min(size, len(records))
		requests, records = append(requests, e.logsOf(records[:n], epoch)), records[n:]
	}
	return requests
}

// BenchmarkConsumeLogs measures what a record costs, with storage in memory: requests of one record are
// those of 100 records a second, and requests of 20 those of 1,000.
func BenchmarkConsumeLogs(b *testing.B) {
	for _, stored := range []bool{false, true} {
		for _, size := range []int{1, 20} {
			b.Run(fmt.Sprintf("storage %v, %d a request", stored, size), func(b *testing.B) {
				const count = 20_000
				requests := load(&environment{}, count, size, time.Now())
				b.ReportAllocs()
				var written int
				for b.Loop() {
					b.StopTimer()
					var d *disk
					if stored {
						d = &disk{values: map[string][]byte{}}
					}
					p := start(b, d, nil)
					b.StartTimer()
					for _, logs := range requests {
						require.NoError(b, p.ConsumeLogs(b.Context(), logs))
					}
					b.StopTimer()
					p.stop(b)
					if d != nil {
						written = d.written
					}
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/record")
				b.ReportMetric(float64(written)/count, "B/record")
			})
		}
	}
}
