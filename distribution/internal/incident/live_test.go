// SPDX-License-Identifier: Apache-2.0

package incident_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	records "github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

func atBegin() time.Time { return began }

// reasonsIn returns the reasons of all facts that the Model has.
func reasonsIn(l *incident.Live) (reasons []string) {
	for f := range l.Facts {
		reasons = append(reasons, f.Reason)
	}
	slices.Sort(reasons)
	return reasons
}

// TestFactsWaitForTheModel: who uses it next gets them, and nobody waits for who uses it.
func TestFactsWaitForTheModel(t *testing.T) {
	var kept [][]*incident.Fact
	l := incident.NewLive(atBegin)
	l.Keep = func(facts []*incident.Fact) { kept = append(kept, facts) }
	l.Take([]*incident.Fact{factOf("0s Pod/web-aaa-1 !One: odd")})
	assert.Equal(t, []string{"One"}, reasonsIn(l))
	l.Use(func(m *incident.Model) {
		l.Take([]*incident.Fact{factOf("0s Pod/web-aaa-1 !Two: odd")})
		l.AddUnlessUsed() // It is in use: else this would wait for ever.
		assert.Len(t, m.At(t.Context(), began, incident.Query{}).Problems(), 1)
	})
	require.Len(t, kept, 1)
	l.AddUnlessUsed()
	require.Len(t, kept, 2, "they are kept before the model has them")
	assert.Equal(t, "Two", kept[1][0].Reason)
	l.AddUnlessUsed()
	assert.Len(t, kept, 2, "nothing came")
	assert.Equal(t, []string{"One", "Two"}, reasonsIn(l))
	first := 0
	for range l.Facts {
		first++
		break
	}
	assert.Equal(t, 1, first)
}

// TestFactsForWhichThereIsNoRoom: they are counted, and the next ones find room when the model has those before.
func TestFactsForWhichThereIsNoRoom(t *testing.T) {
	l, long := incident.NewLive(atBegin), strings.Repeat("x", 1000)
	facts := func() (all []*incident.Fact) {
		for i := range 10_000 {
			all = append(all, factOf(fmt.Sprintf("0s Pod/web-aaa-1 !Odd event=%d: %s", i, long)))
		}
		return all
	}
	missed := l.Take(facts())
	assert.Positive(t, missed)
	assert.Less(t, missed, 5000)
	assert.Equal(t, 10_000, l.Take(facts()), "there is none left")
	assert.EqualValues(t, 10_000+missed, l.Missed())
	l.AddUnlessUsed()
	assert.Equal(t, missed, l.Take(facts()))
}

// TestSinceWhenRecordsAreComplete: from the start on, or from what the first list has shown a moment later.
func TestSinceWhenRecordsAreComplete(t *testing.T) {
	const old = "-30m Pod/web-aaa-1 !Odd event=old: odd"
	since := func(m *incident.Model) time.Duration { return m.Since(began).Sub(began) }
	add := func(m *incident.Model, after time.Duration) {
		m.AddFacts([]*incident.Fact{factOf(old)}, began.Add(after))
	}
	for name, tt := range map[string]struct {
		steps func(m *incident.Model)
		want  time.Duration
	}{
		"nothing was listed":                    {func(*incident.Model) {}, 0},
		"the first list has an old record":      {func(m *incident.Model) { add(m, 59*time.Second) }, -30 * time.Minute},
		"an old record comes later":             {func(m *incident.Model) { add(m, time.Minute) }, 0},
		"it is said to begin earlier":           {func(m *incident.Model) { m.Begin(began.Add(-10 * time.Minute)) }, -10 * time.Minute},
		"it is said to begin now, after a list": {func(m *incident.Model) { add(m, time.Second); m.Begin(began.Add(30 * time.Second)) }, -30 * time.Minute},
		"it begins again much later": {
			func(m *incident.Model) { add(m, time.Second); m.Begin(began.Add(time.Minute)) }, time.Minute,
		},
		"an old record comes after it began again": {
			func(m *incident.Model) { m.Begin(began.Add(10 * time.Minute)); add(m, 10*time.Minute+time.Second) }, -30 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := incident.NewModel(began)
			tt.steps(m)
			assert.Equal(t, tt.want, since(m))
		})
	}
	l := incident.NewLive(atBegin)
	for _, step := range []struct{ begin, want time.Duration }{{0, 0}, {-5 * time.Minute, -5 * time.Minute}, {0, -5 * time.Minute}, {-time.Minute, -time.Minute}} {
		if step.begin == 0 {
			l.Begin(time.Time{}) // Nothing is known.
		} else {
			l.Begin(began.Add(step.begin))
		}
		l.Use(func(m *incident.Model) { assert.Equal(t, step.want, since(m)) })
	}
}

// TestResourcesOfTheNewestRecords: each workload has the attributes of its newest record, if somebody asks for them.
func TestResourcesOfTheNewestRecords(t *testing.T) {
	var all []*record.Record
	for _, line := range []string{
		"2s Pod/web-aaa-1 !Odd event=1: new", "1s Pod/web-aaa-1 !Odd event=2: old", "1s Pod/api-aaa-1 !Odd event=3: old", "2s Pod/api-aaa-1 !Odd event=4: new", "2s Pod/api-aaa-1 !Odd event=5: newest",
	} {
		logs := records.Logs(line)[0]
		logs.ResourceLogs().At(0).Resource().Attributes().PutStr("message", strings.TrimSpace(line[strings.LastIndex(line, ":")+1:]))
		all = append(all, record.Read(logs)...)
	}
	for _, f := range incident.FactsOf(all, began.Add(time.Minute), false) {
		assert.Nil(t, f.Resource)
	}
	facts := incident.FactsOf(all, began.Add(time.Minute), true)
	for i, want := range []bool{true, false, false, false, true} {
		assert.Equal(t, want, facts[i].Resource != nil, facts[i].Event)
	}
	l := incident.NewLive(atBegin)
	l.Take(facts)
	resources := map[string]string{}
	for f := range l.Facts {
		if f.Resource != nil {
			resources[f.Key.Top.Name] += f.Resource["message"]
		}
	}
	assert.Equal(t, map[string]string{"web": "new", "api": "newest"}, resources, "one fact of each workload has them")
	l.Use(func(m *incident.Model) {
		at, size := m.At(t.Context(), began.Add(time.Minute), incident.Query{}), m.Size()
		assert.Equal(t, "new", at.Resource(facts[0].Key)["message"])
		assert.Nil(t, at.Resource(incident.Key{}))
		larger := factOf("3s Pod/web-aaa-1 !Odd event=1: new")
		larger.Resource = map[string]string{"message": strings.Repeat("x", 5000)}
		m.AddFacts([]*incident.Fact{larger}, began.Add(time.Minute))
		assert.Greater(t, m.Size(), size+4000, "they count in the bound of memory")
	})
}
