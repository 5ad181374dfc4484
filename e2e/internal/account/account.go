// SPDX-License-Identifier: Apache-2.0

// Package account compares the occurrences of events that there were with those in the records that
// a backend received.
package account

import "slices"

// Record is what counts in a log record.
type Record struct {
	Event              string // its name
	UID                string // log.record.uid
	Count, Occurrences int64
	Rejected           bool // the backend rejected it permanently
}

// Outcome is how many occurrences there were, and what became of them.
type Outcome struct {
	Made      int64
	Delivered int64 // distinct ones
	Rejected  int64 // distinct ones that the backend rejected permanently
	Lost      int64
	Repeated  int   // records with a log.record.uid that had come before
	Surplus   int64 // counted twice by a user who deduplicates by log.record.uid
}

// Judge compares the true number of occurrences of each event with the records that came.
func Judge(truth map[string]int64, records []Record) (o Outcome) {
	delivered, rejectedOnce := map[string]bool{}, map[string]bool{}
	came, rejected := map[string]*Covered{}, map[string]*Covered{}
	var distinct int64
	for _, r := range records {
		if came[r.Event] == nil {
			came[r.Event], rejected[r.Event] = &Covered{}, &Covered{}
		}
		if r.Rejected {
			rejected[r.Event].Add(r)
			if !rejectedOnce[r.UID] {
				distinct += r.Occurrences
			}
			rejectedOnce[r.UID] = true
			continue
		}
		came[r.Event].Add(r)
		if delivered[r.UID] {
			o.Repeated++
			continue
		}
		delivered[r.UID] = true
		distinct += r.Occurrences
	}
	for event, made := range truth {
		o.Made += made
		if came[event] == nil {
			o.Lost += made
			continue
		}
		o.Delivered += came[event].Size()
		both := Covered{slices.Concat(came[event].spans, rejected[event].spans)}
		o.Rejected += both.Size() - came[event].Size()
		o.Lost += made - both.Size()
	}
	o.Surplus = distinct - o.Delivered - o.Rejected
	return o
}

// Covered are the occurrences of one event that records contain: each contains those up to its
// count.
type Covered struct{ spans [][2]int64 }

// CoveredBy are the occurrences that records have, by event.
func CoveredBy(records []Record) map[string]*Covered {
	came := map[string]*Covered{}
	for _, r := range records {
		if came[r.Event] == nil {
			came[r.Event] = &Covered{}
		}
		came[r.Event].Add(r)
	}
	return came
}

// Add adds the occurrences of a record.
func (c *Covered) Add(r Record) {
	c.spans = append(c.spans, [2]int64{r.Count - r.Occurrences, r.Count})
}

// Size is how many distinct occurrences these are; 0 for nil.
func (c *Covered) Size() (sum int64) {
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
