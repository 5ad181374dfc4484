// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"testing"
	"testing/quick"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheTimeThatThePageShows(t *testing.T) {
	tests := map[string]struct {
		query  map[string][]string
		oldest time.Duration // before now; 0: there is no record
		want   window
		span   string
	}{
		"an hour":                       {nil, time.Hour, window{noon.Add(-59 * time.Minute), time.Minute, 60}, "60 minutes"},
		"an hour, without any record":   {nil, 0, window{noon.Add(-59 * time.Minute), time.Minute, 60}, "60 minutes"},
		"what there is":                 {nil, 5 * time.Minute, window{noon.Add(-5 * time.Minute), 10 * time.Second, 31}, "6 minutes"},
		"what there is, in longer bars": {nil, 20 * time.Minute, window{noon.Add(-20 * time.Minute), 30 * time.Second, 41}, "21 minutes"},
		"a minute, if there is less":    {nil, time.Second, window{noon.Add(-50 * time.Second), 10 * time.Second, 6}, "minute"},
		"ten minutes, if they are chosen": {
			map[string][]string{"minutes": {"10"}}, time.Minute, window{noon.Add(-590 * time.Second), 10 * time.Second, 60}, "10 minutes"},
		"a zoom": {
			map[string][]string{"from": {"2026-03-01T11:30:04Z"}, "until": {"2026-03-01T13:31:01+02:00"}}, time.Hour,
			window{noon.Add(-30 * time.Minute), 10 * time.Second, 7}, ""},
		"a zoom in longer bars": {
			map[string][]string{"from": {"2026-03-01T11:30:00Z"}, "until": {"2026-03-01T11:50:10Z"}}, time.Hour,
			window{noon.Add(-30 * time.Minute), 30 * time.Second, 41}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			now := noon.Add(3 * time.Second)
			f := filterFrom(tt.query)
			if tt.oldest != 0 {
				f.oldest = now.Add(-tt.oldest).Truncate(slotLength)
			}
			assert.Equal(t, tt.want, f.window(now))
			if !f.Zoomed() {
				assert.Equal(t, tt.span, f.span(now))
			}
		})
	}
}

func TestTheChartHasAllThatThePageHas(t *testing.T) {
	check := func(age uint16, seconds uint8) bool {
		now := noon.Add(time.Duration(seconds) * time.Second)
		f := filterFrom(nil)
		f.oldest = now.Add(-time.Duration(age) * time.Second % (59 * time.Minute)).Truncate(slotLength)
		w := f.window(now)
		return assert.False(t, f.oldest.Before(w.start)) && assert.LessOrEqual(t, w.bars, maxBars) &&
			assert.False(t, now.Before(w.barAt(w.bars-1)), "the last bar") && assert.True(t, now.Before(w.end()), "the last bar")
	}
	require.NoError(t, quick.Check(check, nil))
}

// backOffs returns entries of one event that occurs once in each of the last slots.
func backOffs(slots int) (all []entry) {
	for i := range slots {
		all = append(all, podEvent("fe", "a", "BackOff", warning, func(e *entry) {
			e.id, e.at, e.count = "", noon.Add(-time.Duration(slots-i)*slotLength), int64(i+1)
		}))
	}
	return all
}

func TestAZoomListsAnEventThatOccurredInIt(t *testing.T) {
	s, _ := storeAt(noon)
	s.add(backOffs(12))
	v := s.see(filterFrom(map[string][]string{"from": {"2026-03-01T11:58:30Z"}, "until": {"2026-03-01T11:59:00Z"}}))
	assert.EqualValues(t, 3, v.All)
	require.Len(t, v.Cards[0].Events, 1)
	assert.Equal(t, noon.Add(-70*time.Second), v.Cards[0].Events[0].At, "when it last occurred in this time")
	assert.Equal(t, noon.Add(-70*time.Second), v.Cards[0].LastWarning)
	assert.EqualValues(t, 12, v.Cards[0].Events[0].Count, "its newest state")
	assert.Equal(t, []int64{1, 1, 1}, []int64{v.Chart.Bars[0].All, v.Chart.Bars[1].All, v.Chart.Bars[2].All})
}

func TestTheTimesOfAnEventAreBounded(t *testing.T) {
	s, c := storeAt(noon)
	s.add(backOffs(3 * maxMoments))
	said := filterFrom(map[string][]string{"text": {"m"}})
	assert.EqualValues(t, 3*maxMoments, s.see(said).All, "all is counted")
	for _, w := range s.workloads {
		assert.Len(t, w.events[0].moments, maxMoments)
		c.Time = noon.Add(horizon - 7*slotLength)
		assert.EqualValues(t, 6, s.see(said).All, "those of the last 59 minutes")
		assert.Len(t, w.events[0].moments, 7, "those of the last hour")
	}
}
