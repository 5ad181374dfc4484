// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"iter"
	"time"
)

// chart shows occurrences over time, as bars in a square of 100 by 100.
type chart struct {
	Bars        []bar
	Peak        int64 // the highest bar's occurrences
	Each        time.Duration
	From, Until time.Time
}

// bar shows the occurrences of a part of the time. Warnings are above normal occurrences.
type bar struct {
	From, Until             time.Time
	All, Warnings           int64
	X, Width                float64
	NormalY, NormalHeight   float64
	WarningY, WarningHeight float64
}

// chartOf draws counts since the start of the filter's span.
func chartOf(counts iter.Seq2[time.Time, count], f filter, now time.Time) chart {
	var counted [bars]struct{ all, warnings int64 }
	start, each := f.start(now), f.barLength()
	for at, c := range counts {
		in := &counted[min(int(at.Sub(start)/each), bars-1)]
		in.all += c.n
		if c.of.Value().isWarning() {
			in.warnings += c.n
		}
	}
	drawn := chart{Each: each, From: start, Until: now}
	for _, in := range counted {
		drawn.Peak = max(drawn.Peak, in.all)
	}
	for i, in := range counted {
		if in.all == 0 {
			continue
		}
		height := 100 / float64(drawn.Peak)
		b := bar{
			From: start.Add(time.Duration(i) * each), Until: start.Add(time.Duration(i+1) * each), All: in.all, Warnings: in.warnings,
			X: float64(i) * 100 / bars, Width: 90.0 / bars,
			NormalHeight: float64(in.all-in.warnings) * height, WarningHeight: float64(in.warnings) * height,
		}
		b.NormalY = 100 - b.NormalHeight
		b.WarningY = max(0, b.NormalY-b.WarningHeight)
		drawn.Bars = append(drawn.Bars, b)
	}
	return drawn
}
