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
	End         time.Time // of the last bar
}

// bar shows the occurrences of a part of the time. Warnings are above normal occurrences.
type bar struct {
	From, Until             time.Time
	All, Warnings           int64
	X, Width                float64
	NormalY, NormalHeight   float64
	WarningY, WarningHeight float64
}

// chartOf draws counts of the filter's window.
func chartOf(counts iter.Seq2[time.Time, count], f filter, now time.Time) chart {
	w := f.window(now)
	counted := make([]struct{ all, warnings int64 }, w.bars)
	for at, c := range counts {
		in := &counted[min(int(at.Sub(w.start)/w.each), w.bars-1)]
		in.all += c.n
		if c.of.Value().isWarning() {
			in.warnings += c.n
		}
	}
	drawn := chart{Each: w.each, From: w.start, Until: earlier(now, w.end()), End: w.end()}
	for _, in := range counted {
		drawn.Peak = max(drawn.Peak, in.all)
	}
	for i, in := range counted {
		if in.all == 0 {
			continue
		}
		height := 100 / float64(drawn.Peak)
		b := bar{
			From: w.barAt(i), Until: w.barAt(i + 1), All: in.all, Warnings: in.warnings,
			X: float64(i) * 100 / float64(w.bars), Width: 90 / float64(w.bars),
			NormalHeight: float64(in.all-in.warnings) * height, WarningHeight: float64(in.warnings) * height,
		}
		b.NormalY = 100 - b.NormalHeight
		b.WarningY = max(0, b.NormalY-b.WarningHeight)
		drawn.Bars = append(drawn.Bars, b)
	}
	return drawn
}
