// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// resultOf returns the outcome of the last rollout of a revision, and why it failed.
func resultOf(s story, revision string) (result string) {
	for _, span := range spansOf(modelOf(s), late) {
		if span.Parent.IsEmpty() && span.Attributes["k8s.rollout.revision"] == revision {
			result = fmt.Sprint(span.Attributes["k8s.rollout.outcome"], " ", span.Error)
		}
	}
	return result
}

// updateThen starts one pod of the second revision.
func updateThen(end ...occurrence) story {
	s := firstRollout("0s")
	s.add(scale("10m0s", "shop-bbb", 0, 1), create("10m0s", "shop-bbb-1"))
	s.add(startOf("10m0s", pod("shop-bbb-1"))...)
	s.add(end...)
	return s
}

// undo ends the pod of the second revision.
func undo(at string) []occurrence {
	return []occurrence{
		scale(at, "shop-bbb", 1, 0), {at: at, about: replicaSet("shop-bbb"), reason: "SuccessfulDelete", message: "Deleted pod: shop-bbb-1"},
		stop(at, pod("shop-bbb-1")),
	}
}

func unhealthy(last string, count int64) occurrence {
	return occurrence{at: last, about: pod("shop-bbb-1"), reason: "Unhealthy", container: "app", message: "Readiness probe failed", count: count, since: "10m10s"}
}

func ofPod(at string, reason, message string, count int64, since string) occurrence {
	o := occurrence{at: at, about: pod("shop-bbb-1"), reason: reason, container: "app", message: message, count: count}
	if count > 1 {
		o.since = since
	}
	return o
}

const backOff = "Back-off restarting failed container app in pod shop-bbb-1"

// noCommand has a container that cannot start, because its image does not have the command.
func noCommand() (s story) {
	const message = `Error: failed to create containerd task: exec: "nosuch": executable file not found in $PATH`
	s.add(scale("10m0s", "shop-bbb", 0, 1), create("10m0s", "shop-bbb-1"))
	s.add(startOf("10m0s", pod("shop-bbb-1"))[:4]...)
	s.add(
		ofPod("10m4s", "Failed", message, 1, ""), ofPod("10m5s", "BackOff", backOff, 1, ""),
		ofPod("10m20s", "Failed", message, 2, "10m4s"), ofPod("10m25s", "BackOff", backOff, 2, "10m5s"),
	)
	return s
}

// crashes has a container that has crashed twice, and has started a third time.
func crashes() []occurrence {
	return []occurrence{
		ofPod("10m8s", "BackOff", backOff, 1, ""), ofPod("10m20s", "Started", "Container started", 2, "10m4s"),
		ofPod("10m40s", "BackOff", backOff, 2, "10m8s"), ofPod("11m0s", "Started", "Container started", 3, "10m4s"),
	}
}

// smallQuota cannot create its pod for 11 minutes: the last pause is more than 5 minutes.
func smallQuota() (s story) {
	const message = "Error creating: exceeded quota"
	s.add(scale("0s", "shop-aaa", 0, 1))
	for i, at := range []string{"0s", "41s", "82s", "164s", "328s"} {
		s.add(occurrence{at: at, about: replicaSet("shop-aaa"), reason: "FailedCreate", message: message, count: int64(i + 1), since: "0s"})
	}
	return join(s, started("655s", "1"))
}

// takenBack is scaled up during an update, and there are no nodes for the pods: they are deleted again.
func takenBack(end ...occurrence) story {
	s := join(scaledUp(0, 2), started("2s", "1", "2"))
	s.add(scale("1m0s", "shop-aaa", 2, 4))
	s = join(s, unplaced("1m0s", "shop-aaa-3"), unplaced("1m0s", "shop-aaa-4"))
	for _, name := range []string{"shop-aaa-3", "shop-aaa-4"} {
		s.add(occurrence{at: "7m0s", about: replicaSet("shop-aaa"), reason: "SuccessfulDelete", message: "Deleted pod: " + name})
	}
	s.add(end...)
	return s
}

// takenBackAndAgain has a scale-up that is taken back, and comes again when there is a node.
func takenBackAndAgain() story {
	s := join(scaledUp(0, 2), started("2s", "1", "2"), story{scale("1m0s", "shop-aaa", 2, 3).logs()}, unplaced("1m0s", "shop-aaa-3"))
	s.add(scale("2m0s", "shop-aaa", 3, 2), occurrence{at: "2m0s", about: replicaSet("shop-aaa"), reason: "SuccessfulDelete", message: "Deleted pod: shop-aaa-3"})
	again := scale("3m0s", "shop-aaa", 2, 3)
	again.count, again.since = 2, "1m0s"
	s.add(again)
	return join(s, started("3m0s", "4"))
}

// laterCrash has a pod that crashed at its start and 40 minutes later, when an update ends it.
func laterCrash() (s story) {
	of := pod("shop-aaa-1")
	o := occurrence{at: "1m0s", about: of, reason: "BackOff", container: "app", message: "Back-off restarting failed container app"}
	s.add(o, occurrence{at: "1m30s", about: of, reason: "Started", container: "app", message: "Container started", count: 2, since: "4s"})
	o.at, o.count, o.since = "40m0s", 2, "1m0s"
	s.add(o, occurrence{at: "41m0s", about: of, reason: "Started", container: "app", message: "Container started", count: 3, since: "4s"})
	s.add(scale("42m0s", "shop-bbb", 0, 1), stop("42m0s", of))
	return s
}

// laterProbe has a pod whose probe failed at its start and 50 minutes later, when an update ends it.
func laterProbe() (s story) {
	o := occurrence{at: "10s", about: pod("shop-aaa-1"), reason: "Unhealthy", container: "app", message: "Readiness probe failed"}
	s.add(o)
	o.at, o.count, o.since = "49m30s", 2, "10s"
	s.add(o, scale("50m0s", "shop-bbb", 0, 1), stop("50m0s", pod("shop-aaa-1")))
	return s
}

// quotaOfTwo can create two of three pods, and is scaled down to them.
func quotaOfTwo() story {
	s := join(scaledUp(0, 3), started("0s", "1", "2"))
	for i, at := range []string{"0s", "41s", "164s"} {
		s.add(occurrence{at: at, about: replicaSet("shop-aaa"), reason: "FailedCreate", message: "Error creating: exceeded quota", count: int64(i + 1), since: "0s"})
	}
	s.add(scale("200s", "shop-aaa", 3, 2))
	return s
}

// drainedUpdate has a rollout of two pods, and a drain that ends one of them.
func drainedUpdate(next story) story {
	s := join(scaledUp(0, 2), started("0s", "1", "2"))
	return join(s, story{stop("1m0s", pod("shop-aaa-1")).logs()}, next)
}

// halfDone has an update with one pod that runs and one without a node, which is deleted first when another revision
// is scaled up.
func halfDone(other occurrence) story {
	s := join(scaledUp(0, 1, 2), started("0s", "1"), unplaced("1s", "shop-aaa-2"))
	s.add(scale("8m0s", "shop-aaa", 2, 1), occurrence{at: "8m0s", about: replicaSet("shop-aaa"), reason: "SuccessfulDelete", message: "Deleted pod: shop-aaa-2"})
	s.add(other, scale("8m8s", "shop-aaa", 1, 0), stop("8m8s", pod("shop-aaa-1")))
	s.add(occurrence{at: "8m8s", about: replicaSet("shop-aaa"), reason: "SuccessfulDelete", message: "Deleted pod: shop-aaa-1"})
	return s
}

// TestIncidents: how a rollout that went wrong ends, and why.
func TestIncidents(t *testing.T) {
	t.Parallel()
	const first, second = "replicaset.apps/shop-aaa", "replicaset.apps/shop-bbb"
	policy := occurrence{at: "5s", about: replicaSet("shop-aaa"), reason: "PolicyViolation", kind: "Warning", message: "policy disallow-latest failed"}
	budgets := occurrence{at: "6s", about: pod("shop-aaa-1"), reason: "MultiplePodDisruptionBudgets", kind: "Warning", message: "Pod has more than one PodDisruptionBudget"}
	for name, c := range map[string]struct {
		story    story
		revision string
		want     string
	}{
		"undone while its probe fails":                      {updateThen(append(undo("12m0s"), unhealthy("11m58s", 10))...), second, "failed Readiness probe failed"},
		"undone long after many failures of the probe":      {updateThen(append(undo("19m0s"), unhealthy("14m0s", 25))...), second, "failed Readiness probe failed"},
		"undone long after its probe has failed":            {updateThen(append(undo("19m0s"), unhealthy("10m20s", 2))...), second, "superseded "},
		"a probe that failed at the start and at the end":   {updateThen(append(undo("19m0s"), unhealthy("19m1s", 3))...), second, "superseded "},
		"undone while a container that crashes runs":        {updateThen(append(crashes(), undo("11m20s")...)...), second, "failed " + backOff},
		"undone long after a crash":                         {updateThen(append(crashes(), undo("19m0s")...)...), second, "superseded "},
		"a command that the image does not have":            {noCommand(), second, `failed Error: failed to create containerd task: exec: "nosuch": executable file not found in $PATH`},
		"a quota that is raised after ten minutes":          {smallQuota(), first, "complete "},
		"a quota that is not raised":                        {smallQuota()[:6], first, "failed Error creating: exceeded quota"},
		"a scale-up during the rollout that is taken back":  {takenBack(scale("7m0s", "shop-aaa", 4, 2)), first, "complete "},
		"such a scale-up, and all pods end at night":        {takenBack(scale("7m0s", "shop-aaa", 4, 2), scale("22h0m0s", "shop-aaa", 2, 0)), first, "complete "},
		"a scale-up that is taken back, and comes again":    {takenBackAndAgain(), first, "complete "},
		"a crash long after the start, and another update":  {join(firstRollout("0s"), laterCrash()), first, "complete "},
		"a probe that fails again before the update":        {join(firstRollout("0s"), laterProbe()), first, "complete "},
		"a quota that a scale-up a day later does not need": {join(quotaOfTwo(), started("20h0m0s", "3")), first, "complete "},
		"a drain, and there is no node for the next pod":    {drainedUpdate(unplaced("1m0s", "shop-aaa-3")), first, "failed no node"},
		"a drain, and the next pod starts":                  {drainedUpdate(started("1m0s", "3")), first, "complete "},
		"half of an update, undone in two steps":            {join(story{scale("0s", "shop-bbb", 0, 3).logs()}, halfDone(scale("8m0s", "shop-bbb", 2, 3))), first, "failed no node"},
		"half of an update, and another one a second later": {halfDone(scale("8m1s", "shop-ccc", 0, 1)), first, "failed no node"},
		"a rollout that is undone after a scale-up":         {takenBack(scale("7m0s", "shop-aaa", 4, 0)), first, "failed no node"},
		"a rollout that another one replaces":               {takenBack(scale("6m0s", "shop-bbb", 0, 1), scale("7m0s", "shop-aaa", 4, 2)), first, "failed no node"},
		"warnings of a policy and of disruption budgets":    {join(firstRollout("0s"), story{policy.logs(), budgets.logs()}), first, "complete "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, resultOf(c.story, c.revision))
		})
	}
}

// TestUncreatedStart: the container never started, so its start has failed, and there is no restart.
func TestUncreatedStart(t *testing.T) {
	t.Parallel()
	var names []string
	for _, span := range spansOf(modelOf(noCommand()), late) {
		names = append(names, fmt.Sprint(span.Name, " ", span.Error != ""))
	}
	assert.ElementsMatch(t, []string{"rollout deployment/shop true", "pod shop-bbb-1 true", "schedule false", "pull app false", "start app true"}, names)
}

// TestReplacementThatFails: a pod that started, and ended, does not hide that the one in its place fails.
func TestReplacementThatFails(t *testing.T) {
	t.Parallel()
	jobPod := func(name string) object { return ofReport("Pod", name, "job.batch/report-1") }
	job := ofReport("Job", "report-1")
	for name, c := range map[string]struct {
		story    story
		revision string
		want     string
	}{
		"of a StatefulSet": {
			join(start("0s", member("db-0", "uid-1", "hash-1")), story{stop("1m0s", member("db-0", "uid-1", "hash-1")).logs()}, unstarted("1m10s", member("db-0", "uid-2", "hash-1"))),
			"hash-1", "failed no node",
		},
		"of a DaemonSet": {
			join(start("0s", agent("agent-1", "worker-1")), start("0s", agent("agent-2", "worker-2")), story{stop("1m0s", agent("agent-1", "worker-1")).logs()}, unstarted("1m10s", agent("agent-3", ""))),
			"hash-1", "failed no node",
		},
		"of a Job": {
			join(story{made("0s", "SuccessfulCreate", job, jobPod("report-1-x")).logs()}, start("0s", jobPod("report-1-x")), story{stop("1m0s", jobPod("report-1-x")).logs(), made("1m10s", "SuccessfulCreate", job, jobPod("report-1-y")).logs()}, unstarted("1m10s", jobPod("report-1-y"))),
			"job.batch/report-1", "failed no node",
		},
		"of a Job whose first pod had no node": {
			join(unstarted("0s", jobPod("report-1-x")), story{stop("50s", jobPod("report-1-x")).logs()}, start("1m0s", jobPod("report-1-y"))),
			"job.batch/report-1", "incomplete ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, resultOf(c.story, c.revision))
		})
	}
}

// TestRollbackOfOldKubernetes: Kubernetes 1.28 to 1.31 do not say that they scale a new ReplicaSet up from zero.
func TestRollbackOfOldKubernetes(t *testing.T) {
	t.Parallel()
	scaled := func(at, message string) story {
		return story{occurrence{at: at, about: deployment("shop"), reason: "ScalingReplicaSet", message: message}.logs()}
	}
	s := join(
		scaled("0s", "Scaled up replica set shop-aaa to 1"), started("0s", "1"),
		scaled("10m0s", "Scaled up replica set shop-bbb to 1"), start("10m0s", pod("shop-bbb-1")), scaled("10m5s", "Scaled down replica set shop-aaa to 0 from 1"),
		scaled("20m0s", "Scaled up replica set shop-aaa to 1 from 0"), started("20m0s", "2"),
	)
	assert.Equal(t, "replicaset.apps/shop-aaa at 20m0s", rolloutOf(t, s, "pod shop-aaa-2"))
	assert.Equal(t, "replicaset.apps/shop-bbb at 10m0s", rolloutOf(t, s, "pod shop-bbb-1"))
}

// TestScaledAfterRollback: a scaling that occurred before and after a rollback is no part of it.
func TestScaledAfterRollback(t *testing.T) {
	t.Parallel()
	s := join(firstRollout("0s"), story{scale("5m0s", "shop-aaa", 2, 4).logs()}, secondRollout(), rollback())
	again := scale("50m0s", "shop-aaa", 2, 4)
	again.count, again.since = 2, "5m0s"
	s.add(again)
	assert.Equal(t, "complete ", resultOf(s, "replicaset.apps/shop-aaa"))
}

// idsIn returns the ids and names of all spans but the ends of pods.
func idsIn(parts []rollout.Part) (ids []string) {
	for _, part := range parts {
		for _, s := range part.Spans {
			if !strings.HasPrefix(s.Name, "stop ") {
				ids = append(ids, fmt.Sprint(s.Trace, s.ID, s.Parent, s.Name))
			}
		}
	}
	return ids
}

// TestManyScalingsBeforeZero: an autoscaler scales the old revision often, and the new one is scaled to zero and back.
func TestManyScalingsBeforeZero(t *testing.T) {
	t.Parallel()
	s := firstRollout("0s")
	for hour := range 40 {
		for i, o := range []occurrence{scale("0s", "shop-aaa", 2, 3), scale("0s", "shop-aaa", 3, 2)} {
			o.at, o.since, o.count = fmt.Sprint(hour+1, "h", i, "m0s"), fmt.Sprint("1h", i, "m0s"), int64(hour+1)
			o.event = fmt.Sprint("scaled-", hour, i)
			s.add(o)
		}
	}
	s.add(scale("50h0m0s", "shop-bbb", 0, 2), scale("50h0m5s", "shop-aaa", 2, 0))
	s = join(s, start("50h0m0s", pod("shop-bbb-1")))
	s.add(scale("60h0m0s", "shop-bbb", 2, 0))
	up := scale("70h0m0s", "shop-bbb", 0, 2)
	up.count, up.since = 2, "50h0m0s"
	s.add(up)
	s = join(s, start("70h0m0s", pod("shop-bbb-2")))
	assert.Equal(t, "replicaset.apps/shop-bbb at 50h0m0s", rolloutOf(t, s, "pod shop-bbb-2"))
}

// TestLongGracePeriod: a pod of a StatefulSet that takes long to end delays the next one of its name. The update goes on.
func TestLongGracePeriod(t *testing.T) {
	t.Parallel()
	s := start("0s", member("db-1", "uid-old-1", "hash-1"))
	s = join(s, start("0s", member("db-0", "uid-old-0", "hash-1")), story{stop("10m0s", member("db-1", "uid-old-1", "hash-1")).logs()})
	s = join(s, start("12m0s", member("db-1", "uid-1", "hash-2")), story{stop("20m0s", member("db-0", "uid-old-0", "hash-1")).logs()})
	s = join(s, unstarted("22m0s", member("db-0", "uid-0", "hash-2")))
	assert.Equal(t, "failed no node", resultOf(s, "hash-2"))
}

// TestScaleUpDaysLater: the new pod of a StatefulSet has the name of one that ended before the update.
func TestScaleUpDaysLater(t *testing.T) {
	t.Parallel()
	s := join(start("0s", member("db-1", "uid-old-1", "hash-1")), start("0s", member("db-0", "uid-old-0", "hash-1")))
	s = join(s, story{stop("10m0s", member("db-1", "uid-old-1", "hash-1")).logs(), stop("24h0m0s", member("db-0", "uid-old-0", "hash-1")).logs()})
	s = join(s, start("24h0m10s", member("db-0", "uid-0", "hash-2")), unstarted("72h0m0s", member("db-1", "uid-1", "hash-2")))
	assert.Equal(t, "complete ", resultOf(s, "hash-2"))
}

// TestMissingOfAReplacedPod: a pod that was replaced does not hide that nothing is known of the next one.
func TestMissingOfAReplacedPod(t *testing.T) {
	t.Parallel()
	job := ofReport("Job", "report-1")
	of := func(name string) object { return ofReport("Pod", name, "job.batch/report-1") }
	s := join(
		story{made("0s", "SuccessfulCreate", job, of("report-1-x")).logs()}, unstarted("0s", of("report-1-x")),
		story{made("1m0s", "SuccessfulDelete", job, of("report-1-x")).logs(), made("1m0s", "SuccessfulCreate", job, of("report-1-y")).logs()},
	)
	s = join(s, start("2m0s", of("report-1-z")))
	for _, span := range spansOf(modelOf(s), late) {
		if span.Parent.IsEmpty() {
			assert.Equal(t, []string{"1 pod without a record"}, span.Attributes["k8s.rollout.missing"])
		}
	}
}
