// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// day writes the records of a day.
type day struct {
	lines  []string
	random *rand.Rand
	counts map[string]int           // of an event
	since  map[string]time.Duration // of an event
	events int                      // warnings
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

const wholeDay = 24 * time.Hour

// dayOf300Nodes is a day in a cluster of 300 nodes: what always fails, what fails for a while, and what only starts slowly.
func dayOf300Nodes() *day {
	d := &day{random: rand.New(rand.NewPCG(3, 1)), counts: map[string]int{}, since: map[string]time.Duration{}}
	for i := range 2 { // containers that crash all day
		pod := fmt.Sprintf("Pod/worker%d-aaa-1", i)
		d.every(time.Minute, 0, wholeDay, pod, fmt.Sprintf("!BackOff{app} node=node-%d namespace=jobs", i), "Back-off restarting failed container app in pod worker")
	}
	for _, reason := range []string{"FailedGetResourceMetric", "FailedComputeMetricsReplicas"} { // an autoscaler without metrics
		d.every(time.Minute, 0, wholeDay, "HorizontalPodAutoscaler/front", "!"+reason+" namespace=shop", "failed to get cpu utilization: no metrics returned from resource metrics API")
	}
	for i := range 20 { // a service that is overloaded from nine to five: a kubelet writes 25 Events, and then one in five minutes
		pod, what, message := fmt.Sprintf("Pod/search-aaa-%d", i), fmt.Sprintf("!Unhealthy{app} node=node-%d namespace=search", i+10), "Readiness probe failed: HTTP probe failed with statuscode: 503"
		d.every(10*time.Second, 9*time.Hour, 9*time.Hour+250*time.Second, pod, what, message)
		d.every(5*time.Minute, 9*time.Hour+5*time.Minute, 17*time.Hour, pod, what, message)
	}
	for i := range 10 { // probes that fail now and then
		d.every(30*time.Minute, 0, wholeDay, fmt.Sprintf("Pod/flaky%d-aaa-1", i), fmt.Sprintf("!Unhealthy{app} node=node-%d namespace=shop", i), "Readiness probe failed: timeout")
	}
	d.every(2*time.Minute, 3*time.Hour, 15*time.Hour, "Pod/report-aaa-1", "!Failed{app} node=node-7 namespace=reports",
		`Failed to pull image "registry.example/report:9": failed to resolve reference "registry.example/report:9": registry.example/report:9: not found`)
	d.every(2*time.Minute, 10*time.Hour, 13*time.Hour, "Pod/mail-aaa-1", "!FailedMount node=node-8 namespace=mail", `MountVolume.SetUp failed for volume "tls" : secret "mail-tls" not found`)
	for i := range 60 { // deployments, whose pods start slowly
		d.rollout(time.Duration(i)*wholeDay/60, fmt.Sprintf("app%d", i%12), i, 5)
	}
	for burst := range 6 { // pods that wait for nodes of the autoscaler
		for pod := range 10 {
			at, name := time.Duration(8+burst)*time.Hour+11*time.Minute, fmt.Sprintf("Pod/batch%d-aaa-%d", burst, pod)
			d.add(at, name, "!FailedScheduling namespace=batch", "0/300 nodes are available: 300 Insufficient cpu.")
			d.add(at+time.Second, name, "TriggeredScaleUp namespace=batch reporter=cluster-autoscaler", "pod triggered scale-up: [{group 10->12 (max: 40)}]")
			d.add(at+90*time.Second, name, "Scheduled namespace=batch", fmt.Sprintf("Successfully assigned batch/batch-%d to node-%d", pod, 200+pod))
			d.add(at+95*time.Second, name, fmt.Sprintf("Started{app} node=node-%d namespace=batch", 200+pod), "Container started")
		}
	}
	d.outages()
	slices.SortStableFunc(d.lines, func(a, b string) int {
		return int(story.Time(strings.Fields(a)[0]) - story.Time(strings.Fields(b)[0]))
	})
	return d
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
}

// outages adds a registry that does not answer for ten minutes, and a node that is lost.
func (d *day) outages() {
	for w := range 12 {
		for pod := range 5 {
			object, where := fmt.Sprintf("Pod/team%d-aaa-%d", w, pod), fmt.Sprintf(" node=node-%d namespace=team-%d", 40+pod, w%3)
			d.every(2*time.Minute, 14*time.Hour, 14*time.Hour+10*time.Minute, object, "!Failed{app}"+where, `Failed to pull image "registry.example/app:1": `+noHost)
			d.add(14*time.Hour+11*time.Minute, object, "Pulled{app}"+where, `Successfully pulled image "registry.example/app:1" in 1s (1s including waiting)`)
			d.add(14*time.Hour+11*time.Minute+2*time.Second, object, "Started{app}"+where, "Container started")
		}
	}
	d.add(20*time.Hour, "Node/node-99", "NodeNotReady", "Node node-99 status is now: NodeNotReady")
	for pod := range 30 {
		d.add(20*time.Hour+time.Second, fmt.Sprintf("Pod/svc%d-aaa-1", pod), fmt.Sprintf("!NodeNotReady node=node-99 namespace=team-%d", pod%3), "Node is not ready")
	}
	d.add(20*time.Hour+8*time.Minute, "Node/node-99", "NodeReady", "Node node-99 status is now: NodeReady")
}

// TestADayOf300Nodes: 10,000 warnings are as few problems as a person would count.
func TestADayOf300Nodes(t *testing.T) {
	if isRace() {
		t.Skip("the race detector makes it a minute longer, and it has one thread")
	}
	d := dayOf300Nodes()
	assert.Greater(t, d.events, 10_000)
	synctest.Test(t, func(t *testing.T) {
		w := startWatching(t, newDisks(), nil)
		w.tell(t, strings.Join(d.lines, "\n"))
		var stored parts
		for one := range w.all[1].(*output).tracker.watch.parts {
			if one.Fact == nil {
				stored.add(one)
			}
		}
		w.stop(t)
		problems := w.lines("k8s.problem")
		assert.LessOrEqual(t, len(problems), 40, strings.Join(problems, "\n"))
		t.Logf("%d warnings, %d records of problems, %d of changes, %d bytes for the days after:\n%s", d.events, len(problems), len(w.lines("k8s.change")), stored.size, strings.Join(problems, "\n"))
	})
}
