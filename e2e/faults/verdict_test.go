// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// row is what a fault did to the events, in numbers of occurrences unless it says otherwise.
type row struct {
	fault     string
	made      int64
	delivered int64 // distinct ones
	refused   int64 // distinct ones that the pipeline refused for good
	lost      int64
	repeated  int   // records with a log.record.uid that had come before
	surplus   int64 // counted twice by who goes by log.record.uid
	metric    int64
	ownSums   bool // leaders begin sums of their own, so their total says nothing
	remark    string
}

func (r row) String() string {
	return fmt.Sprintf("%s: %d made, %d delivered, %d refused for good, %d lost, %d records repeated, %d not recognisable, metric %d of %d. %s",
		r.fault, r.made, r.delivered, r.refused, r.lost, r.repeated, r.surplus, r.metric, r.made, r.remark)
}

// judge compares what there was with what came.
func judge(truth map[string]int64, records []record, points []point) (r row) {
	seen := map[string]bool{}
	came, refused := map[string]*covered{}, map[string]*covered{}
	var distinct int64
	for _, rec := range records {
		if came[rec.event] == nil {
			came[rec.event], refused[rec.event] = &covered{}, &covered{}
		}
		if rec.refused {
			refused[rec.event].add(rec)
			distinct += rec.occurrences
			continue
		}
		came[rec.event].add(rec)
		if seen[rec.uid] {
			r.repeated++
			continue
		}
		seen[rec.uid] = true
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

// covered are the occurrences of one event that records told of: each tells of those up to its count.
type covered struct{ spans [][2]int64 }

func (c *covered) add(r record) {
	c.spans = append(c.spans, [2]int64{r.count - r.occurrences, r.count})
}

func (c *covered) size() (sum int64) {
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

// settle ends the load and waits until nothing is missing any more, or for long in vain.
func (s *scene) settle(t *testing.T) {
	t.Helper()
	s.load.end()
	assert.Empty(t, s.load.mistakes, "writes that the API server does not take are a mistake of the test")
	within(90*time.Second, func() bool {
		r := judge(s.load.truth(), recordsIn(s.namespace, s.sink.took()), pointsIn(s.namespace, s.sink.metered()))
		return r.lost == 0 && (s.metricDiffers || s.memoryIsLost || r.metric == r.made)
	})
}

// within polls until a condition holds, or for so long in vain.
func within(limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if holds() {
			return true
		}
	}
	return holds()
}
