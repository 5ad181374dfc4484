// SPDX-License-Identifier: Apache-2.0

package incident_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	records "github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

func newStory(t *testing.T) *story {
	t.Helper()
	return &story{t: t, model: incident.NewModel(began), namespace: "shop", counts: map[string]int64{}, firsts: map[string]string{}}
}

func crashOf(s *story, at time.Time, name string) {
	s.record(fmt.Sprintf("%s Pod/%s-aaa-1 !BackOff{app} node=node-0: Back-off restarting failed container app in pod %s", at.Sub(began), name, name))
}

func TestARepeatedRecordChangesNothing(t *testing.T) {
	s := newStory(t)
	crashOf(s, began, "web")
	s.counts = map[string]int64{} // The same records again, such as those of another leader.
	crashOf(s, began.Add(time.Second), "web")
	problems := s.model.At(context.Background(), began.Add(2*time.Second), incident.Query{}).Problems()
	require.Len(t, problems, 1)
	assert.EqualValues(t, 1, problems[0].Count)
}

func TestWhatIsOlderThanAnHourIsForgotten(t *testing.T) {
	s := newStory(t)
	crashOf(s, began, "web")
	crashOf(s, began.Add(2*incident.Horizon), "api")
	now := began.Add(2 * incident.Horizon)
	all := s.model.At(context.Background(), now, incident.Query{}).Workloads()
	require.Len(t, all, 1)
	assert.Equal(t, "api", all[0].Key.Top.Name)
	assert.Equal(t, now.Add(-incident.Horizon), s.model.Since(now))
}

func TestTheLargestNamespaceLosesItsOldest(t *testing.T) {
	s := newStory(t)
	crashOf(s, began, "web")
	noisy := plog.NewLogs()
	for i := range 26_000 {
		line := fmt.Sprintf("1s Widget/%d !Odd namespace=noisy event=%d: %s", i, i, strings.Repeat("x", 2000))
		records.Logs(line)[0].ResourceLogs().MoveAndAppendTo(noisy.ResourceLogs())
	}
	add(s.model, noisy, began.Add(time.Minute))
	assert.Less(t, s.model.Size(), 33<<20)
	now := began.Add(time.Minute)
	require.Len(t, s.model.At(context.Background(), now, incident.Query{Namespace: "shop"}).Problems(), 1)
	assert.Zero(t, s.model.Dropped("shop"))
	assert.Positive(t, s.model.Dropped("noisy").Workloads)
	assert.Equal(t, s.model.Dropped(""), s.model.Dropped("noisy"))
}

// TestManyProblemsHideNoCausesOfOthers: in another namespace, problems with own causes stay apart.
func TestManyProblemsHideNoCausesOfOthers(t *testing.T) {
	s := newStory(t)
	for i := range 201 {
		s.record(fmt.Sprintf("5:00 Pod/w%d-aaa-1 !BackOff{app} namespace=evil: Back-off restarting failed container", i))
	}
	for _, name := range []string{"a", "b", "c"} {
		s.record("4:50 Deployment/" + name + " ScalingReplicaSet: Scaled up replica set " + name + "-bbb from 0 to 1")
		s.record("5:00 Pod/" + name + "-bbb-1 Started{app}: Started container app")
		s.record("5:05 Pod/" + name + "-bbb-1 !BackOff{app}: Back-off restarting failed container")
	}
	problems := s.model.At(t.Context(), began.Add(6*time.Minute), incident.Query{Namespace: "shop"}).Problems()
	require.Len(t, problems, 3)
	for _, p := range problems {
		require.NotEmpty(t, p.Causes)
		assert.Equal(t, "rollout", p.Causes[0].Kind)
	}
}

func TestAWorkloadKeepsItsWarnings(t *testing.T) {
	s := newStory(t)
	crashOf(s, began, "web")
	for i := range 11_000 {
		s.record(fmt.Sprintf("1s Deployment/web Anything: %d", i))
	}
	assert.Len(t, s.model.At(context.Background(), began.Add(time.Minute), incident.Query{}).Problems(), 1)
	assert.Positive(t, s.model.Dropped("shop").Facts)
}

func TestIDsOfWorkloads(t *testing.T) {
	keys := []incident.Key{
		{Top: incident.Object{Kind: "a", Group: "b.c", Name: "x"}}, {Top: incident.Object{Kind: "a.b", Group: "c", Name: "x"}},
		{Namespace: "a", Top: incident.Object{Name: "b"}}, {Cluster: "a", Top: incident.Object{Name: "b"}},
	}
	seen := map[string]bool{}
	for _, k := range keys {
		assert.Regexp(t, "^w[a-z2-7]{24}$", k.ID())
		assert.False(t, seen[k.ID()])
		seen[k.ID()] = true
	}
}

// TestHostileRecords has what anybody may write into an Event: no answer may take long, overflow or
// panic.
func TestHostileRecords(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	model := incident.NewModel(began)
	for i := range 3000 {
		logs := plog.NewLogs()
		rl := logs.ResourceLogs().AppendEmpty()
		a := rl.Resource().Attributes()
		a.PutStr("k8s.namespace.name", pick("shop", ""))
		a.PutStr("k8s.object.kind", pick("Pod", "ReplicaSet", "Deployment", "Node", "Job", "Po.d", ""))
		a.PutStr("k8s.object.api_version", pick("v1", "apps/v1", "", "/"))
		a.PutStr("k8s.object.name", pick("web-aaa-1", "web-aaa", "web", "", "-", "\x00"))
		a.PutStr("k8s.pod.uid", pick("1", "2", ""))
		a.PutStr("k8s.workload.kind", pick("Deployment", ""))
		a.PutStr("k8s.workload.name", pick("web", "", "x/y"))
		a.PutStr("k8s.workload.uid", pick("u", ""))
		for range random.IntN(3) {
			owners := a.PutEmptySlice("k8s.owner.chain")
			owners.AppendEmpty().SetStr(pick("replicaset.apps/web-aaa", "/", "", "job.batch/x"))
			owners.AppendEmpty().SetStr(pick("deployment.apps/web", "cronjob.batch/x"))
		}
		r := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		r.SetEventName("k8s.event")
		at := began.Add(time.Duration(random.IntN(3600)) * time.Second)
		r.SetTimestamp(pcommon.NewTimestampFromTime(at))
		if random.IntN(20) == 0 {
			r.SetTimestamp(pcommon.Timestamp(math.MaxUint64))
		}
		r.SetSeverityText(pick("Normal", "Warning", "", "Other"))
		r.Body().SetStr(pick("Scaled up replica set web-aaa from 0 to 999999999999999999999", "Scaled down replica set web-bbb from 3 to 0",
			"Created pod: web-aaa-1", "Deleted pod: web-aaa-1", "Stopping container app", "New size: 99999999999999999999", "exceeded quota: a, b", ""))
		r.Attributes().PutStr("k8s.event.reason", pick("ScalingReplicaSet", "SuccessfulCreate", "SuccessfulDelete", "Killing", "Started", "BackOff", "Unhealthy",
			"NodeNotReady", "NodeReady", "SuccessfulRescale", "FailedCreate", "Preempted", "Evicted", ""))
		r.Attributes().PutStr("k8s.event.uid", pick("a", "b", "c", "d", "e", ""))
		r.Attributes().PutStr("log.record.uid", fmt.Sprint(i))
		r.Attributes().PutInt("k8s.event.count", []int64{1, 2, -1, math.MaxInt64, math.MinInt64}[random.IntN(5)])
		r.Attributes().PutInt("k8s.event.occurrences", []int64{1, -1, math.MaxInt64, math.MinInt64}[random.IntN(4)])
		r.Attributes().PutStr("k8s.event.start_time", pick("-0001-01-01T00:00:00Z", "2300-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "2026-03-01T10:00:00Z", ""))
		add(model, logs, began.Add(incident.Horizon))
		if i%100 != 0 {
			continue
		}
		now := began.Add(incident.Horizon)
		said := describe(model, incident.Query{}, now)
		assert.Equal(t, said, describe(model, incident.Query{}, now), "an answer depends on chance")
		for _, p := range model.At(context.Background(), now, incident.Query{}).Problems() {
			assert.GreaterOrEqual(t, p.Count, int64(0))
			assert.False(t, p.Last.Before(p.Onset))
		}
		for _, c := range model.At(context.Background(), now, incident.Query{}).Counts(60) {
			assert.GreaterOrEqual(t, c.Normal+c.Warnings, int64(0))
		}
		model.At(context.Background(), now, incident.Query{}).Changes()
		model.At(context.Background(), now, incident.Query{}).Values()
	}
}

// TestManyProblemsOfANamespace: those beyond the tenth stand behind those of others, but before
// what is over.
func TestManyProblemsOfANamespace(t *testing.T) {
	s := newStory(t)
	s.record("0:00 Widget/quiet !Odd namespace=other: odd")
	s.record("0:10 Widget/quiet Done namespace=other: succeeded")
	s.record("0:20 Widget/late !Odd namespace=other: odd")
	for i := range 12 {
		s.record(fmt.Sprintf("1:00 Widget/w%d !Odd%d namespace=noisy: odd", i, i))
	}
	var order []string
	for _, p := range s.model.At(context.Background(), began.Add(2*time.Minute), incident.Query{}).Problems() {
		order = append(order, fmt.Sprint(p.Key.Namespace, p.Over.IsZero()))
	}
	require.Len(t, order, 14)
	assert.Equal(t, []string{"othertrue", "noisytrue", "noisytrue", "otherfalse"}, order[10:])
}

// TestSizeIsWhatMemoryTakes: the bound is what is in memory, within a quarter.
func TestSizeIsWhatMemoryTakes(t *testing.T) {
	long := strings.Repeat("x", 200)
	for name, line := range map[string]string{
		"short": "%dm Widget/w%d !Odd event=%d: odd", "long": "%dm Widget/" + long + "%d !" + long + "{" + long + "} event=" + long + "%d related=" + long + ": " + long,
	} {
		s := newStory(t)
		all := make([]plog.Logs, 0, 8000)
		for i := range 8000 {
			all = append(all, records.Logs(fmt.Sprintf(line, i%20, i/100, i))...)
		}
		before := heap()
		for _, logs := range all {
			// As from a receiver: nothing else has its texts.
			encoded, err := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
			require.NoError(t, err)
			fresh, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(encoded)
			require.NoError(t, err)
			add(s.model, fresh, began.Add(20*time.Minute))
		}
		used := heap() - before
		assert.InEpsilon(t, used, s.model.Size(), 0.25, "%s: %d bytes of heap", name, used)
		runtime.KeepAlive(all)
	}
}

// TestWhatALookKeepsIsInTheBound: what a look leaves for the next one counts, too.
func TestWhatALookKeepsIsInTheBound(t *testing.T) {
	s := newStory(t)
	for i := range 4000 {
		s.read(fmt.Sprintf("1:00 Pod/web%d-aaa-%d !BackOff{app}: Back-off restarting failed container app in pod %d", i%400, i, i))
	}
	facts, before := s.model.Size(), heap()
	s.model.At(t.Context(), began.Add(20*time.Minute), incident.Query{})
	s.read("20:00 Pod/other-aaa-1 !BackOff{app}: Back-off restarting failed container app") // Ends the answer.
	used := heap() - before
	assert.InEpsilon(t, used, s.model.Size()-facts, 0.5, "%d bytes of heap", used)
	runtime.KeepAlive(s)
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestHarmlessReasons: users can add reasons of warnings that are no problem, such as those of
// policies that only audit.
func TestHarmlessReasons(t *testing.T) {
	for want, reasons := range map[int][]string{1: nil, 0: {"AuditOnly"}} {
		s := newStory(t)
		s.harmless = reasons
		s.record("0:00 Deployment/web !AuditOnly: no limits")
		assert.Len(t, s.model.At(context.Background(), began.Add(time.Minute), incident.Query{}).Problems(), want)
	}
}

// TestAnswersAreBounded: nobody can make an answer large with many reasons, pods or containers.
func TestAnswersAreBounded(t *testing.T) {
	s, long := newStory(t), strings.Repeat("<", 200)
	all := plog.NewLogs()
	for w := range 26 {
		for i := range 1900 {
			line := fmt.Sprintf("1m Widget/w%d !%s%d event=%d-%d: %s", w, long, i, w, i, long)
			records.Logs(line)[0].ResourceLogs().MoveAndAppendTo(all.ResourceLogs())
			if i < 300 {
				line = fmt.Sprintf("1m Pod/w%d-aaa-%s%d !FailedMount node=%s%d event=p%d-%d: %s", w, long, i, long, i, w, i, long)
				records.Logs(line)[0].ResourceLogs().MoveAndAppendTo(all.ResourceLogs())
			}
		}
	}
	add(s.model, all, began.Add(time.Minute))
	at := s.model.At(context.Background(), began.Add(time.Minute), incident.Query{})
	assert.True(t, slices.ContainsFunc(at.Problems(), func(p incident.Problem) bool { return p.LeftOut == "1800 other problems" }))
	for name, answer := range map[string]any{"problems": at.Problems()[:100], "workloads": at.Workloads()} {
		encoded, err := json.Marshal(answer)
		require.NoError(t, err)
		assert.Less(t, len(encoded), 4<<20, name)
	}
}

// TestWhatIsLeftOutIsSaid: an answer says what it does not have, and what was not looked at.
func TestWhatIsLeftOutIsSaid(t *testing.T) {
	s := newStory(t)
	for i := range 560 {
		s.record(fmt.Sprintf("%d:%02d Deployment/web ScalingReplicaSet: Scaled up replica set web-r%d from 1 to 2", i/60, i%60, i))
		s.record(fmt.Sprintf("%d:%02d Deployment/other%d ScalingReplicaSet: Scaled down replica set other%d-aaa from 2 to 1", i/60, i%60, i, i))
	}
	for i := range 25 {
		s.record(fmt.Sprintf("9:30 Pod/web-aaa-%d !BackOff{app} node=node-0: Back-off restarting failed container", i))
	}
	for i := range 1280 {
		s.record(fmt.Sprintf("%d:%02d Pod/api-aaa-1 !BackOff{app} namespace=evil node=node-0: Back-off %d", i/40/4, i/40%4*15, i%40))
	}
	at := s.model.At(t.Context(), began.Add(10*time.Minute), incident.Query{Namespace: "evil"})
	require.Len(t, at.Problems(), 1)
	assert.Equal(t, "280 older occurrences, 20 older records", at.Problems()[0].LeftOut)
	at = s.model.At(t.Context(), began.Add(10*time.Minute), incident.Query{Namespace: "shop"})
	require.Len(t, at.Problems(), 1)
	assert.Equal(t, "5 older records, 60 older namespace changes, 60 older scalings, 361 older repeats, 5 pods", at.Problems()[0].LeftOut)
	assert.True(t, slices.ContainsFunc(at.Changes(), func(c incident.Change) bool { return c.Text == "60 older scalings not looked at" }))
}

// TestALookEndsWhenNobodyWaitsForIt, and is not taken for a whole one afterwards.
func TestALookEndsWhenNobodyWaitsForIt(t *testing.T) {
	s := newStory(t)
	crashOf(s, began, "web")
	left, leave := context.WithCancel(t.Context())
	leave()
	now := began.Add(time.Second)
	assert.Empty(t, s.model.At(left, now, incident.Query{}).Problems())
	assert.Len(t, s.model.At(t.Context(), now, incident.Query{}).Problems(), 1)
	assert.Empty(t, s.model.At(left, now, incident.Query{}).Problems())
}

// TestTheTimeOfNothing is not in an answer.
func TestTheTimeOfNothing(t *testing.T) {
	encoded, err := json.Marshal(incident.Summary{})
	require.NoError(t, err)
	assert.NotContains(t, string(encoded), "0001-01-01")
}

// TestAnEventThatIsRepeatedForHours is one problem from its first occurrence on, unless it paused.
func TestAnEventThatIsRepeatedForHours(t *testing.T) {
	for name, tt := range map[string]struct {
		pause time.Duration // from the second hour on
		since string
	}{
		"all the time":   {0, "0s"},
		"with a pause":   {20 * time.Minute, "2h20m0s"},
		"a short pause":  {9 * time.Minute, "0s"},
		"and much later": {5 * time.Hour, "7h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			model, count := incident.NewModel(began.Add(-incident.Horizon)), 0
			for at := time.Duration(0); at < 8*time.Hour; at += time.Minute {
				if at >= 2*time.Hour && at < 2*time.Hour+tt.pause {
					continue
				}
				count++
				line := fmt.Sprintf("%v Pod/web-aaa-1 !BackOff{app} event=1 x%d/0s: Back-off restarting failed container app", at, count)
				add(model, records.Records(line)[0].Logs(began), began.Add(at))
				if at%(13*time.Minute) != 0 || at < 4*time.Hour && tt.pause > 0 {
					continue
				}
				problems := model.At(t.Context(), began.Add(at+30*time.Second), incident.Query{}).Problems()
				require.Len(t, problems, 1)
				assert.Zero(t, problems[0].Over, at)
				if at >= 7*time.Hour || tt.pause < time.Hour {
					assert.Equal(t, tt.since, problems[0].Onset.Sub(began).String(), at)
				}
			}
		})
	}
}

// TestLivenessKillsForADay are a problem of a probe, and no crash: each start follows a kill.
func TestLivenessKillsForADay(t *testing.T) {
	for _, every := range []time.Duration{2 * time.Minute, 5 * time.Minute, 9 * time.Minute} {
		m := incident.NewModel(began.Add(-incident.Horizon))
		see := func(at time.Duration, line string, args ...any) {
			for _, r := range records.Records(at.String() + " " + fmt.Sprintf(line, args...)) {
				add(m, r.Logs(began), began.Add(r.At))
			}
		}
		see(0, "Pod/web-aaa-1 Started{app} node=n event=s new=1 x1/0s: Container started")
		for i, now := 1, every; now < 24*time.Hour; i, now = i+1, now+every {
			for j := range 3 {
				see(now-time.Duration(3-j)*10*time.Second, "Pod/web-aaa-1 !Unhealthy{app} node=n event=u new=1 x%d/%s: Liveness probe failed: m", 3*i+j-2, every-30*time.Second)
			}
			see(now, "Pod/web-aaa-1 Killing{app} node=n event=k new=1 x%d/%s: Container app failed liveness probe, will be restarted", i, every)
			see(now+time.Second, "Pod/web-aaa-1 Started{app} node=n event=s new=1 x%d/0s: Container started", i+1)
			for _, p := range m.At(t.Context(), began.Add(now+2*time.Second), incident.Query{}).Problems() {
				require.Equal(t, "probe", p.Class, "a kill each %v, after %v", every, now)
			}
		}
	}
}

// TestTheRolloutOfALargeDaemonSet is one, although the model has no room for all of its records.
func TestTheRolloutOfALargeDaemonSet(t *testing.T) {
	m, rollouts := incident.NewModel(began.Add(-incident.Horizon)), map[string]bool{}
	for i := range 2500 {
		for _, r := range records.Records(fmt.Sprintf("%ds Pod/agent-%d<daemonset.apps/agent starts hash=h node=node-%d", i/2, i, i)) {
			add(m, r.Logs(began), began.Add(r.At))
		}
		if i%250 == 249 {
			for _, c := range m.At(t.Context(), began.Add(time.Duration(i/2+11)*time.Second), incident.Query{}).Changes() {
				rollouts[c.ID()] = true
			}
		}
	}
	assert.Len(t, rollouts, 1)
}
