// SPDX-License-Identifier: Apache-2.0

package problem_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

var update = flag.Bool("update", false, "write the golden files again")

// cluster is a model with its tracker, which looks each ten seconds.
type cluster struct {
	t       *testing.T
	start   time.Time
	model   *incident.Model
	tracker *problem.Tracker
	all     []plog.Logs
	now     time.Time
	news    []problem.Update
	states  map[string]string // by id
	killed  bool              // the tracker is read from JSON before each look
}

func newCluster(t *testing.T, start time.Time, all []plog.Logs) *cluster {
	return &cluster{t: t, start: start, model: incident.NewModel(start.Add(-incident.Horizon)), tracker: &problem.Tracker{}, all: all, now: start, states: map[string]string{}}
}

const step = 10 * time.Second

// runUntil looks until a time, and checks that each problem is opened and ended in turn.
func (c *cluster) runUntil(end time.Time) {
	for ; !c.now.After(end); c.now = c.now.Add(step) {
		for len(c.all) > 0 && !story.Seen(c.all[0]).After(c.now) {
			c.model.AddFacts(incident.FactsOf(record.Read(c.all[0]), c.now, false), c.now)
			c.all = c.all[1:]
		}
		if c.killed {
			stored, err := json.Marshal(c.tracker)
			require.NoError(c.t, err)
			c.tracker = &problem.Tracker{}
			require.NoError(c.t, json.Unmarshal(stored, c.tracker))
		}
		for _, u := range c.tracker.Look(c.now, c.model.At(c.t.Context(), c.now, incident.Query{}).Problems(), false) {
			c.check(u)
			c.news = append(c.news, u)
		}
	}
}

func (c *cluster) check(u problem.Update) {
	switch before := c.states[u.ID]; u.State {
	case problem.Opened:
		assert.Empty(c.t, before, "%s is opened twice", u.Sentence)
	case problem.Ended:
		assert.Contains(c.t, []string{problem.Opened, problem.Changed}, before, "%s ends without a begin", u.Sentence)
	case problem.Changed:
		assert.NotEmpty(c.t, before, "%s changes without a begin", u.Sentence)
	}
	c.states[u.ID] = u.State
}

func (c *cluster) String() string {
	var b strings.Builder
	for _, u := range c.news {
		at := u.Reported.Sub(c.start).Round(time.Second)
		fmt.Fprintf(&b, "  %d:%02d %s: %s", int(at.Minutes()), int(at.Seconds())%60, u.State, u.Sentence)
		if u.State == problem.Ended {
			fmt.Fprintf(&b, "; over: %s", u.Because)
		}
		if n := len(u.Previous); n > 0 {
			fmt.Fprintf(&b, "; %d before", n)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestRealIncidents: testdata/real.txt has what opened, changed and ended in each staged incident.
func TestRealIncidents(t *testing.T) {
	files, err := filepath.Glob("../incident/testdata/real/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var reported strings.Builder
	for _, file := range files {
		all, err := story.Recorded(file)
		require.NoError(t, err)
		var news []string
		for _, killed := range []bool{false, true} {
			c := newCluster(t, story.Seen(all[0]), all)
			c.killed = killed
			c.runUntil(story.Seen(all[len(all)-1]).Add(2 * incident.Horizon))
			news = append(news, strings.ReplaceAll(c.String(), "; seen late", ""))
			for id, state := range c.states {
				assert.Equal(t, problem.Ended, state, "%s: %s", file, id)
			}
		}
		assert.Equal(t, news[0], news[1], "%s: a restart between two looks changes nothing", file)
		fmt.Fprintf(&reported, "%s\n%s", strings.TrimSuffix(filepath.Base(file), ".json"), cmp.Or(news[0], "  nothing\n"))
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/real.txt", []byte(reported.String()), 0o600))
	}
	want, err := os.ReadFile("testdata/real.txt")
	require.NoError(t, err)
	assert.Equal(t, string(want), reported.String())
}

// runs returns what is reported of a story.
func runs(t *testing.T, lines string, until time.Duration) *cluster {
	t.Helper()
	all := story.Logs(lines)
	for i, r := range story.Records(lines) {
		all[i].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).SetObservedTimestamp(pcommon.NewTimestampFromTime(story.Epoch.Add(r.At)))
	}
	c := newCluster(t, story.Epoch, all)
	c.runUntil(story.Epoch.Add(until))
	return c
}

const crash = "!BackOff{app}: Back-off restarting failed container app in pod POD"

func TestStories(t *testing.T) {
	for name, tt := range map[string]struct{ lines, want string }{
		"a problem opens after ten seconds, and ends": {
			"0:01 Pod/web-aaa-1 " + crash,
			`
  0:20 opened: deployment web in shop: a container ends by itself, again and again; the cause is not known
  10:10 ended: deployment web in shop: a container ends by itself, again and again; the cause is not known; over: nothing has repeated it for 10 min
`,
		},
		"one with a cause opens at once": {
			`0:01 ReplicaSet/web-aaa !FailedCreate: Error creating: pods "web-aaa-1" is forbidden: exceeded quota: small, requested: pods=1
			0:20 ReplicaSet/web-aaa SuccessfulCreate: Created pod: web-aaa-1`,
			`
  0:10 opened: deployment web in shop: the owner cannot create a pod; the cause: the quota small is used up
  0:20 ended: deployment web in shop: the owner cannot create a pod; the cause: the quota small is used up; over: a pod was created
`,
		},
		"one that is over before ten seconds is none": {
			"0:01 Pod/web-aaa-1 !FailedScheduling: no room\n0:05 Pod/web-aaa-1 Scheduled: Successfully assigned shop/POD to NODE", "\n",
		},
		"others turn out to share it": {
			"0:01 Pod/a-aaa-1 " + crash + "\n0:21 Pod/b-aaa-1 " + crash + "\n0:41 Pod/c-aaa-1 " + crash,
			`
  0:20 opened: deployment a in shop: a container ends by itself, again and again; the cause is not known
  0:40 opened: deployment b in shop: a container ends by itself, again and again; the cause is not known
  0:50 ended: deployment b in shop: a container ends by itself, again and again; the cause is not known; over: it is a part of another problem
  1:20 changed: 3 workloads in shop at once, 3 pods: a container ends by itself, again and again; the cause is not known
  10:50 ended: 3 workloads in shop at once, 3 pods: a container ends by itself, again and again; the cause is not known; over: nothing has repeated it for 10 min
`,
		},
		"a flap is the same problem": {
			"0:01 Pod/web-aaa-1 !FailedScheduling: no room\n1:00 Pod/web-aaa-1 Scheduled: Successfully assigned shop/POD to NODE\n4:00 Pod/web-aaa-2 !FailedScheduling: no room\n5:00 Pod/web-aaa-2 Scheduled: Successfully assigned shop/POD to NODE",
			`
  0:20 opened: deployment web in shop: no node has room for a pod; the cause is not known
  1:00 ended: deployment web in shop: no node has room for a pod; the cause is not known; over: the pod was scheduled
  4:10 changed: deployment web in shop: no node has room for a pod; the cause is not known
  5:00 ended: deployment web in shop: no node has room for a pod; the cause is not known; over: the pod was scheduled
`,
		},
		"later, it is the same again": {
			"0:01 Pod/web-aaa-1 !FailedScheduling: no room\n1:00 Pod/web-aaa-1 Scheduled: Successfully assigned shop/POD to NODE\n14:00 Pod/web-aaa-2 !FailedScheduling: no room\n15:00 Pod/web-aaa-2 Scheduled: Successfully assigned shop/POD to NODE",
			`
  0:20 opened: deployment web in shop: no node has room for a pod; the cause is not known
  1:00 ended: deployment web in shop: no node has room for a pod; the cause is not known; over: the pod was scheduled
  14:10 opened: deployment web in shop: no node has room for a pod; the cause is not known; 1 before
  15:00 ended: deployment web in shop: no node has room for a pod; the cause is not known; over: the pod was scheduled; 1 before
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, strings.TrimPrefix(tt.want, "\n"), runs(t, tt.lines, 30*time.Minute).String())
		})
	}
}

// TestOneTenant cannot keep the problems of others from opening.
func TestOneTenant(t *testing.T) {
	lines := "0:05 Pod/web-aaa-1 " + crash + "\n"
	for i := range 5000 {
		lines += fmt.Sprintf("0:01 Widget/w%d !Odd%d namespace=evil event=e%d: odd %d\n", i/50, i, i, i)
	}
	c := runs(t, lines, time.Minute)
	opened := map[string]int{}
	for _, u := range c.news {
		assert.Equal(t, problem.Opened, u.State)
		opened[u.Key.Namespace]++
	}
	assert.Equal(t, map[string]int{"shop": 1, "evil": 100}, opened)
}

// TestSpaces: what is full hides nothing of the others. Nodes have more room than what tenants can fill.
func TestSpaces(t *testing.T) {
	var shown []incident.Problem
	add := func(name, namespace string, in ...string) {
		id := fmt.Sprint(name, len(shown))
		p := incident.Problem{ID: id, Series: id, Class: "schedule", Key: incident.Key{Namespace: namespace, Top: incident.Object{Name: id}}, Onset: story.Epoch}
		for _, namespace := range in {
			p.Members = append(p.Members, incident.Member{Key: incident.Key{Namespace: namespace}, ID: id})
		}
		shown = append(shown, p)
	}
	for range 1200 {
		add("shared", "evil-1", "evil-1", "evil-2")
		add("node", "")
		add("node-with-pods", "", "", "shop")
	}
	add("own", "evil-1")
	add("own-of-several", "evil-1", "evil-1", "evil-1")
	opened := map[string]int{}
	tracker := &problem.Tracker{}
	for range 2 {
		for _, u := range tracker.Look(story.Epoch.Add(time.Minute), shown, false) {
			opened[strings.TrimRight(u.ID, "0123456789")]++
		}
	}
	opened["of the cluster"] = opened["node"] + opened["node-with-pods"]
	delete(opened, "node")
	delete(opened, "node-with-pods")
	assert.Equal(t, map[string]int{"shared": 100, "of the cluster": 1000, "own": 1, "own-of-several": 1}, opened)
}

// TestWhatIsKeptIsBounded: 30 days, and 64 MiB with the changes, of which a namespace displaces only its own.
func TestWhatIsKeptIsBounded(t *testing.T) {
	now := story.Epoch
	tracker := &problem.Tracker{Closed: []problem.Problem{
		{ID: "old", Over: now.Add(-31 * 24 * time.Hour)},
		{ID: "quiet", Key: incident.Key{Namespace: "quiet"}, Over: now.Add(-29 * 24 * time.Hour)},
	}}
	long := strings.Repeat("x", 1000)
	for i := range 60_000 {
		tracker.Closed = append(tracker.Closed, problem.Problem{ID: fmt.Sprint(i), Key: incident.Key{Namespace: "noisy"}, Sentence: long, Over: now.Add(-time.Hour)})
	}
	tracker.Look(now, nil, false)
	encoded, err := json.Marshal(tracker)
	require.NoError(t, err)
	assert.Less(t, len(encoded), 48<<20)
	all := tracker.Problems(now.Add(-30 * 24 * time.Hour))
	assert.Greater(t, len(all), 30_000)
	var names []string
	for _, p := range all {
		if p.Key.Namespace != "noisy" {
			names = append(names, p.ID)
		}
	}
	assert.Equal(t, []string{"quiet"}, names)
}

// TestChangesThatAreKept: each is kept as it was reported last, for 30 days, and a namespace displaces only its own.
func TestChangesThatAreKept(t *testing.T) {
	now := story.Epoch
	shown := incident.Change{Key: incident.Key{Namespace: "shop"}, Kind: "node", Text: "node-1 is not ready", Object: "node-1", At: now.Add(-time.Minute)}
	var changes problem.Changes
	require.Len(t, changes.Look(now, []incident.Change{shown}, false), 1)
	assert.Empty(t, changes.Look(now.Add(time.Minute), []incident.Change{shown}, false))
	shown.Until = now.Add(time.Minute)
	ended := changes.Look(now.Add(2*time.Minute), []incident.Change{shown}, false)
	require.Len(t, ended, 1)
	assert.Equal(t, problem.Over, ended[0].State)
	kept := changes.Since(shown.At)
	require.Len(t, kept, 1)
	assert.Equal(t, shown.Until, kept[0].Until)
	assert.True(t, kept[0].IsOver)
	assert.Empty(t, changes.Since(now))

	long := strings.Repeat("x", 1000)
	for i := range 20_000 {
		changes.Keep(problem.Change{ID: fmt.Sprint(i), Key: incident.Key{Namespace: "noisy"}, Text: long, At: now})
	}
	changes.Look(now.Add(29*24*time.Hour), nil, false)
	all := changes.Since(now.Add(-time.Hour))
	assert.Equal(t, shown.Text, all[len(all)-1].Text)
	assert.Greater(t, len(all), 10_000)
	encoded, err := json.Marshal(all)
	require.NoError(t, err)
	assert.Less(t, len(encoded), 16<<20)
	changes.Look(now.Add(31*24*time.Hour), nil, false)
	assert.Empty(t, changes.Since(now.Add(-time.Hour)))
}

// TestChangesOfAnHour: a namespace has room for 300 changes in an hour, and then for others.
func TestChangesOfAnHour(t *testing.T) {
	now := story.Epoch
	change := func(i int, at time.Time) incident.Change {
		return incident.Change{Key: incident.Key{Namespace: "shop"}, Kind: "eviction", Text: "evicted", Object: fmt.Sprint("web-", i), At: at}
	}
	var shown []incident.Change
	for i := range 300 {
		shown = append(shown, change(i, now.Add(-time.Minute)))
	}
	var atOnce, changes problem.Changes
	assert.Len(t, atOnce.Look(now, append(shown[:300:300], change(301, now.Add(-time.Minute))), false), 300)
	assert.Len(t, changes.Look(now, shown, false), 300)
	for _, after := range []time.Duration{time.Minute, 59 * time.Minute} { // The others are an hour old at most.
		assert.Empty(t, changes.Look(now.Add(after), []incident.Change{change(300, now)}, false))
	}
	assert.Len(t, changes.Look(now.Add(time.Hour), []incident.Change{change(301, now.Add(50*time.Minute))}, false), 1)
}

// TestACauseThatIsFoundLaterIsReported, but not another number.
func TestACauseThatIsFoundLaterIsReported(t *testing.T) {
	now := story.Epoch
	shown := incident.Problem{
		ID: "p", Series: "s", Class: "other", Key: incident.Key{Namespace: "shop", Top: incident.Object{Kind: "Widget", Name: "w"}},
		Causes: []incident.Cause{{Change: incident.Change{Text: "image 1 was rolled out"}}}, Onset: now,
	}
	tracker := &problem.Tracker{}
	look := func(after time.Duration, cause string) (states []string) {
		shown.Causes[0].Text = cause
		for _, u := range tracker.Look(now.Add(after), []incident.Problem{shown}, false) {
			states = append(states, u.State)
		}
		return states
	}
	assert.Equal(t, []string{problem.Opened}, look(time.Minute, "image 1 was rolled out"))
	assert.Empty(t, look(3*time.Minute, "image 2 was rolled out"))
	assert.Equal(t, []string{problem.Changed}, look(5*time.Minute, "the quota is used up"))
}

// TestAProbeThatFailsOnceIsNoProblem, but one that goes on failing is.
func TestAProbeThatFailsOnceIsNoProblem(t *testing.T) {
	const once = "0s Pod/web-aaa-1 starts node=node-1\n5m Pod/web-aaa-1 !Unhealthy{app} node=node-1 x1/5m: Readiness probe failed"
	assert.Empty(t, runs(t, once, 10*time.Minute).news)
	more := once + "\n5m10s Pod/web-aaa-1 !Unhealthy{app} node=node-1 x2/5m: Readiness probe failed\n5m20s Pod/web-aaa-1 !Unhealthy{app} node=node-1 x3/5m: Readiness probe failed"
	news := runs(t, more, 10*time.Minute).news
	require.Len(t, news, 2)
	assert.Equal(t, problem.Opened, news[0].State)
	assert.Less(t, news[0].Reported.Sub(news[0].Onset), 31*time.Second)
}

// TestTheOutcomeOfARollout is reported once, when it is final.
func TestTheOutcomeOfARollout(t *testing.T) {
	const begin = "0:00 Deployment/web ScalingReplicaSet: Scaled up replica set web-aaa from 0 to 1\n0:01 Pod/web-aaa-1 "
	failures := ""
	for i := range 60 {
		failures += fmt.Sprintf("%ds Pod/web-aaa-1 !Unhealthy{app} event=u x%d/15s: Readiness probe failed: timeout\n", 15+10*i, i+1)
	}
	for name, tt := range map[string]struct{ lines, want string }{
		"its pod waits for a node": {
			begin + "!FailedScheduling: no room\n1:30 Pod/web-aaa-1 starts", "0:10 happened, 2:40 over complete",
		},
		"its pod starts, crashes soon, and goes on to do so": {
			begin + "starts\n0:35 Pod/web-aaa-1 !BackOff{app} x40/0:35: Back-off restarting failed container app", "0:10 happened, 10:00 over failed",
		},
		"its pod starts, and never becomes ready": {
			begin + "starts\n" + failures, "0:10 happened, 10:00 over failed",
		},
		"the old pod ends when its pod is ready": {
			begin + "starts\n0:20 Deployment/web ScalingReplicaSet: Scaled down replica set web-000 from 1 to 0", "0:10 happened, 0:20 over complete",
		},
		"its image does not exist": {
			begin + "!Failed{app} x40/0:01: Failed to pull image \"shop:9\": not found", "0:10 happened, 10:00 over failed",
		},
		"another one replaces it": {
			begin + "!Failed{app}: Failed to pull image \"shop:9\": not found\n3:00 Deployment/web ScalingReplicaSet: Scaled up replica set web-bbb from 0 to 1\n" +
				"3:00 Deployment/web ScalingReplicaSet: Scaled down replica set web-aaa from 1 to 0",
			"0:10 happened, 3:10 happened, 3:30 over failed",
		},
		"its probe fails once, and another one replaces it": {
			begin + "starts\n0:10 Pod/web-aaa-1 !Unhealthy{app}: Readiness probe failed: connection refused\n" +
				"0:25 Deployment/web ScalingReplicaSet: Scaled up replica set web-bbb from 0 to 1\n0:25 Pod/web-bbb-1 !FailedScheduling: no room\n" +
				"0:25 Deployment/web ScalingReplicaSet: Scaled down replica set web-aaa from 1 to 0",
			"0:10 happened, 0:40 happened, 1:00 over complete, 10:30 over failed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, changes, got := newCluster(t, story.Epoch, story.Logs(tt.lines)), problem.Changes{}, []string{}
			records := story.Records(tt.lines)
			for ; c.now.Before(c.start.Add(30 * time.Minute)); c.now = c.now.Add(step) {
				at := c.now.Sub(c.start)
				for ; len(records) > 0 && records[0].At <= at; records, c.all = records[1:], c.all[1:] {
					c.model.AddFacts(incident.FactsOf(record.Read(c.all[0]), c.now, false), c.now)
				}
				for _, n := range changes.Look(c.now, c.model.At(t.Context(), c.now, incident.Query{}).Changes(), false) {
					text := fmt.Sprintf("%d:%02d %s", int(at.Minutes()), int(at.Seconds())%60, n.State)
					if n.State == problem.Over {
						text += " " + n.Outcome
					}
					got = append(got, text)
				}
			}
			assert.Equal(t, tt.want, strings.Join(got, ", "))
		})
	}
}
