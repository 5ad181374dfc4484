// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// TestTimesThatAnybodyMayWrite: no span ends before it starts, whatever time its records have.
func TestTimesThatAnybodyMayWrite(t *testing.T) {
	for _, at := range []pcommon.Timestamp{1, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
		for _, start := range []string{"0001-01-01T00:00:00Z", "1900-01-01T00:00:00Z", "2300-01-01T00:00:00Z", "9999-12-31T23:59:59Z"} {
			m := &Model{}
			for i, logs := range story.Logs(`0:00 Deployment/web ScalingReplicaSet event=1: Scaled up replica set web-aaa from 0 to 1
0:01 ReplicaSet/web-aaa SuccessfulCreate event=2: Created pod: web-aaa-1
0:02 Pod/web-aaa-1 Scheduled event=3: Successfully assigned shop/web-aaa-1 to node-0
0:03 Pod/web-aaa-1 !BackOff{app} x5 event=4: Back-off restarting failed container
0:04 Pod/web-aaa-1 Started{app} event=5: Container started`) {
				odd := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
				if i == 3 {
					odd.SetTimestamp(at)
					odd.Attributes().PutStr("k8s.event.start_time", start)
				}
				read, _ := Read(record.Read(logs), &Model{})
				m.Join(read)
			}
			spans := 0
			for _, w := range m.Workloads {
				for revision := range w.Revisions {
					for _, part := range w.Spans(revision, Options{Idle: time.Minute, Now: story.Epoch.Add(time.Hour)}) {
						for _, s := range part.Spans {
							spans++
							assert.LessOrEqual(t, s.Start, s.End, "%v, from %s: %s", at, start, s.Name)
							assert.Positive(t, s.Start+1, s.Name)
						}
					}
				}
			}
			require.NotZero(t, spans)
		}
	}
}
