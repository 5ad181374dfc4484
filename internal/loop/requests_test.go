// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// TestABatchBecomesAsFewRequestsAsItsSizeAllows, although records are larger than those that were
// measured last.
func TestABatchBecomesAsFewRequestsAsItsSizeAllows(t *testing.T) {
	p := waitingProcess(t, componenttest.NewTelemetry())
	s := p.openToTest()
	for batchNumber := range 5 {
		b := &batch{}
		for i := range batchChanges {
			ev := aboutPod(i)
			ev.Message = strings.Repeat("x", 1000)
			if i < batchChanges/2 {
				ev.Message += strings.Repeat("x", 20)
			}
			b.records = append(b.records, observation.Observation{Event: ev, Occurrences: 1, SeenAt: time.Now()})
		}
		s.resolve(t.Context(), b)
		requests := s.pipeline.convert(b.records)
		records, bytes := 0, 0
		for _, r := range requests {
			size := (&plog.ProtoMarshaler{}).LogsSize(r.logs())
			assert.LessOrEqual(t, size, requestBytes)
			records, bytes = records+len(r.records), bytes+size
		}
		require.Equal(t, batchChanges, records)
		assert.Len(t, requests, bytes/requestBytes+1, "batch %d of %d bytes", batchNumber, bytes)
	}
}
