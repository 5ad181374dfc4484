// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

// bars is the number of bars of a chart.
const bars = 60

// chart shows occurrences over time, as bars in a square of 100 by 100.
type chart struct {
	Bars []chartBar
	Peak int64 // the highest bar's occurrences
}

// chartBar shows the occurrences of a part of the time. Warnings are above normal occurrences.
type chartBar struct {
	incident.Slot
	Until                   time.Time
	X, Width                float64
	NormalY, NormalHeight   float64
	WarningY, WarningHeight float64
}

func chartOf(slots []incident.Slot) (drawn chart) {
	length := slots[1].From.Sub(slots[0].From)
	for _, s := range slots {
		drawn.Peak = max(drawn.Peak, s.Normal+s.Warnings)
	}
	for i, s := range slots {
		if s.Normal+s.Warnings == 0 {
			continue
		}
		share := 100 / float64(drawn.Peak)
		b := chartBar{Slot: s, Until: s.From.Add(length), X: float64(i) * 100 / bars, Width: 90. / bars}
		b.NormalHeight, b.WarningHeight = float64(s.Normal)*share, float64(s.Warnings)*share
		b.NormalY = 100 - b.NormalHeight
		b.WarningY = max(0, b.NormalY-b.WarningHeight)
		drawn.Bars = append(drawn.Bars, b)
	}
	return drawn
}
