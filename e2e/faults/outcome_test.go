// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/account"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// row is what a fault did to the events, in numbers of occurrences unless a field's comment names
// another unit.
type row struct {
	account.Outcome

	fault   string
	saves   bool // with storage, so that no repeated record may be altered
	metric  int64
	ownSums bool // leaders begin sums of their own, so their total has no meaning
	remark  string
}

func (r row) String() string {
	return fmt.Sprintf("%s: %d made, %d delivered, %d refused permanently, %d lost, %d records repeated (%d altered), %d not recognisable, metric %d of %d. %s",
		r.fault, r.Made, r.Delivered, r.Rejected, r.Lost, r.Repeated, r.Altered, r.Surplus, r.metric, r.Made, r.remark)
}

// judge compares what there was with what came.
func judge(truth map[string]int64, records []record, points []point) row {
	return row{Outcome: account.Judge(truth, accounts(records)), metric: total(points)}
}

// accounts are what counts in records.
func accounts(records []record) (all []account.Record) {
	for _, r := range records {
		all = append(all, r.Record)
	}
	return all
}

// total is the sum of the metric's newest points.
func total(points []point) (sum int64) {
	newest := map[string]int64{}
	for _, p := range points {
		newest[p.series] = p.value
	}
	for _, value := range newest {
		sum += value
	}
	return sum
}

// assertSteady checks that no series of the metric ever falls, nor changes its start time.
func assertSteady(t *testing.T, points []point) {
	t.Helper()
	newest, starts := map[string]int64{}, map[string]pcommon.Timestamp{}
	for _, p := range points {
		if p.value < newest[p.series] {
			assert.Fail(t, "the metric fell", "from %d to %d: %s", newest[p.series], p.value, p.series)
		}
		if start, ok := starts[p.series]; ok && start != p.start {
			assert.Fail(t, "the metric's start time changed", "from %s to %s: %s", start.AsTime(), p.start.AsTime(), p.series)
		}
		newest[p.series], starts[p.series] = p.value, p.start
	}
}

// assertStill checks that no series of the metric changes its value.
func assertStill(t *testing.T, points []point) {
	t.Helper()
	values := map[string]int64{}
	for _, p := range points {
		if value, ok := values[p.series]; ok && value != p.value {
			assert.Fail(t, "the metric moved", "from %d to %d: %s", value, p.value, p.series)
		}
		values[p.series] = p.value
	}
}

// assertRepeatsAreTheSame checks that a record whose occurrences were delivered by then is the same
// as the one that delivered them.
func assertRepeatsAreTheSame(t *testing.T, records []record, by int) {
	t.Helper()
	came, first := account.CoveredBy(accounts(records[:by])), map[string]digest{}
	for _, rec := range records[:by] {
		first[rec.UID] = rec.Content
	}
	for _, rec := range records[by:] {
		old := came[rec.Event]
		if old == nil {
			continue
		}
		if old.With(rec.Record).Size() < old.Size()+rec.Occurrences && first[rec.UID] != rec.Content {
			assert.Fail(t, "a saved record was delivered again, but not as it was", "%+v", rec)
		}
	}
}

// recordsIn are those of a namespace.
func recordsIn(namespace string, all []record) (found []record) {
	for _, r := range all {
		if r.namespace == namespace {
			found = append(found, r)
		}
	}
	return found
}

func pointsIn(namespace string, all []point) (found []point) {
	for _, p := range all {
		if p.namespace == namespace {
			found = append(found, p)
		}
	}
	return found
}

// settle ends the load and waits until nothing is missing any more, or for long without success.
func (f *fixture) settle(t *testing.T) {
	t.Helper()
	for _, l := range f.loads {
		l.End()
		assert.Empty(t, l.Mistakes(), "writes that the API server does not take are a mistake of the test")
	}
	f.awaitAll(t)
}

// awaitAll waits until all that has occurred so far is delivered and counted.
func (f *fixture) awaitAll(t *testing.T) {
	t.Helper()
	harness.Poll(90*time.Second, func() bool {
		r := judge(f.truth(), recordsIn(f.namespace, f.sink.allRecords()), pointsIn(f.namespace, f.sink.allPoints()))
		return r.Lost == 0 && (f.metricDiffers || f.memoryIsLost || r.metric == r.Made)
	})
}
