// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// day writes the records of a day, and what a person would count in it.
type day struct {
	lines    []string
	random   *rand.Rand
	counts   map[string]int           // of an event
	since    map[string]time.Duration // of an event
	events   int                      // warnings
	problems []string                 // CLASS of WHAT: goes on, or ended
	changes  []string                 // KIND of OBJECT: OUTCOME
}

// add adds a record of an event that counts up.
func (d *day) add(at time.Duration, object, what, message string) {
	event := object + what + message
	if d.counts[event]++; d.counts[event] == 1 {
		d.since[event] = at
	}
	if strings.HasPrefix(what, "!") {
		d.events++
	}
	d.lines = append(d.lines, fmt.Sprintf("%v %s %s x%d/%v: %s", at, object, what, d.counts[event], d.since[event], message))
}

// every adds a record of the same event again and again.
func (d *day) every(step, from, until time.Duration, object, what, message string) {
	for at := from; at < until; at += step {
		d.add(at+time.Duration(d.random.Int64N(int64(step/4))).Truncate(time.Millisecond), object, what, message)
	}
}

// creates adds the records of a new Deployment, whose pods are scheduled or not.
func (d *day) creates(at time.Duration, name, namespace string, pods int, isScheduled bool) {
	set := name + "-aaa"
	d.add(at, "Deployment/"+name, "ScalingReplicaSet namespace="+namespace, fmt.Sprintf("Scaled up replica set %s from 0 to %d", set, pods))
	for i := range pods {
		pod := fmt.Sprintf("%s-%d", set, i)
		d.add(at, "ReplicaSet/"+set, "SuccessfulCreate namespace="+namespace, "Created pod: "+pod)
		if isScheduled {
			d.add(at, "Pod/"+pod, "Scheduled namespace="+namespace, "Successfully assigned the pod")
		}
	}
}

// problem notes a problem that a person would count.
func (d *day) problem(format string, arguments ...any) {
	d.problems = append(d.problems, fmt.Sprintf(format, arguments...))
}

// change notes a change that a person would count.
func (d *day) change(format string, arguments ...any) {
	d.changes = append(d.changes, fmt.Sprintf(format, arguments...))
}

const wholeDay = 24 * time.Hour

// dayOf300Nodes is a day in a cluster of 300 nodes: what always fails, what fails for a while, and what only starts slowly.
func dayOf300Nodes() *day {
	d := &day{random: rand.New(rand.NewPCG(3, 1)), counts: map[string]int{}, since: map[string]time.Duration{}}
	d.failAllDay()
	d.failForHours()
	for i := range 60 { // deployments, whose pods start slowly
		d.rollout(time.Duration(i)*wholeDay/60, fmt.Sprintf("app%d", i%12), i, 5)
	}
	for burst := range 6 {
		d.waitForNodes(time.Duration(8+burst)*time.Hour+11*time.Minute, fmt.Sprintf("batch%d", burst))
	}
	d.loseRegistry(14 * time.Hour)
	d.loseNode(20 * time.Hour)
	slices.SortStableFunc(d.lines, func(a, b string) int {
		return int(story.Time(strings.Fields(a)[0]) - story.Time(strings.Fields(b)[0]))
	})
	return d
}

// failAllDay adds what is old, and fails all day or now and then.
func (d *day) failAllDay() {
	for i := range 2 {
		pod := fmt.Sprintf("Pod/worker%d-aaa-1", i)
		d.every(time.Minute, 0, wholeDay, pod, fmt.Sprintf("!BackOff{app} node=node-%d namespace=jobs", i), "Back-off restarting failed container app in pod worker")
		d.problem("crash of deployment worker%d in jobs: goes on", i)
	}
	for _, reason := range []string{"FailedGetResourceMetric", "FailedComputeMetricsReplicas"} {
		d.every(time.Minute, 0, wholeDay, "HorizontalPodAutoscaler/front", "!"+reason+" namespace=shop", "failed to get cpu utilization: no metrics returned from resource metrics API")
	}
	d.problem("scale of horizontalpodautoscaler front in shop: goes on")
	for i := range 10 { // A probe that fails once in 30 minutes is no problem.
		d.every(30*time.Minute, 0, wholeDay, fmt.Sprintf("Pod/flaky%d-aaa-1", i), fmt.Sprintf("!Unhealthy{app} node=node-%d namespace=shop", i), "Readiness probe failed: timeout")
	}
}

// failForHours adds a service that is overloaded from nine to five, and two new Deployments that nobody can start.
func (d *day) failForHours() {
	for i := range 20 { // A kubelet writes 25 Events, and then one in five minutes.
		pod, what, message := fmt.Sprintf("Pod/search-aaa-%d", i), fmt.Sprintf("!Unhealthy{app} node=node-%d namespace=search", i+10), "Readiness probe failed: HTTP probe failed with statuscode: 503"
		d.every(10*time.Second, 9*time.Hour, 9*time.Hour+250*time.Second, pod, what, message)
		d.every(5*time.Minute, 9*time.Hour+5*time.Minute, 17*time.Hour, pod, what, message)
	}
	d.problem("probe of deployment search in search: ended")
	d.creates(3*time.Hour, "report", "reports", 1, true)
	d.every(2*time.Minute, 3*time.Hour+2*time.Second, 15*time.Hour, "Pod/report-aaa-0", "!Failed{app} node=node-7 namespace=reports",
		`Failed to pull image "registry.example/report:9": failed to resolve reference "registry.example/report:9": registry.example/report:9: not found`)
	d.problem("image of deployment report in reports: ended")
	d.change("rollout of replicaset.apps/report-aaa: failed")
	d.creates(10*time.Hour, "mail", "mail", 1, true)
	d.every(2*time.Minute, 10*time.Hour+2*time.Second, 13*time.Hour, "Pod/mail-aaa-0", "!FailedMount node=node-8 namespace=mail", `MountVolume.SetUp failed for volume "tls" : secret "mail-tls" not found`)
	d.problem("mount of deployment mail in mail: ended")
	d.change("rollout of replicaset.apps/mail-aaa: failed")
}

// rollout adds an update whose pods fail their probe twice before they are ready.
func (d *day) rollout(at time.Duration, name string, revision, pods int) {
	deployment, set := fmt.Sprintf("Deployment/%s", name), fmt.Sprintf("%s-r%d", name, revision)
	d.add(at, deployment, "ScalingReplicaSet namespace=apps event=up-"+set, fmt.Sprintf("Scaled up replica set %s from 0 to %d", set, pods))
	for pod := range pods {
		begin, object, where := at+time.Duration(pod)*10*time.Second, fmt.Sprintf("Pod/%s-%d", set, pod), fmt.Sprintf(" node=node-%d namespace=apps", 20+revision+pod)
		d.add(begin, object, "Scheduled"+where, "Successfully assigned the pod")
		d.add(begin+2*time.Second, object, "Started{app}"+where, "Container started")
		for i := range 2 {
			d.add(begin+time.Duration(5+5*i)*time.Second, object, "!Unhealthy{app}"+where, "Readiness probe failed: connection refused")
		}
	}
	if revision >= 12 {
		d.add(at+time.Minute, deployment, "ScalingReplicaSet namespace=apps event=down-"+set, fmt.Sprintf("Scaled down replica set %s-r%d from %d to 0", name, revision-12, pods))
	}
	d.change("rollout of replicaset.apps/%s: complete", set)
}

// waitForNodes adds a new Deployment whose pods wait until the autoscaler has added nodes.
func (d *day) waitForNodes(at time.Duration, name string) {
	d.creates(at, name, "batch", 10, false)
	for pod := range 10 {
		object := fmt.Sprintf("Pod/%s-aaa-%d", name, pod)
		d.add(at, object, "!FailedScheduling namespace=batch", "0/300 nodes are available: 300 Insufficient cpu.")
		d.add(at+time.Second, object, "TriggeredScaleUp namespace=batch reporter=cluster-autoscaler", "pod triggered scale-up: [{group 10->12 (max: 40)}]")
		d.add(at+90*time.Second, object, "Scheduled namespace=batch", fmt.Sprintf("Successfully assigned batch/batch-%d to node-%d", pod, 200+pod))
		d.add(at+95*time.Second, object, fmt.Sprintf("Started{app} node=node-%d namespace=batch", 200+pod), "Container started")
	}
	d.problem("schedule of deployment %s in batch: ended", name)
	d.change("rollout of replicaset.apps/%s-aaa: complete", name)
}

// loseRegistry adds new Deployments while a registry does not answer for eight minutes.
func (d *day) loseRegistry(at time.Duration) {
	for w := range 12 {
		name, namespace := fmt.Sprintf("team%d", w), fmt.Sprintf("team-%d", w%3)
		d.creates(at, name, namespace, 5, true)
		for pod := range 5 {
			object, where := fmt.Sprintf("Pod/%s-aaa-%d", name, pod), fmt.Sprintf(" node=node-%d namespace=%s", 40+pod, namespace)
			d.every(2*time.Minute, at+2*time.Second, at+8*time.Minute, object, "!Failed{app}"+where, `Failed to pull image "registry.example/app:1": `+noHost)
			d.add(at+9*time.Minute, object, "Pulled{app}"+where, `Successfully pulled image "registry.example/app:1" in 1s (1s including waiting)`)
			d.add(at+9*time.Minute+2*time.Second, object, "Started{app}"+where, "Container started")
		}
		d.change("rollout of replicaset.apps/%s-aaa: complete", name)
	}
	d.problem("image of pull from registry.example fails: ended")
}

// loseNode adds a node that is not ready for eight minutes, with pods that are old.
func (d *day) loseNode(at time.Duration) {
	d.add(at, "Node/node-99", "NodeNotReady", "Node node-99 status is now: NodeNotReady")
	for pod := range 30 {
		d.add(at+time.Second, fmt.Sprintf("Pod/svc%d-aaa-1", pod), fmt.Sprintf("!NodeNotReady node=node-99 namespace=team-%d", pod%3), "Node is not ready")
	}
	d.add(at+8*time.Minute, "Node/node-99", "NodeReady", "Node node-99 status is now: NodeReady")
	d.problem("node of all on node-99: ended")
	d.change("node of node/node-99: over")
}

// TestADayOf300Nodes: 10,000 warnings are the problems and changes that a person would count, and the memory and the
// goroutines of the connector do not grow.
func TestADayOf300Nodes(t *testing.T) {
	if isRace() {
		t.Skip("the race detector makes it a minute longer, and it has one thread")
	}
	d := dayOf300Nodes()
	assert.Greater(t, d.events, 10_000)
	records := story.Records(strings.Join(d.lines, "\n"))
	synctest.Test(t, func(t *testing.T) {
		stored := newDisks()
		before := sizeNow(stored)
		w := startWatching(t, stored, nil)
		var sizes []size
		for at := wholeDay / 4; at <= wholeDay; at += wholeDay / 4 {
			time.AfterFunc(at, func() { sizes = append(sizes, w.sizeSince(before, stored)) })
		}
		end := time.Now().Add(wholeDay)
		w.tellAll(t, records)
		time.Sleep(time.Until(end) + time.Second)
		runtime.KeepAlive(records)
		var kept parts
		for one := range w.all[1].(*output).tracker.watch.parts {
			if one.Fact == nil {
				kept.add(one)
			}
		}
		w.stop(t)
		assert.ElementsMatch(t, d.problems, w.problems())
		assert.ElementsMatch(t, d.changes, w.changes())
		assert.Less(t, sizes[3].heap, sizes[1].heap*5/4, "more after 24 h than after 12 h: %+v", sizes)
		for _, one := range sizes {
			assert.Equal(t, sizes[0].goroutines, one.goroutines)
		}
		t.Logf("%d warnings, %d problems in %d records, %d changes in %d records, %d bytes for the days after; after 6, 12, 18 and 24 h: %+v", d.events,
			len(d.problems), len(w.of("k8s.problem")), len(d.changes), len(w.of("k8s.change")), kept.size, sizes)
	})
}

// size is what a process needs at a moment, without what it stores.
type size struct{ heap, stored, goroutines int }

func sizeNow(stored *disks) size {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := size{int(m.HeapAlloc), 0, runtime.NumGoroutine()}
	for _, one := range stored.byName {
		for _, value := range one.content() {
			s.stored += len(value)
		}
	}
	s.heap -= s.stored
	return s
}

// sizeSince returns the size without that before the connector started. The backends forget spans and the metric.
func (w *watching) sizeSince(before size, stored *disks) size {
	w.mu.Lock()
	w.points = nil
	w.mu.Unlock()
	spans := w.all[0].(*output).tracker.traces.(*sink)
	spans.mu.Lock()
	spans.requests = nil
	spans.mu.Unlock()
	s := sizeNow(stored)
	s.heap -= before.heap
	return s
}

// problems returns the reported problems in the form of day.problems.
func (w *watching) problems() (all []string) {
	last := map[string]told{}
	for _, r := range w.of("k8s.problem") {
		last[r.text("k8s.problem.id")] = r
	}
	for _, r := range last {
		body, state := r.body, "goes on"
		if r.text("k8s.problem.state") == "ended" {
			_, body, _ = strings.Cut(body, ": ")
			state = "ended"
		}
		what, _, _ := strings.Cut(body, ": ")
		all = append(all, fmt.Sprintf("%s of %s: %s", r.text("k8s.problem.class"), what, state))
	}
	return all
}

// changes returns the reported changes in the form of day.changes.
func (w *watching) changes() (all []string) {
	last := map[string]told{}
	for _, r := range w.of("k8s.change") {
		last[r.text("k8s.change.id")] = r
	}
	for _, r := range last {
		state := r.text("k8s.change.state")
		if outcome, ok := r.attributes["k8s.change.outcome"]; ok {
			state = fmt.Sprint(outcome)
		}
		all = append(all, fmt.Sprintf("%s of %s: %s", r.text("k8s.change.kind"), r.text("k8s.change.object"), state))
	}
	return all
}
