// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"net/url"
	"strconv"
	"time"
)

const (
	// maxBars is the number of bars that a chart has room for.
	maxBars = 60
	// shortestSpan is the time that the chart shows at least while the page has few records.
	shortestSpan = time.Minute
)

// window is the time that the page shows, in bars of the same length.
type window struct {
	start time.Time // of the first bar
	each  time.Duration
	bars  int
}

// barAt returns the start of a bar.
func (w window) barAt(i int) time.Time { return w.start.Add(time.Duration(i) * w.each) }

// end returns the end of the last bar.
func (w window) end() time.Time { return w.barAt(w.bars) }

// window returns the time of the zoom. Without a zoom, the last bar contains now, and the first one is
// as far back as the filter looks, or has the oldest record.
func (f filter) window(now time.Time) window {
	if f.Zoomed() {
		return zoomedWindow(f.From, f.Until)
	}
	each := spans[f.Minutes] / maxBars
	start := now.Truncate(each).Add(-(maxBars - 1) * each)
	if first := earlier(f.oldest, now.Add(slotLength-shortestSpan)); f.Minutes == defaultMinutes && first.After(start) {
		return windowFrom(first, now)
	}
	return window{start, each, maxBars}
}

// windowFrom returns the window with the shortest bars for which there is room. They end with the one
// that contains now.
func windowFrom(first, now time.Time) (w window) {
	for w.each = slotLength; ; w.each += slotLength {
		w.start = first.Truncate(w.each)
		w.bars = int(now.Truncate(w.each).Sub(w.start)/w.each) + 1
		if w.bars <= maxBars {
			return w
		}
	}
}

func zoomedWindow(from, until time.Time) window {
	length := until.Sub(from)
	each := max(slotLength, roundUp(length/maxBars, slotLength))
	return window{from, each, int(roundUp(length, each) / each)}
}

func roundUp(d, to time.Duration) time.Duration { return (d + to - 1).Truncate(to) }

// start returns the beginning of the first bar.
func (f filter) start(now time.Time) time.Time { return f.window(now).start }

// span returns how far back the page looks, for people.
func (f filter) span(now time.Time) string {
	minutes := int(roundUp(now.Sub(f.start(now)), time.Minute) / time.Minute)
	if minutes <= 1 {
		return "minute"
	}
	return strconv.Itoa(minutes) + " minutes"
}

// Zoomed reports whether the filter has a zoom.
func (f filter) Zoomed() bool { return !f.Until.IsZero() }

// Unzoomed returns the address of the page without the zoom.
func (f filter) Unzoomed() string {
	f.From, f.Until = time.Time{}, time.Time{}
	return f.Address()
}

// isOver reports whether a slot of time is after the zoom.
func (f filter) isOver(slot time.Time) bool { return f.Zoomed() && !slot.Before(f.Until) }

// zoomFrom returns the zoom in the page's address, in whole slots. It is zero if there is none, or if
// the page cannot show it.
func zoomFrom(query url.Values) (from, until time.Time) {
	from, noFrom := time.Parse(time.RFC3339, query.Get("from"))
	until, noUntil := time.Parse(time.RFC3339, query.Get("until"))
	from, until = from.UTC().Truncate(slotLength), until.UTC().Add(slotLength-1).Truncate(slotLength)
	if noFrom != nil || noUntil != nil || !from.Before(until) || until.Sub(from) > horizon {
		return time.Time{}, time.Time{}
	}
	return from, until
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
