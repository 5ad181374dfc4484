// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// firstRollout has two pods of a new Deployment.
func firstRollout(at string) (s story) {
	s.add(scale(at, "shop-aaa", 0, 2))
	for _, name := range []string{"shop-aaa-1", "shop-aaa-2"} {
		s.add(create(at, name))
		s.add(startOf(at, pod(name))...)
	}
	return s
}

// secondRollout replaces them, one after another.
func secondRollout() (s story) {
	s.add(scale("10m0s", "shop-bbb", 0, 1), create("10m0s", "shop-bbb-1"))
	s.add(startOf("10m0s", pod("shop-bbb-1"))...)
	s.add(scale("10m6s", "shop-aaa", 2, 1), stop("10m6s", pod("shop-aaa-1")))
	s.add(scale("10m6s", "shop-bbb", 1, 2), create("10m6s", "shop-bbb-2"))
	s.add(startOf("10m6s", pod("shop-bbb-2"))...)
	s.add(scale("10m12s", "shop-aaa", 1, 0), stop("10m12s", pod("shop-aaa-2")))
	return s
}

// rollback starts the first revision again. The Event of its scale-up is the old one, repeated.
func rollback() (s story) {
	again := scale("20m0s", "shop-aaa", 0, 2)
	again.count, again.since = 2, "0s"
	s.add(again, create("20m0s", "shop-aaa-3"), create("20m0s", "shop-aaa-4"))
	s.add(startOf("20m0s", pod("shop-aaa-3"))...)
	s.add(startOf("20m0s", pod("shop-aaa-4"))...)
	s.add(scale("20m6s", "shop-bbb", 2, 0), stop("20m6s", pod("shop-bbb-1")), stop("20m6s", pod("shop-bbb-2")))
	return s
}

// combinedRollback is a rollback of a Deployment that was updated often: its controller writes
// different messages into one Event.
func combinedRollback() (s story) {
	for i, o := range []occurrence{scale("20m0s", "shop-aaa", 0, 2), scale("20m6s", "shop-bbb", 2, 0)} {
		o.message = "(combined from similar events): " + o.message
		o.event, o.count, o.since = "combined", int64(i+7), "10m0s"
		s.add(o)
	}
	return join(s, rollback()[1:])
}

// scaleUp adds a pod to the first revision, long after its rollout.
func scaleUp() (s story) {
	s.add(scale("30m0s", "shop-aaa", 2, 3), create("30m0s", "shop-aaa-5"))
	s.add(startOf("30m0s", pod("shop-aaa-5"))...)
	return s
}

// scaleUpOfAnOldRevision is the first that is known of a Deployment.
func scaleUpOfAnOldRevision() (s story) {
	s.add(scale("0s", "shop-aaa", 3, 5))
	for _, name := range []string{"shop-aaa-4", "shop-aaa-5"} {
		s.add(create("0s", name))
		s.add(startOf("0s", pod(name))...)
	}
	return s
}

// undoneUpdate goes back to a revision that is older than all records, before this one had no pods.
func undoneUpdate() (s story) {
	s.add(scale("0s", "shop-bbb", 0, 1), create("0s", "shop-bbb-1"))
	s.add(startOf("0s", pod("shop-bbb-1"))...)
	s.add(scale("6s", "shop-aaa", 3, 2), stop("6s", pod("shop-aaa-1")))
	s.add(scale("2m0s", "shop-aaa", 2, 3), create("2m0s", "shop-aaa-4"))
	s.add(startOf("2m0s", pod("shop-aaa-4"))...)
	s.add(scale("2m5s", "shop-bbb", 1, 0), stop("2m5s", pod("shop-bbb-1")))
	return s
}

// pausedUpdate replaces the second pod ten minutes after the first one. There is no node for the new pod.
func pausedUpdate() (s story) {
	s.add(scale("10m0s", "shop-bbb", 0, 1), create("10m0s", "shop-bbb-1"))
	s.add(startOf("10m0s", pod("shop-bbb-1"))...)
	s.add(scale("20m0s", "shop-aaa", 2, 1), stop("20m0s", pod("shop-aaa-1")), scale("20m0s", "shop-bbb", 1, 2))
	return join(s, unplaced("20m0s", "shop-bbb-2"))
}

// fromZero stops all pods of the current revision, and starts one again.
func fromZero() (s story) {
	s.add(scale("40m0s", "shop-aaa", 2, 0), stop("40m0s", pod("shop-aaa-1")), stop("40m0s", pod("shop-aaa-2")))
	s.add(scale("50m0s", "shop-aaa", 0, 1), create("50m0s", "shop-aaa-6"))
	s.add(startOf("50m0s", pod("shop-aaa-6"))...)
	return s
}

// statefulRollout replaces a pod of a StatefulSet by one of the same name.
func statefulRollout() (s story) {
	set := statefulSet("db")
	s.add(occurrence{at: "0s", about: set, reason: "SuccessfulCreate", message: "create Pod db-0 in StatefulSet db successful"})
	s.add(startOf("0s", member("db-0", "uid-1", "hash-1"))...)
	s.add(occurrence{at: "10m0s", about: set, reason: "SuccessfulDelete", message: "delete Pod db-0 in StatefulSet db successful"})
	s.add(stop("10m1s", member("db-0", "uid-1", "hash-1")))
	again := occurrence{at: "10m30s", about: set, reason: "SuccessfulCreate", message: "create Pod db-0 in StatefulSet db successful", count: 2, since: "0s"}
	s.add(again)
	s.add(startOf("10m30s", member("db-0", "uid-2", "hash-2"))...)
	return s
}

// crashAndRecovery starts a container three times, until it runs.
func crashAndRecovery() (s story) {
	of := pod("shop-aaa-1")
	s.add(scale("0s", "shop-aaa", 0, 1), create("0s", "shop-aaa-1"))
	s.add(startOf("0s", of)...)
	backOff := occurrence{at: "6s", about: of, reason: "BackOff", container: "app", message: "Back-off restarting failed container app"}
	s.add(backOff, occurrence{at: "20s", about: of, reason: "Started", container: "app", message: "Container started", count: 2, since: "4s"})
	backOff.at, backOff.count, backOff.since = "30s", 3, "6s"
	s.add(backOff, occurrence{at: "50s", about: of, reason: "Started", container: "app", message: "Container started", count: 3, since: "4s"})
	return s
}

// startDaysLater crashes in the rollout, and once more after three days.
func startDaysLater() story {
	of := pod("shop-aaa-1")
	s := crashAndRecovery()
	s.add(
		occurrence{at: "72h0m0s", about: of, reason: "BackOff", container: "app", message: "Back-off restarting failed container app", count: 4, since: "6s"},
		occurrence{at: "72h0m20s", about: of, reason: "Started", container: "app", message: "Container started", count: 4, since: "4s"},
	)
	return s
}

// customResource owns two Deployments. Both are rolled out, and one of them is updated and rolled back.
func customResource() (s story) {
	const web, worker = "web", "worker"
	first := scale("0s", web+"-aaa", 0, 1)
	s.add(ofMarket(first, scale("0s", worker+"-bbb", 0, 1))...)
	s.add(ofMarket(startOf("0s", pod(web+"-aaa-1"))...)...)
	s.add(ofMarket(startOf("2s", pod(worker+"-bbb-1"))...)...)
	s.add(ofMarket(scale("10m0s", web+"-ccc", 0, 1), scale("10m10s", web+"-aaa", 1, 0))...)
	s.add(ofMarket(startOf("10m0s", pod(web+"-ccc-1"))...)...)
	s.add(ofMarket(scale("10m5s", worker+"-ddd", 0, 1))...)
	s.add(ofMarket(startOf("10m5s", pod(worker+"-ddd-1"))...)...)
	s.add(ofMarket(stop("10m10s", pod(web+"-aaa-1")), stop("10m12s", pod(worker+"-bbb-1")))...)
	again := first
	again.at, again.count, again.since = "20m0s", 2, "0s"
	s.add(ofMarket(again)...)
	s.add(ofMarket(startOf("20m0s", pod(web+"-aaa-2"))...)...)
	return s
}

// ofMarket puts a custom resource above the Deployments.
func ofMarket(all ...occurrence) []occurrence {
	for i := range all {
		about := &all[i].about
		about.workload = "Market/shop"
		about.chain = append(slices.Clone(about.chain), "market.example.com/shop")
	}
	return all
}

// nameless has the records of a kubelet that names no container.
func nameless() (s story) {
	s.add(scale("0s", "shop-aaa", 0, 1), create("0s", "shop-aaa-1"))
	for _, o := range startOf("0s", pod("shop-aaa-1")) {
		o.container = ""
		s.add(o)
	}
	return s
}

// failedHook has a container that the kubelet kills whenever it has started, and starts again.
func failedHook() (s story) {
	of := pod("shop-aaa-1")
	s.add(scale("0s", "shop-aaa", 0, 1), create("0s", "shop-aaa-1"))
	s.add(startOf("0s", of)...)
	s.add(
		occurrence{at: "5s", about: of, reason: "FailedPostStartHook", container: "app", message: "PostStartHook failed"},
		occurrence{at: "5s", about: of, reason: "Killing", container: "app", message: "FailedPostStartHook"},
		occurrence{at: "7s", about: of, reason: "BackOff", container: "app", message: "Back-off restarting failed container app"},
	)
	return s
}

// lateCrash crashes two hours after the rollout, and its node fails.
func lateCrash() (s story) {
	of := pod("shop-aaa-1")
	s.add(scale("0s", "shop-aaa", 0, 1), create("0s", "shop-aaa-1"))
	s.add(startOf("0s", of)...)
	s.add(
		occurrence{at: "2h0m0s", about: of, reason: "BackOff", container: "app", message: "Back-off restarting failed container app"},
		occurrence{at: "2h0m20s", about: of, reason: "Started", container: "app", message: "Container started", count: 2, since: "4s"},
		occurrence{at: "2h1m0s", about: of, reason: "BackOff", container: "app", message: "Back-off restarting failed container app", count: 2, since: "2h0m0s"},
		occurrence{at: "3h0m0s", about: of, reason: "FailedMount", message: "the volume is gone"},
	)
	return s
}

// lateQuota cannot create its pod for 20 minutes.
func lateQuota() (s story) {
	s.add(scale("0s", "shop-aaa", 0, 1))
	refused := occurrence{at: "0s", about: replicaSet("shop-aaa"), reason: "FailedCreate", message: "Error creating: exceeded quota"}
	for i, at := range []string{"0s", "4m0s", "8m0s", "12m0s", "16m0s"} {
		refused.at, refused.count, refused.since = at, int64(i+1), "0s"
		s.add(refused)
	}
	s.add(create("20m0s", "shop-aaa-1"))
	s.add(startOf("20m0s", pod("shop-aaa-1"))...)
	return s
}

// failedPull never gets its image, and the old pods go on.
func failedPull() (s story) {
	of := pod("shop-bbb-1")
	s.add(scale("10m0s", "shop-bbb", 0, 1), create("10m0s", "shop-bbb-1"))
	s.add(startOf("10m0s", of)[:2]...)
	s.add(
		occurrence{at: "10m2s", about: of, reason: "Failed", container: "app", message: `Failed to pull image "shop:typo": not found`},
		occurrence{at: "10m2s", about: of, reason: "Failed", container: "app", message: "Error: ErrImagePull"},
		occurrence{at: "10m3s", about: of, reason: "BackOff", container: "app", message: `Back-off pulling image "shop:typo"`},
	)
	return s
}

// latePull gets the image after two attempts.
func latePull() (s story) {
	of := pod("shop-bbb-1")
	s = failedPull()
	s.add(
		occurrence{at: "10m20s", about: of, reason: "Pulled", container: "app", message: `Successfully pulled image "shop:typo" in 2s (2s including waiting). Image size: 99 bytes.`},
		occurrence{at: "10m20s", about: of, reason: "Created", container: "app", message: "Container created"},
		occurrence{at: "10m21s", about: of, reason: "Started", container: "app", message: "Container started"},
	)
	return s
}

// dropped has only two records of a pod: kubelets drop others.
func dropped() (s story) {
	of := pod("shop-aaa-1")
	s.add(
		occurrence{at: "3s", about: of, reason: "Pulled", container: "app", message: `Successfully pulled image "shop:2" in 1.9s (2s including waiting). Image size: 1234 bytes.`},
		occurrence{at: "4s", about: of, reason: "Started", container: "app", message: "Container started"},
	)
	return s
}

// probes has a pod that is not ready until 30 seconds after its start.
func probes() (s story) {
	of := pod("shop-aaa-1")
	s.add(scale("0s", "shop-aaa", 0, 1), create("0s", "shop-aaa-1"))
	s.add(startOf("0s", of)...)
	s.add(occurrence{at: "30s", about: of, reason: "Unhealthy", container: "app", message: "Readiness probe failed", count: 3, since: "10s"})
	return s
}

// unnamed has a warning whose producer does not name the container.
func unnamed() (s story) {
	of := pod("shop-aaa-1")
	s.add(scale("0s", "shop-aaa", 0, 1), create("0s", "shop-aaa-1"))
	s.add(startOf("0s", of)...)
	s.add(occurrence{at: "6s", about: of, reason: "BackOff", message: "Back-off restarting failed container"})
	return s
}

// ofReport returns an object that the CronJob report owns.
func ofReport(kind, name string, owners ...string) object {
	return object{kind: kind, name: name, uid: "uid-" + name, workload: "CronJob/report", chain: append(owners, "cronjob.batch/report")}
}

// overlappingJobs has a Job that reaches its deadline while the next one runs, and then the Job is
// deleted, as is one whose creation is not known.
func overlappingJobs() (s story) {
	top := object{kind: "CronJob", name: "report", uid: "uid-report", workload: "CronJob/report"}
	for i, name := range []string{"report-1", "report-2"} {
		at := []string{"0s", "1m0s"}[i]
		s.add(occurrence{at: at, about: top, reason: "SuccessfulCreate", message: "Created job " + name})
		s.add(startOf(at, ofReport("Pod", name+"-x", "job.batch/"+name))...)
	}
	s.add(stop("1m30s", ofReport("Pod", "report-1-x", "job.batch/report-1")))
	s.add(
		occurrence{at: "2m0s", about: top, reason: "SuccessfulDelete", message: "Deleted job report-1"},
		occurrence{at: "2m0s", about: top, reason: "SuccessfulDelete", message: "Deleted job report-0"},
	)
	return s
}

// failedJob starts two pods, one after another. Both fail: no Event says so.
func failedJob() (s story) {
	job := ofReport("Job", "report-1")
	for i, at := range []string{"0s", "20s"} {
		name := []string{"report-1-x", "report-1-y"}[i]
		s.add(occurrence{at: at, about: job, reason: "SuccessfulCreate", message: "Created pod: " + name})
		s.add(startOf(at, ofReport("Pod", name, "job.batch/report-1"))...)
	}
	s.add(occurrence{at: "40s", about: job, reason: "BackoffLimitExceeded", message: "Job has reached the specified backoff limit"})
	return s
}

// startReport starts a Job with one pod.
func (s *story) startReport() object {
	job := ofReport("Job", "report-1")
	s.add(occurrence{at: "0s", about: job, reason: "SuccessfulCreate", message: "Created pod: report-1-x"})
	s.add(startOf("0s", ofReport("Pod", "report-1-x", "job.batch/report-1"))...)
	return job
}

// lateFailure is a Job that reaches its deadline an hour after its start.
func lateFailure() (s story) {
	job := s.startReport()
	s.add(stop("1h0m0s", ofReport("Pod", "report-1-x", "job.batch/report-1")))
	s.add(occurrence{at: "1h0m0s", about: job, reason: "DeadlineExceeded", message: "Job was active longer than specified deadline"})
	return s
}

// lateRetry is a Job that cannot create its second pod for a while, an hour after the first one.
func lateRetry() (s story) {
	job := s.startReport()
	s.add(occurrence{at: "1h0m0s", about: job, reason: "FailedCreate", message: "Error creating: exceeded quota"})
	s.add(occurrence{at: "1h0m10s", about: job, reason: "SuccessfulCreate", message: "Created pod: report-1-y"})
	s.add(startOf("1h0m10s", ofReport("Pod", "report-1-y", "job.batch/report-1"))...)
	return s
}

// quotaOfScaleUp cannot create a pod an hour after the rollout.
func quotaOfScaleUp() (s story) {
	s.add(scale("0s", "shop-aaa", 0, 1), create("0s", "shop-aaa-1"))
	s.add(startOf("0s", pod("shop-aaa-1"))...)
	s.add(
		scale("1h0m0s", "shop-aaa", 1, 2),
		occurrence{at: "1h0m0s", about: replicaSet("shop-aaa"), reason: "FailedCreate", message: "Error creating: exceeded quota"},
	)
	return s
}

func join(stories ...story) (s story) {
	for _, other := range stories {
		s = append(s, other...)
	}
	return s
}

// stories are the trees of whole stories.
var stories = map[string]story{
	"a first rollout":                          firstRollout("0s"),
	"an update":                                join(firstRollout("0s"), secondRollout()),
	"a rollback is another trace":              join(firstRollout("0s"), secondRollout(), rollback()),
	"a rollback in a combined Event":           join(firstRollout("0s"), secondRollout(), combinedRollback()),
	"a scale-up joins the current trace":       join(firstRollout("0s"), secondRollout(), rollback(), scaleUp()),
	"a scale-up of an old revision":            scaleUpOfAnOldRevision(),
	"an update that pauses":                    join(firstRollout("0s"), pausedUpdate()),
	"an update that is undone":                 undoneUpdate(),
	"from zero again joins the current trace":  join(firstRollout("0s"), fromZero()),
	"an update whose old pods are not known":   secondRollout(),
	"a StatefulSet":                            statefulRollout(),
	"a crash and a recovery":                   crashAndRecovery(),
	"a start days later":                       startDaysLater(),
	"a pull that fails":                        join(firstRollout("0s"), failedPull()),
	"a pull that succeeds late":                latePull(),
	"records that kubelets dropped":            dropped(),
	"a probe that failed at first":             probes(),
	"a custom resource with two Deployments":   customResource(),
	"a crash two hours later":                  lateCrash(),
	"a kubelet that names no container":        nameless(),
	"a hook that fails":                        failedHook(),
	"a quota that was too small":               lateQuota(),
	"two Jobs of a CronJob":                    jobs(),
	"a recovery whose beginning is not known":  crashAndRecovery()[7:],
	"a warning that names no container":        unnamed(),
	"two Jobs of a CronJob that overlap":       overlappingJobs(),
	"a Job that fails":                         failedJob(),
	"a Job that fails an hour later":           lateFailure(),
	"a Job that goes on an hour later":         lateRetry(),
	"a quota that is too small for a scale-up": quotaOfScaleUp(),
	"a virtual machine that starts again":      threeStarts(),
	"a virtual machine that reboots":           reboots(),
}

// jobs has a Job that ended without Killing, and the next one.
func jobs() (s story) {
	for i, name := range []string{"report-1", "report-2"} {
		at := []string{"0s", "1m0s"}[i]
		top := object{kind: "CronJob", name: "report", uid: "uid-report", workload: "CronJob/report"}
		s.add(occurrence{at: at, about: top, reason: "SuccessfulCreate", message: "Created job " + name})
		s.add(startOf(at, object{kind: "Pod", name: name + "-x", uid: name, workload: "CronJob/report", chain: []string{"job.batch/" + name, "cronjob.batch/report"}})...)
		done := []string{"30s", "1m30s"}[i]
		s.add(occurrence{at: done, about: ofReport("Job", name), reason: "Completed", message: "Job completed"})
	}
	return s
}

func TestStories(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			requireTree(t, filepath.Join("testdata", "stories", name+".txt"), spansOf(modelOf(s), late))
		})
	}
}

// TestResizedContainer: a resize that restarts the container is not the end of its pod.
func TestResizedContainer(t *testing.T) {
	t.Parallel()
	s := firstRollout("0s")
	s.add(occurrence{at: "1h0m0s", about: pod("shop-aaa-1"), reason: "Killing", container: "app", message: "Container app resize requires restart"})
	assertNoStop(t, s)
}

func assertNoStop(t *testing.T, s story) {
	t.Helper()
	for _, w := range modelOf(s).Workloads {
		for _, part := range w.Spans("replicaset.apps/shop-aaa", late) {
			assert.False(t, strings.HasPrefix(part.Key, "s/"), part.Key)
		}
	}
}

// TestNewSandbox: a kubelet whose node was rebooted kills the containers of a pod, and starts them again.
func TestNewSandbox(t *testing.T) {
	t.Parallel()
	of := pod("shop-aaa-1")
	killed := stop("1h0m0s", of)
	s := firstRollout("0s")
	s.add(
		occurrence{at: "1h0m0s", about: of, reason: "SandboxChanged", message: "Pod sandbox changed, it will be killed and re-created."},
		killed,
		occurrence{at: "1h0m5s", about: of, reason: "Started", container: "app", message: "Container started", count: 2, since: "4s"},
	)
	assertNoStop(t, s)
	killed.at, killed.count, killed.since = "2h0m0s", 2, "1h0m0s"
	s.add(killed)
	for _, span := range spansOf(modelOf(s), late) {
		if span.Name == "stop shop-aaa-1" {
			assert.Equal(t, after("2h0m0s").UnixNano(), span.Start)
			return
		}
	}
	assert.Fail(t, "no end of the pod")
}

// TestDebuggedPod: a container that someone adds to a running pod changes nothing in its rollout.
func TestDebuggedPod(t *testing.T) {
	t.Parallel()
	s := firstRollout("0s")
	before := spansOf(modelOf(s), late)
	for _, reason := range []string{"Pulling", "Failed", "BackOff"} {
		s.add(occurrence{at: "1h0m0s", about: pod("shop-aaa-1"), reason: reason, container: "debug:busybox", message: `Failed to pull image "busybox"`})
	}
	assert.Equal(t, before, spansOf(modelOf(s), late))
}
