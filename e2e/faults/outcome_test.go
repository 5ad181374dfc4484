// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// row is what a fault did to the events, in numbers of occurrences unless a field's comment names
// another unit.
type row struct {
	fault     string
	made      int64
	delivered int64 // distinct ones
	refused   int64 // distinct ones that the pipeline refused permanently
	lost      int64
	repeated  int   // records with a log.record.uid that had come before
	altered   int   // those of them that are not the same as the first, byte for byte
	saves     bool  // with storage, so that none may be altered
	surplus   int64 // counted twice by a user who deduplicates by log.record.uid
	metric    int64
	ownSums   bool // leaders begin sums of their own, so their total has no meaning
	remark    string
}

func (r row) String() string {
	return fmt.Sprintf("%s: %d made, %d delivered, %d refused permanently, %d lost, %d records repeated (%d altered), %d not recognisable, metric %d of %d. %s",
		r.fault, r.made, r.delivered, r.refused, r.lost, r.repeated, r.altered, r.surplus, r.metric, r.made, r.remark)
}

// judge compares what there was with what came.
func judge(truth map[string]int64, records []record, points []point) (r row) {
	first, refusedOnce := map[string]digest{}, map[string]bool{}
	came, refused := map[string]*covered{}, map[string]*covered{}
	var distinct int64
	for _, rec := range records {
		if came[rec.event] == nil {
			came[rec.event], refused[rec.event] = &covered{}, &covered{}
		}
		if rec.refused {
			refused[rec.event].add(rec)
			if !refusedOnce[rec.uid] {
				distinct += rec.occurrences
			}
			refusedOnce[rec.uid] = true
			continue
		}
		came[rec.event].add(rec)
		if bytes, repeats := first[rec.uid]; repeats {
			r.repeated++
			if bytes != rec.bytes {
				r.altered++
			}
			continue
		}
		first[rec.uid] = rec.bytes
		distinct += rec.occurrences
	}
	for event, made := range truth {
		r.made += made
		if came[event] == nil {
			r.lost += made
			continue
		}
		r.delivered += came[event].size()
		both := *came[event]
		both.spans = slices.Concat(both.spans, refused[event].spans)
		r.refused += both.size() - came[event].size()
		r.lost += made - both.size()
	}
	r.surplus = distinct - r.delivered - r.refused
	r.metric = total(points)
	return r
}

// covered are the occurrences of one event that records contain: each contains those up to its
// count.
type covered struct{ spans [][2]int64 }

// coveredBy are the occurrences that records have, by event.
func coveredBy(records []record) map[string]*covered {
	came := map[string]*covered{}
	for _, r := range records {
		if came[r.event] == nil {
			came[r.event] = &covered{}
		}
		came[r.event].add(r)
	}
	return came
}

func (c *covered) add(r record) {
	c.spans = append(c.spans, [2]int64{r.count - r.occurrences, r.count})
}

func (c *covered) size() (sum int64) {
	if c == nil {
		return 0
	}
	slices.SortFunc(c.spans, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
	var end int64
	for _, span := range c.spans {
		if span[1] > end {
			sum += span[1] - max(end, span[0])
			end = span[1]
		}
	}
	return sum
}

// distinct is how many occurrences records have, without those with a log.record.uid that came
// before.
func distinct(records []record) (sum int64) {
	seen := map[string]bool{}
	for _, r := range records {
		if !seen[r.uid] {
			sum += r.occurrences
		}
		seen[r.uid] = true
	}
	return sum
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
	came, first := coveredBy(records[:by]), map[string]digest{}
	for _, rec := range records[:by] {
		first[rec.uid] = rec.bytes
	}
	for _, rec := range records[by:] {
		old := came[rec.event]
		if old == nil {
			continue
		}
		with := covered{slices.Clone(old.spans)}
		with.add(rec)
		if with.size() < old.size()+rec.occurrences && first[rec.uid] != rec.bytes {
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
		l.end()
		assert.Empty(t, l.mistakes, "writes that the API server does not take are a mistake of the test")
	}
	f.awaitAll(t)
}

// awaitAll waits until all that has occurred so far is delivered and counted.
func (f *fixture) awaitAll(t *testing.T) {
	t.Helper()
	harness.Poll(90*time.Second, func() bool {
		r := judge(f.truth(), recordsIn(f.namespace, f.sink.allRecords()), pointsIn(f.namespace, f.sink.allPoints()))
		return r.lost == 0 && (f.metricDiffers || f.memoryIsLost || r.metric == r.made)
	})
}
