// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// entry is a part of a write.
type entry struct {
	key   Key
	value []byte
}

// Any sequence of what can happen to a tally: the accepted points of a series are in order.
func TestPointsAreInOrderWhateverHappens(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(200) {
		if problem := randomSequence(seed); problem != "" {
			first, _, _ := strings.Cut(problem, " {")
			first, _, _ = strings.Cut(first, "\n")
			if count[first]++; count[first] == 1 {
				t.Error(seed, problem)
			}
		}
	}
}

func randomSequence(seed uint64) (problem string) {
	r := rand.New(rand.NewPCG(seed, 1))
	config := Config{MaxSeries: 1 + r.IntN(4), SeriesTTL: 20 * time.Second, InitialZero: r.IntN(4) > 0}
	if r.IntN(2) == 0 {
		config.Disabled = semconv.Disabled{"k8s.workload.name": true, "k8s.workload.uid": true}
	}
	saves := r.IntN(3) > 0
	now := start
	tick := func() {
		now = now.Add(time.Duration(r.IntN(4000)) * time.Millisecond)
		if r.IntN(20) == 0 { // The clock is set, or the next process runs on another node.
			now = now.Add(time.Duration(r.IntN(60_000)-30_000) * time.Millisecond)
		}
	}
	log := ""
	note := func(format string, args ...any) { log += fmt.Sprintf(format, args...) + "\n" }
	reconfigured := false // A series that began without its 0 may continue with it.
	var writes [][]entry
	var emitted, newest time.Time // as it is saved, and of the accepted points
	open := func() *Tally {
		tally := New(config, now)
		if !saves {
			return tally
		}
		tally.Track()
		defer func() { tally.RestoreEmitted(emitted) }()
		for _, w := range writes {
			r.Shuffle(len(w), func(i, j int) { w[i], w[j] = w[j], w[i] })
			for _, e := range w {
				if err := tally.Restore(e.key, e.value); err != nil {
					return nil
				}
			}
		}
		return tally
	}
	tally := open()
	reopen := func() {
		if r.IntN(4) == 0 {
			config.InitialZero, reconfigured = !config.InitialZero, true
			note("initial zero: %v", config.InitialZero)
		}
		tally = open()
	}
	type state struct {
		start, at time.Time
		value     int64
	}
	accepted := map[string]state{}
	rejected := map[string]bool{} // the 0 of these series
	truth := map[string]int64{}
	check := func(m iter.Seq[pmetric.Metrics]) {
		each(m, func(dp pmetric.NumberDataPoint) {
			id := fmt.Sprint(dp.Attributes().AsRaw())
			s, known := accepted[id]
			n := state{dp.StartTimestamp().AsTime(), dp.Timestamp().AsTime(), dp.IntValue()}
			note("  accepted %s %v", id[max(0, len(id)-90):], n)
			switch {
			case problem != "":
			case n.at.Before(n.start):
				problem = "before its start"
			case known && s.start.Equal(n.start) && n.value == 0 && s.value == 0 && s.at.Equal(n.at) && saves:
				return // After a crash.
			case known && !n.at.After(s.at):
				problem = fmt.Sprint("not after the one before ", s)
			case known && s.start.Equal(n.start) && n.value < s.value:
				problem = "falls"
			case known && n.start.Before(s.start):
				problem = "starts before"
			case config.InitialZero && !reconfigured && (!known || !s.start.Equal(n.start)) && n.value != 0 && !rejected[fmt.Sprint(dp.Attributes().AsRaw(), n.start)]:
				problem = "begins with a value"
			}
			accepted[id] = n
			if n.at.After(newest) {
				newest = n.at
			}
		})
	}
	for range 150 {
		tick()
		switch r.IntN(10) {
		case 0, 1, 2:
			o := seen(fmt.Sprint("R", r.IntN(2)), int64(1+r.IntN(5)), resolver.Complete, deployment(string(rune('a'+r.IntN(3)))))
			o.SeenAt = now.Add(-time.Duration(r.IntN(10)) * time.Second * time.Duration(r.IntN(2)))
			add(tally, now, o)
			truth[o.Event.Reason] += o.Occurrences
			note("%v add %s %d seen %v", now.Sub(start), o.Event.Reason, o.Occurrences, o.SeenAt.Sub(start))
		case 3, 4, 5:
			tally.Expire(now)
			m := tally.Metrics(Scope{}, semconv.Cluster{}, now)
			ok := r.IntN(3) > 0
			note("%v metrics %v", now.Sub(start), ok)
			if !ok {
				each(m, func(dp pmetric.NumberDataPoint) {
					rejected[fmt.Sprint(dp.Attributes().AsRaw(), dp.StartTimestamp().AsTime())] = true
				})
			}
			if ok {
				if r.IntN(4) == 0 && saves { // A crash before it is noted.
					check(m)
					note("crash")
					tick()
					now = later(now, newest.Add(time.Second)) // An emission alone is not saved.
					reopen()
					break
				}
				check(m)
				tally.Emitted()
			}
		case 6, 7, 8:
			if !saves {
				break
			}
			var w []entry
			for _, k := range tally.TakeChanged() {
				w = append(w, entry{k, tally.Value(k)})
			}
			note("%v save %d", now.Sub(start), len(w))
			if r.IntN(5) == 0 {
				add(tally, now, seenAt(now, 1))
			}
			writes = append(writes, w)
			emitted = tally.TakeEmitted()
			tally.Saved()
		case 9:
			if r.IntN(3) > 0 {
				break
			}
			if saves { // An orderly restart, whose last emission is accepted.
				tally.End(now)
				var w []entry
				for _, k := range tally.TakeChanged() {
					w = append(w, entry{k, tally.Value(k)})
				}
				writes = append(writes, w)
				emitted = tally.TakeEmitted()
				tally.Saved()
				tick()
				note("%v end", now.Sub(start))
				check(tally.Metrics(Scope{}, semconv.Cluster{}, now))
				tally.Emitted()
				tick()
				now = now.Add(time.Second)
				before, usage := sums(tally, now), tally.countLocked()
				reopen()
				if after := sums(tally, now); fmt.Sprint(before) != fmt.Sprint(after) || usage != tally.countLocked() {
					problem = fmt.Sprint("restored as others ", usage, before, tally.countLocked(), after)
				}
			} else {
				tally.End(now)
				note("%v end", now.Sub(start))
				tally.Expire(now)
				check(tally.Metrics(Scope{}, semconv.Cluster{}, now))
				tally.Emitted()
				tick()
				now = now.Add(time.Second)
				tally.Reset(now)
			}
		}
		if problem != "" {
			return problem + "\n" + log
		}
	}
	return ""
}
