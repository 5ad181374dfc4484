// SPDX-License-Identifier: Apache-2.0

package incident_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	records "github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// asked is a model of two namespaces and a node, which the tests of this file ask.
func asked(t *testing.T) *story {
	t.Helper()
	s := newStory(t)
	s.model = incident.NewModel(began.Add(-incident.Horizon))
	for _, line := range []string{
		"10:00 Pod/web-aaa-1 Scheduled: Successfully assigned shop/web-aaa-1 to node-0", "10:30 Pod/web-aaa-1 !BackOff{app}: Back-off restarting failed container",
		"20:00 Pod/web-aaa-1 !BackOff{app}: Back-off restarting failed container", "20:01 Pod/web-aaa-1 Pulled{app}: pulled",
		"21:00 Pod/api-aaa-1 Scheduled namespace=other: Successfully assigned other/api-aaa-1 to node-0",
		"22:00 Node/node-0 !Rebooted: odd",
	} {
		s.record(line)
	}
	tilt := records.Logs("23:00 Pod/tilted-aaa-1 Scheduled namespace=other: Successfully assigned")[0]
	tilt.ResourceLogs().At(0).Resource().Attributes().PutStr("tilt.manifest", "front")
	add(s.model, tilt, began.Add(23*time.Minute))
	return s
}

// TestQueries: each of their fields chooses, also together with others.
func TestQueries(t *testing.T) {
	m, now := asked(t).model, began.Add(25*time.Minute)
	web := m.At(t.Context(), now, incident.Query{Namespace: "shop"}).Workloads()[0].Key.ID()
	for name, tt := range map[string]struct {
		query incident.Query
		want  []string
	}{
		"everything":          {incident.Query{}, []string{"node-0 1 of 1", "web 2 of 4", "tilted 0 of 1", "api 0 of 1"}},
		"a namespace":         {incident.Query{Namespace: "shop"}, []string{"web 2 of 4"}},
		"no namespace":        {incident.Query{Namespace: incident.ClusterScoped}, []string{"node-0 1 of 1"}},
		"a workload":          {incident.Query{Workload: web}, []string{"web 2 of 4"}},
		"of other namespaces": {incident.Query{Workload: web, Namespace: "other"}, nil},
		"a reason":            {incident.Query{Reason: "Scheduled"}, []string{"tilted 0 of 1", "api 0 of 1", "web 0 of 1"}},
		"warnings":            {incident.Query{Type: "warning"}, []string{"node-0 1 of 1", "web 2 of 2"}},
		"what is no warning":  {incident.Query{Type: "Normal", Namespace: "shop"}, []string{"web 0 of 2"}},
		"a manifest":          {incident.Query{Manifest: "front"}, []string{"tilted 0 of 1"}},
		"the last minutes":    {incident.Query{From: began.Add(20 * time.Minute), Namespace: "shop"}, []string{"web 1 of 2"}},
		"as it was before":    {incident.Query{Until: began.Add(15 * time.Minute)}, []string{"web 1 of 2"}},
	} {
		var got []string
		for _, w := range m.At(t.Context(), now, tt.query).Workloads() {
			got = append(got, fmt.Sprintf("%s %d of %d", w.Key.Top.Name, w.Warnings, w.All))
		}
		assert.Equal(t, tt.want, got, name)
	}
}

// TestAWorkloadInShort: when it had its last warning, its reasons and its manifests.
func TestAWorkloadInShort(t *testing.T) {
	at := asked(t).model.At(t.Context(), began.Add(25*time.Minute), incident.Query{})
	w := at.Workloads()
	require.Len(t, w, 4)
	assert.Equal(t, began.Add(20*time.Minute+time.Second), w[1].Last)
	assert.Equal(t, began.Add(20*time.Minute), w[1].LastWarning)
	assert.Equal(t, []incident.Counted{{Value: "BackOff", Warning: true, N: 2}, {Value: "Pulled", N: 1}, {Value: "Scheduled", N: 1}}, w[1].Reasons)
	assert.Empty(t, w[1].Manifests)
	assert.Zero(t, w[2].LastWarning)
	assert.Equal(t, []string{"front"}, w[2].Manifests)
	assert.Equal(t, incident.Values{
		Namespaces: []incident.Counted{{Value: "shop", N: 4}, {Value: "other", N: 2}, {Value: incident.ClusterScoped, N: 1}},
		Reasons:    []incident.Counted{{Value: "BackOff", Warning: true, N: 2}, {Value: "Rebooted", Warning: true, N: 1}, {Value: "Scheduled", N: 3}, {Value: "Pulled", N: 1}},
		Manifests:  []incident.Counted{{Value: "front", N: 1}},
	}, at.Values())
}

// TestManyReasons: an answer has the 20 most frequent ones, and one for all others.
func TestManyReasons(t *testing.T) {
	for count, want := range map[int][]string{19: nil, 20: nil, 21: {"others 1"}, 30: {"others 10"}} {
		s := newStory(t)
		for i := range count {
			s.record(fmt.Sprintf("1s Widget/w Reason%d: odd", i))
		}
		reasons := s.model.At(t.Context(), began.Add(time.Minute), incident.Query{}).Workloads()[0].Reasons
		assert.Len(t, reasons, min(count, 20)+len(want))
		for i, line := range want {
			assert.Equal(t, line, fmt.Sprint(reasons[20+i].Value, " ", reasons[20+i].N))
		}
	}
}

// TestTheChart: each slot has what happened in it, from the time of the query on.
func TestTheChart(t *testing.T) {
	query := incident.Query{From: began.Add(15 * time.Minute), Namespace: "shop"}
	slots := asked(t).model.At(t.Context(), began.Add(25*time.Minute), query).Counts(2)
	assert.Equal(t, []incident.Slot{{From: began.Add(15 * time.Minute)}, {From: began.Add(20 * time.Minute), Normal: 1, Warnings: 1}}, slots)
	query.From = time.Time{}
	slots = asked(t).model.At(t.Context(), began.Add(25*time.Minute), query).Counts(60)
	require.Len(t, slots, 60)
	assert.Equal(t, incident.Slot{From: began.Add(10 * time.Minute), Normal: 1, Warnings: 1}, slots[45])
	assert.Equal(t, incident.Slot{From: began.Add(20 * time.Minute), Normal: 1, Warnings: 1}, slots[55])
}

// TestSpansOfAWorkload: without one, there are none.
func TestSpansOfAWorkload(t *testing.T) {
	m, now := asked(t).model, began.Add(25*time.Minute)
	assert.Empty(t, m.At(t.Context(), now, incident.Query{}).Spans())
	id := m.At(t.Context(), now, incident.Query{Namespace: "shop"}).Workloads()[0].Key.ID()
	assert.NotEmpty(t, m.At(t.Context(), now, incident.Query{Workload: id}).Spans())
}

// TestWhatWasDroppedOfANamespace: nothing of others is said of it.
func TestWhatWasDroppedOfANamespace(t *testing.T) {
	s := newStory(t)
	for i := range 10_100 {
		s.record(fmt.Sprintf("1s Node/node-0 Odd: %d", i))
	}
	s.record("1s Pod/web-aaa-1 Odd: odd")
	assert.Positive(t, s.model.Dropped(incident.ClusterScoped).Facts)
	assert.Equal(t, s.model.Dropped(""), s.model.Dropped(incident.ClusterScoped))
	assert.Zero(t, s.model.Dropped("shop"))
}

// TestFewFailuresOfProbesCanBeHarmless: also of several workloads, unless there are many or one of them has another problem.
func TestFewFailuresOfProbesCanBeHarmless(t *testing.T) {
	for name, tt := range map[string]struct {
		workloads int
		more      string
		want      bool
	}{
		"three, each once":         {3, "", true},
		"nine, each once":          {9, "", true},
		"ten, each once":           {10, "", false},
		"one of them thrice":       {3, "20:15 Pod/w0-aaa-1 !Unhealthy{app} node=node-0 of=3/20:00: timeout", false},
		"one of them also crashes": {3, "20:15 Pod/w0-aaa-1 !BackOff{app} node=node-0: Back-off restarting failed container", false},
	} {
		s := newStory(t)
		for i := range tt.workloads {
			s.record(fmt.Sprintf("0:00 Pod/w%[1]d-aaa-1 Started{app} node=node-%[1]d: started", i))
			s.record(fmt.Sprintf("20:%02[1]d Pod/w%[1]d-aaa-1 !Unhealthy{app} node=node-%[1]d: timeout", i))
		}
		if tt.more != "" {
			s.record(tt.more)
		}
		problems := s.model.At(t.Context(), began.Add(20*time.Minute+30*time.Second), incident.Query{}).Problems()
		require.Len(t, problems, 1, name)
		assert.Len(t, problems[0].Members, tt.workloads, name)
		assert.Equal(t, tt.want, problems[0].CanBeHarmless, name)
	}
}
