// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
)

// TestStorms is about more records than the page keeps: what it states of a workload stays true.
func TestStorms(t *testing.T) {
	var pods, warnings, more []happening
	for i := range 500 {
		name := fmt.Sprint("web-bbb-", i)
		pods = append(pods, happening{at: 610 + i/100, object: "ReplicaSet/web-bbb", reason: "SuccessfulCreate", message: "Created pod: " + name})
		warnings = append(warnings, warn(640+i/10, name, "BackOff"))
		more = append(more, warn(1210+i/10, "web-aaa-"+fmt.Sprint(i), "Unhealthy"))
	}
	among := func(other happening) (story []happening) {
		for i := range 200 {
			other.at, other.count = 640+i, int64(i+1)
			story = append(story, other, warn(640+i, fmt.Sprint("web-bbb-", i), "BackOff"))
		}
		return story
	}
	begin := join(first(0), []happening{scale(600, "web-bbb", 0, 500)})
	for name, tt := range map[string]struct {
		story []happening
		want  []string
	}{
		"500 pods and 500 warnings after a rollout": {
			join(begin, pods, warnings), []string{"The rollout of replicaset.apps/web-bbb began 40 s before BackOff"},
		},
		"500 warnings before a rollout, and 500 after it": {
			join(begin, pods, warnings, []happening{scale(1200, "web-ccc", 0, 1)}, more),
			[]string{"The rollout of replicaset.apps/web-ccc began 10 s before Unhealthy", "older: BackOff"},
		},
		"more rescaling of others than warnings": {
			join(begin, slices.Repeat([]happening{rescale(630, "other", 3)}, maxElsewhere+100), warnings),
			[]string{"The rollout of replicaset.apps/web-bbb began 40 s before BackOff"},
		},
		"200 warnings among problems of a node of another cluster": {
			join(begin, among(inCluster("b", []happening{node(0, "worker-1", "NodeNotReady")})[0])),
			[]string{"The rollout of replicaset.apps/web-bbb began 40 s before BackOff"},
		},
		"200 warnings among problems of another node": {
			join(begin, among(node(0, "worker-9", "NodeNotReady"))),
			[]string{"The rollout of replicaset.apps/web-bbb began 40 s before BackOff"},
		},
		"200 warnings among rescaling in another namespace": {
			join(begin, among(happening{object: "HorizontalPodAutoscaler/any", reason: "SuccessfulRescale", message: "New size: 3", in: "other"})),
			[]string{"The rollout of replicaset.apps/web-bbb began 40 s before BackOff"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storeOf(t, tt.story)
			assert.Equal(t, tt.want, statements(s, "web"))
			requireBounds(t, s)
		})
	}
}

func requireBounds(t *testing.T, s *store) {
	t.Helper()
	for _, w := range s.workloads {
		require.LessOrEqual(t, len(w.warned), maxWarned)
		require.LessOrEqual(t, len(w.changed), maxChanged)
	}
	for _, w := range s.former.Values() {
		require.LessOrEqual(t, len(w.changed), maxRemains)
	}
	require.LessOrEqual(t, len(s.elsewhere), maxElsewhere)
	require.LessOrEqual(t, s.rollouts.Size(), maxRollouts<<16)
}

func TestAfterAnHourAllIsForgotten(t *testing.T) {
	member := happening{object: "StatefulSet/db", reason: "SuccessfulCreate", message: "create Pod db-0 in StatefulSet db successful"}
	s := storeOf(t, join(first(0), []happening{member, node(0, "worker-1", "NodeNotReady"), warn(1, "web-aaa-1", "BackOff")}))
	require.NotEmpty(t, s.rollouts.Workloads)
	require.NotEmpty(t, s.elsewhere)
	s.now = func() time.Time { return noon.Add(horizon + 2*time.Minute) }
	s.see(filterFrom(nil))
	assert.Empty(t, s.rollouts.Workloads)
	assert.Empty(t, s.elsewhere)
	assert.Empty(t, s.workloads)
}

// TestAWarningThatGoesOnIsNotForgotten: its first record stays as long as it repeats.
func TestAWarningThatGoesOnIsNotForgotten(t *testing.T) {
	again := warn(0, "web-aaa-1", "BackOff")
	var logs []plog.Logs
	for minute := range 90 {
		again.at, again.count = 60*minute, int64(minute+1)
		logs = append(logs, again.logs(t))
	}
	s, c := storeAt(noon)
	e := &pageExporter{config: &Config{}, store: s}
	for minute, batch := range logs {
		c.Time = noon.Add(time.Duration(minute) * time.Minute)
		require.NoError(t, e.ConsumeLogs(t.Context(), batch))
	}
	w := s.see(filterFrom(nil)).Cards[0]
	assert.Equal(t, noon, w.Changed.First.FirstTime)
	assert.Equal(t, "Nothing is known: the first warning is older than the page’s first record.", w.Changed.Nothing)
}

// TestOthersDoNotDisplaceAnAnswer: many other workloads have events between a change and the warning.
func TestOthersDoNotDisplaceAnAnswer(t *testing.T) {
	story := join(first(0), replace(60))
	for i := range 2 * maxWorkloads {
		story = append(story, happening{at: 70, object: fmt.Sprint("Deployment/other-", i), reason: "Any", message: "m"})
	}
	s := storeOf(t, append(story, warn(98, "web-bbb-1", "BackOff")))
	assert.Equal(t, []string{"The rollout of replicaset.apps/web-bbb began 38 s before BackOff"}, statements(s, "web"))
	assert.Len(t, s.workloads, maxWorkloads)
}

// TestOthersRollOut: 160 other rollouts a second, of 3,000 workloads, displace neither what changed before
// the first warning of a workload, nor the answer later.
func TestOthersRollOut(t *testing.T) {
	const perSecond, others = 160, 3_000
	rollOut := func(from, until int) (story []happening) {
		for i := perSecond * from; i < perSecond*until; i++ {
			at, name := i/perSecond, fmt.Sprintf("other%d", i%others)
			before, revision := fmt.Sprintf("%s-r%d", name, i/others), fmt.Sprintf("%s-r%d", name, i/others+1)
			story = append(story, scale(at, revision, 0, 1), scale(at, before, 1, 0))
			story = append(story, start(at, revision+"-1", "worker-1")...)
		}
		return story
	}
	for name, tt := range map[string]struct {
		before, change []happening
		warning        happening
		want           string
	}{
		"an update": {
			first(0), replace(1), warn(20, "web-bbb-1", "BackOff"),
			"The rollout of replicaset.apps/web-bbb began 19 s before BackOff",
		},
		"an update of which only the scale-up is known": {
			nil, []happening{scale(1, "web-bbb", 0, 1)}, warn(20, "web-bbb-1", "BackOff"),
			"The rollout of replicaset.apps/web-bbb began 19 s before BackOff",
		},
		"a first warning on a node that failed": {
			first(0), []happening{node(1, "worker-1", "NodeNotReady")},
			happening{at: 20, object: "Pod/web-aaa-1", reason: "Unhealthy", message: "m", warning: true, node: "worker-1"},
			"The node worker-1, where the pod web-aaa-1 was, became NotReady 19 s before Unhealthy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storeOf(t, join(tt.before, tt.change, rollOut(10, 20), []happening{tt.warning}, rollOut(21, 24)))
			assert.Contains(t, statements(s, "web"), tt.want)
			detail, _ := s.detail("uid-web", filterFrom(nil))
			assert.NotEmpty(t, detail.Rollouts)
			assert.Len(t, s.workloads, maxWorkloads)
			requireBounds(t, s)
			require.NotZero(t, s.former.Len())
			s.now = func() time.Time { return noon.Add(horizon + 5*time.Minute) }
			s.see(filterFrom(nil))
			assert.Zero(t, s.former.Len())
		})
	}
}

// TestOthersStartPods: of 200 other workloads a second, the page has records of a pod, and none that shows a change.
// They displace neither the rollout of a workload before its first warning, nor what the page states.
func TestOthersStartPods(t *testing.T) {
	others := func(from, until int) (story []happening) {
		for i := 200 * from; i < 200*until; i++ {
			pod := fmt.Sprintf("other%d-aaa-1", i)
			story = append(story, start(i/200, pod, "worker-1")[1:]...)
		}
		return story
	}
	for name, tt := range map[string]struct {
		change  []happening
		warning happening
		want    string
	}{
		"an update of a Deployment": {
			[]happening{scale(1, "web-bbb", 0, 1)}, warn(20, "web-bbb-1", "BackOff"),
			"The rollout of replicaset.apps/web-bbb began 19 s before BackOff",
		},
		"an update of a StatefulSet": {
			[]happening{createMember(0, 1), memberEvent(0, "hash-1", "Started"), createMember(1, 2), memberEvent(1, "hash-2", "Started")}, memberEvent(20, "hash-2", "BackOff"),
			"The first pod of revision hash-2, web-0, was created 19 s before BackOff",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storeAlong(t, join(tt.change, others(2, 10), []happening{tt.warning}, others(21, 26)))
			assert.Equal(t, []string{tt.want}, statements(s, "web"))
			detail, _ := s.detail("uid-web", filterFrom(nil))
			require.NotEmpty(t, detail.Rollouts)
			assert.Equal(t, second(1), detail.Rollouts[0].Start)
			requireBounds(t, s)
		})
	}
}

// TestJobsDoNotDisplaceRollouts: a CronJob makes many Jobs, and the page is out of room for rollouts.
func TestJobsDoNotDisplaceRollouts(t *testing.T) {
	story := first(0)
	for i := range maxRollouts + 1 {
		story = append(story, happening{at: 10 + i, object: fmt.Sprintf("Task/report-%d-x", i), reason: "Started", message: "m"})
	}
	s := storeOf(t, story)
	detail, _ := s.detail("uid-web", filterFrom(nil))
	assert.NotEmpty(t, detail.Rollouts)
	jobs, _ := s.detail("uid-report", filterFrom(nil))
	assert.Len(t, jobs.Rollouts, maxRollouts-1)
	assert.Equal(t, "job.batch/report-400", jobs.Rollouts[0].Attributes["k8s.rollout.revision"], "the oldest Job is forgotten")
}

// TestAWorkloadThatComesBackToThePage: its rollout is shown again, and so it is not the next one to be forgotten.
func TestAWorkloadThatComesBackToThePage(t *testing.T) {
	story := start(0, "web-aaa-1", "worker-1")[1:]
	for i := range maxWorkloads {
		story = append(story, happening{at: 3, object: fmt.Sprintf("Pod/other%d-aaa-1", i), reason: "Started", message: "m"})
	}
	isClosed := func(story []happening) bool {
		return storeOf(t, story).rollouts.Workloads["cluster/uid-web"].Revisions["replicaset.apps/web-aaa"].Closed
	}
	assert.True(t, isClosed(story))
	again := story[1]
	again.at, again.count = 4, 2
	assert.False(t, isClosed(append(story, again)))
}

// TestANodeBeforeThePod: of a pod of 150, the page has dropped the records of its creation and of the scheduler. Its node
// was rebooted before that.
func TestANodeBeforeThePod(t *testing.T) {
	story := []happening{node(400, "worker-3", "Rebooted"), scale(1000, "web-aaa", 0, 150)}
	for i := range 150 {
		story = append(story, start(1000, fmt.Sprint("web-aaa-", i), "worker-3")...)
	}
	last := warn(1010, "web-aaa-0", "BackOff")
	last.node = "worker-3"
	s := storeOf(t, append(story, last))
	for _, w := range s.workloads {
		require.NotContains(t, w.creations(), "web-aaa-0")
	}
	assert.Equal(t, []string{"The rollout of replicaset.apps/web-aaa began 10 s before BackOff"}, statements(s, "web"))
}
