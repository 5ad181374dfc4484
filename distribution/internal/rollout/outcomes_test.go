// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// outcomeOf returns the outcome of a rollout and its numbers of pods.
func outcomeOf(s story, revision string, o rollout.Options) string {
	for _, span := range spansOf(modelOf(s), o) {
		of := func(name string) any { return span.Attributes["k8s.rollout."+name] }
		if span.Parent.IsEmpty() && of("revision") == revision {
			return fmt.Sprintf("%v, %v of %v started, %v failed", of("outcome"), of("pods.started"), of("pods.planned"), of("pods.failed"))
		}
	}
	return "no rollout"
}

// started has the records of pods of the ReplicaSet shop-aaa that start at this time.
func started(at string, names ...string) (s story) {
	for _, name := range names {
		s.add(create(at, "shop-aaa-"+name))
		s.add(startOf(at, pod("shop-aaa-"+name))...)
	}
	return s
}

// unplaced has a pod for which there is no node.
func unplaced(at, name string) (s story) {
	s.add(create(at, name), occurrence{at: at, about: pod(name), reason: "FailedScheduling", message: "no node"})
	return s
}

// scaledUp has scale-ups of the ReplicaSet shop-aaa, one a second.
func scaledUp(sizes ...int) (s story) {
	for i := range sizes[1:] {
		s.add(scale(fmt.Sprint(i, "s"), "shop-aaa", sizes[i], sizes[i+1]))
	}
	return s
}

// manySteps replaces 50 pods one by one. The controller writes no more about this after 14 steps, and there is no
// node for the 40th pod.
func manySteps() (s story) {
	s = scaledUp(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
	for i := range 39 {
		s = join(s, started(fmt.Sprint(10*i, "s"), fmt.Sprint(i)))
	}
	return join(s, unplaced("6m30s", "shop-aaa-39"))
}

// warned has a pod that starts within 4 s, and a warning that its kubelet repeats for two minutes.
func warned(reason, container string) story {
	s := join(scaledUp(0, 1), started("0s", "1"))
	warning := occurrence{at: "1s", about: pod("shop-aaa-1"), reason: reason, container: container, message: "the text of a warning", kind: "Warning"}
	s.add(warning)
	warning.at, warning.count, warning.since = "2m10s", 3, "1s"
	s.add(warning)
	return s
}

// slowUpdate replaces the two pods of a StatefulSet ten minutes apart: the first one takes long to become ready.
func slowUpdate() (s story) {
	says := func(at, reason, name string) {
		verb := map[string]string{"SuccessfulCreate": "create", "SuccessfulDelete": "delete"}[reason]
		s.add(occurrence{at: at, about: statefulSet("db"), reason: reason, message: verb + " Pod " + name + " in StatefulSet db successful"})
	}
	for _, name := range []string{"db-0", "db-1"} {
		says("0s", "SuccessfulCreate", name)
		s.add(startOf("0s", member(name, "uid-old-"+name, "hash-1"))...)
	}
	says("10m0s", "SuccessfulDelete", "db-1")
	s.add(stop("10m0s", member("db-1", "uid-old-db-1", "hash-1")))
	says("10m10s", "SuccessfulCreate", "db-1")
	s.add(startOf("10m10s", member("db-1", "uid-db-1", "hash-2"))...)
	says("20m0s", "SuccessfulDelete", "db-0")
	s.add(stop("20m0s", member("db-0", "uid-old-db-0", "hash-1")))
	says("20m10s", "SuccessfulCreate", "db-0")
	s.add(occurrence{at: "20m10s", about: member("db-0", "uid-db-0", "hash-2"), reason: "FailedScheduling", message: "no node"})
	return s
}

// TestPausedUpdate: a pod that replaces another one is part of the rollout, however late. A scale-up is not.
func TestPausedUpdate(t *testing.T) {
	t.Parallel()
	const second = "replicaset.apps/shop-bbb"
	update := join(firstRollout("0s"), secondRollout())
	undone := join(firstRollout("0s"), pausedUpdate()[:9], unplaced("30m0s", "shop-aaa-3"))
	undone.add(scale("30m0s", "shop-bbb", 1, 0), stop("30m0s", pod("shop-bbb-1")))
	for name, c := range map[string]struct {
		story    story
		revision string
		want     string
	}{
		"an update that pauses":              {join(firstRollout("0s"), pausedUpdate()), second, "failed, 1 of 2 started, 1 failed"},
		"nothing is known of the old pods":   {pausedUpdate(), second, "failed, 1 of 2 started, 1 failed"},
		"a pod that comes after the update":  {join(update, unplaced("20m0s", "shop-bbb-3")), second, "complete, 2 of 2 started, 0 failed"},
		"a StatefulSet that waits for a pod": {slowUpdate(), "hash-2", "failed, 1 of 2 started, 1 failed"},
		"a way back to the old revision":     {undone, "replicaset.apps/shop-aaa", "complete, 2 of 2 started, 0 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, outcomeOf(c.story, c.revision, late))
		})
	}
}

// TestFailingProbe: no Event says that a probe succeeds, and a kubelet that has written 25 Events about a pod writes
// one in five minutes.
func TestFailingProbe(t *testing.T) {
	t.Parallel()
	const complete, failed = "complete, 1 of 1 started, 0 failed", "failed, 1 of 1 started, 1 failed"
	for name, c := range map[string]struct {
		last  string // record of the probe
		count int64
		now   string
		want  string
	}{
		"a minute after a few failures":              {"35s", 3, "1m35s", "incomplete, 1 of 1 started, 1 failed"},
		"three minutes after a few failures":         {"35s", 3, "3m35s", complete},
		"before the next record that is possible":    {"3m25s", 21, "8m20s", failed},
		"one of five minutes is late":                {"15m5s", 91, "20m30s", failed},
		"eight minutes after the last of many":       {"15m5s", 91, "23m5s", complete},
		"before the last look after the last record": {"15m5s", 91, "25m5s", complete},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := join(scaledUp(0, 1), started("0s", "1"))
			s.add(occurrence{at: c.last, about: pod("shop-aaa-1"), reason: "Unhealthy", container: "app", message: "Readiness probe failed", count: c.count, since: "5s"})
			at := rollout.Options{Idle: late.Idle, Now: after(c.now)}
			assert.Equal(t, c.want, outcomeOf(s, "replicaset.apps/shop-aaa", at))
		})
	}
}

// TestOutcome: which pods a rollout waits for.
func TestOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		story story
		want  string
	}{
		"a scale-up of an old revision":              {scaleUpOfAnOldRevision(), "complete, 2 of 2 started, 0 failed"},
		"a scale-up of an old revision, not all run": {scaleUpOfAnOldRevision()[:7], "incomplete, 1 of 2 started, 0 failed"},
		"two scale-ups of an old revision":           {join(scaledUp(3, 4, 5), started("2s", "4", "5")), "complete, 2 of 2 started, 0 failed"},
		"a scale-up after another one":               {join(scaledUp(0, 2, 3), started("2s", "1", "2", "3")), "complete, 3 of 3 started, 0 failed"},
		"the first scale-up is missing, a pod fails": {
			join(started("0s", "1"), scaledUp(1, 2), unplaced("0s", "shop-aaa-2")), "failed, 1 of 2 started, 1 failed",
		},
		"more steps than a controller writes":          {manySteps(), "failed, 39 of 40 started, 1 failed"},
		"more steps than a controller writes, all run": {manySteps()[:14+39*6], "complete, 39 of 39 started, 0 failed"},
		"a pod that failed and was replaced":           {join(scaledUp(0, 1), unplaced("0s", "shop-aaa-0"), started("0s", "1")), "complete, 1 of 1 started, 1 failed"},
		"too many name servers":                        {warned("DNSConfigForming", "app"), "complete, 1 of 1 started, 0 failed"},
		"a pull secret that nobody needs":              {warned("FailedToRetrieveImagePullSecret", ""), "complete, 1 of 1 started, 0 failed"},
		"a probe that succeeds, but warns":             {warned("ProbeWarning", "app"), "complete, 1 of 1 started, 0 failed"},
		"a volume that fails after the start":          {warned("FailedMount", ""), "failed, 1 of 1 started, 1 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, outcomeOf(c.story, "replicaset.apps/shop-aaa", late))
		})
	}
}

// agent returns a pod of a DaemonSet.
func agent(name, node string) object {
	return object{kind: "Pod", name: name, uid: "uid-" + name, hash: "hash-1", node: node, chain: []string{"daemonset.apps/agent"}, workload: "DaemonSet/agent"}
}

// made has what a StatefulSet, a DaemonSet or a Job says about one of its pods.
func made(at, reason string, of, pod object) occurrence {
	message := map[string]string{"SuccessfulCreate": "Created pod: ", "SuccessfulDelete": "Deleted pod: "}[reason] + pod.name
	return occurrence{at: at, about: of, reason: reason, message: message}
}

// TestReplacedBeforeItsStart: a pod that ended before it started, and was replaced, is none that a rollout waits for.
func TestReplacedBeforeItsStart(t *testing.T) {
	t.Parallel()
	const create, deletion = "SuccessfulCreate", "SuccessfulDelete"
	agents := object{kind: "DaemonSet", name: "agent", uid: "uid-agent", workload: "DaemonSet/agent"}
	job := ofReport("Job", "report-1")
	jobPod := func(name string) object { return ofReport("Pod", name, "job.batch/report-1") }
	noImage := func(at string, of object) story {
		return append(unstarted(at, of), occurrence{at: at, about: of, reason: "Failed", container: "app", message: "Error: ErrImagePull"}.logs())
	}
	for name, c := range map[string]struct {
		before, after story
		revision      string
	}{
		"a pod of a StatefulSet without a node": {
			join(story{made("0s", create, statefulSet("db"), object{name: "db-0"}).logs()}, unstarted("0s", member("db-0", "uid-1", "hash-1"))),
			start("1m0s", member("db-0", "uid-2", "hash-1")), "hash-1",
		},
		"a pod of a DaemonSet without its image": {
			join(story{made("0s", create, agents, agent("agent-1", "")).logs()}, noImage("0s", agent("agent-1", "worker-1"))),
			join(story{made("1m0s", create, agents, agent("agent-2", "")).logs()}, start("1m0s", agent("agent-2", "worker-1"))), "hash-1",
		},
		"a pod of a DaemonSet that it deleted": {
			join(story{made("0s", create, agents, agent("agent-1", "")).logs()}, unstarted("0s", agent("agent-1", ""))),
			join(story{made("1m0s", deletion, agents, agent("agent-1", "")).logs(), made("1m0s", create, agents, agent("agent-2", "")).logs()}, start("1m0s", agent("agent-2", "worker-1"))), "hash-1",
		},
		"a pod of a Job that it deleted": {
			join(story{made("0s", create, job, jobPod("report-1-x")).logs()}, unstarted("0s", jobPod("report-1-x"))),
			join(story{made("1m0s", deletion, job, jobPod("report-1-x")).logs(), made("1m0s", create, job, jobPod("report-1-y")).logs()}, start("1m0s", jobPod("report-1-y"))), "job.batch/report-1",
		},
		"a pod of a Job that its node ended": {
			join(story{made("0s", create, job, jobPod("report-1-x")).logs()}, unstarted("0s", jobPod("report-1-x")), story{stop("50s", jobPod("report-1-x")).logs()}),
			join(story{made("1m0s", create, job, jobPod("report-1-y")).logs()}, start("1m0s", jobPod("report-1-y"))), "job.batch/report-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, "failed, 0 of 1 started, 1 failed", outcomeOf(c.before, c.revision, late))
			want := map[bool]string{true: "incomplete", false: "complete"}[rollout.IsJob(c.revision)] // The Job runs.
			assert.Equal(t, want+", 1 of 1 started, 0 failed", outcomeOf(join(c.before, c.after), c.revision, late))
		})
	}
}

// unstarted has a pod for which there is no node.
func unstarted(at string, of object) story {
	return story{occurrence{at: at, about: of, reason: "FailedScheduling", message: "no node"}.logs()}
}

func start(at string, of object) (s story) {
	s.add(startOf(at, of)...)
	return s
}
