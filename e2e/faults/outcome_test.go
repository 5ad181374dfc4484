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

	fault  string
	metric int64
	remark string
}

func (r row) String() string {
	return fmt.Sprintf("%s: %d made, %d delivered, %d refused permanently, %d lost, %d records repeated, %d not recognisable, metric %d. %s",
		r.fault, r.Made, r.Delivered, r.Rejected, r.Lost, r.Repeated, r.Surplus, r.metric, r.remark)
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

// counter is a series as one process counts it, in one term. The next one begins with 0 and a new start
// time.
type counter struct {
	replica, series string
	start           pcommon.Timestamp
}

func counterOf(p point) counter { return counter{p.replica, p.series, p.start} }

// total is the sum of the metric's newest points, of all processes and terms.
func total(points []point) (sum int64) {
	newest := map[counter]int64{}
	for _, p := range points {
		newest[counterOf(p)] = p.value
	}
	for _, value := range newest {
		sum += value
	}
	return sum
}

// assertSteady checks that no series of the metric ever falls, unless it has a new start time.
func assertSteady(t *testing.T, points []point) {
	t.Helper()
	newest := map[counter]int64{}
	for _, p := range points {
		if p.value < newest[counterOf(p)] {
			assert.Fail(t, "the metric fell", "from %d to %d: %s", newest[counterOf(p)], p.value, p.series)
		}
		newest[counterOf(p)] = p.value
	}
}

// occurrencesIn is the sum of k8s.event.occurrences over all records, also those that were repeated.
func occurrencesIn(records []record) (sum int64) {
	for _, r := range records {
		sum += r.Occurrences
	}
	return sum
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
		return r.Lost == 0 && (!f.countsAll() || r.metric == r.Made)
	})
}
