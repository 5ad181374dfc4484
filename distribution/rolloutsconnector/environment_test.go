// SPDX-License-Identifier: Apache-2.0

package rolloutsconnector

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// environment is a random cluster: what happens to its workloads, and the records of it.
type environment struct {
	random *rand.Rand
	drops  float64 // how many of the Normal Events kubelets and controllers drop
	skips  float64 // how many states of an Event nobody reads: the next one has a higher count
	note   string  // an attribute of all workloads

	happened []happening
	records  []record // what the receiver emits
	names    int
}

// happening is what somebody writes into an Event.
type happening struct {
	at        time.Duration
	about     subject
	reason    string
	message   string
	container string
}

// subject is the object of an Event.
type subject struct {
	kind, name, uid string
	owners          []string // the nearest first, in the form of kubectl
	workload        *subject // nil: it is one
	hash            string   // the label controller-revision-hash
	owner           string   // the UID of the nearest owner
}

func newEnvironment(seed uint64) *environment {
	e := &environment{random: rand.New(rand.NewPCG(seed, 1))}
	e.drops = []float64{0, 0, 0.1, 0.4}[e.random.IntN(4)]
	e.skips = []float64{0, 0.3}[e.random.IntN(2)]
	if seed%20 == 0 {
		e.note = strings.Repeat("x", 1_200_000) // So that the journal writes snapshots.
	}
	workloads := []func(time.Duration){e.deployment, e.statefulSet, e.cronJob, e.job, e.machine}
	for range 1 + e.random.IntN(3) {
		workloads[e.random.IntN(len(workloads))](e.upTo(4 * time.Minute))
	}
	slices.SortStableFunc(e.happened, func(a, b happening) int { return cmp.Compare(a.at, b.at) })
	e.records = e.recordsOf(e.happened)
	return e
}

func (e *environment) upTo(most time.Duration) time.Duration {
	return time.Duration(e.random.Int64N(int64(most)))
}

func (e *environment) oneIn(n int) bool { return e.random.IntN(n) == 0 }

func (e *environment) says(at time.Duration, about subject, reason, message string) {
	e.happened = append(e.happened, happening{at, about, reason, message, ""})
}

// suffix returns an end of a name that no other object has.
func (e *environment) suffix() string {
	e.names++
	return fmt.Sprintf("%05d", e.names)
}

func (e *environment) newWorkload(kind, name string) subject {
	name += e.suffix()
	return subject{kind: kind, name: name, uid: "uid-" + name}
}

// owned returns an object with a chain of owners.
func (s *subject) owned(kind, name, uid string) subject {
	of := subject{kind: kind, name: name, uid: uid, workload: s, owner: s.uid}
	if s.workload != nil {
		of.workload = s.workload
	}
	of.owners = append([]string{s.inKubectl()}, s.owners...)
	return of
}

func (s *subject) inKubectl() string {
	group := map[string]string{"Pod": "", "Job": ".batch", "CronJob": ".batch"}
	of, ok := group[s.kind]
	if !ok {
		of = ".apps"
	}
	return strings.ToLower(s.kind) + of + "/" + s.name
}

// deployment is rolled out several times, rolled back, and scaled.
func (e *environment) deployment(at time.Duration) {
	d := e.newWorkload("Deployment", "web")
	size := 1 + e.random.IntN(3)
	revisions := make([]*replicaSet, 1+e.random.IntN(3))
	var current *replicaSet
	for i := range revisions {
		name := d.name + "-" + e.suffix()
		revisions[i] = &replicaSet{subject: d.owned("ReplicaSet", name, "uid-"+name)}
		at = e.pause(e.rollOut(at, &d, current, revisions[i], size))
		current = revisions[i]
	}
	if len(revisions) > 1 && e.oneIn(2) {
		before := revisions[e.random.IntN(len(revisions)-1)]
		at = e.pause(e.rollOut(at, &d, current, before, size))
		current = before
	}
	switch e.random.IntN(4) {
	case 0:
		e.scale(at, &d, current, size+1)
	case 1:
		at = e.pause(e.scale(at, &d, current, 0))
		e.scale(at, &d, current, size)
	}
}

// pause returns when a workload is changed next. A pod that ended immediately before a rollout looks as if
// the rollout had ended it.
func (e *environment) pause(at time.Duration) time.Duration {
	return at + 2*time.Minute + e.upTo(5*time.Minute)
}

// replicaSet is a revision of a Deployment, and its pods.
type replicaSet struct {
	subject
	pods []subject
}

// rollOut replaces the pods of a revision by those of another one, one by one.
func (e *environment) rollOut(at time.Duration, d *subject, from, to *replicaSet, size int) time.Duration {
	at = e.scale(at, d, to, 1)
	for to.size() < size || from.size() > 0 {
		if from.size() > 0 {
			at = e.scale(at, d, from, from.size()-1)
		}
		if to.size() < size {
			at = e.scale(at, d, to, to.size()+1)
		}
	}
	return at
}

func (r *replicaSet) size() int {
	if r == nil {
		return 0
	}
	return len(r.pods)
}

// scale returns when the new pods run.
func (e *environment) scale(at time.Duration, d *subject, r *replicaSet, size int) (end time.Duration) {
	direction := map[bool]string{true: "up", false: "down"}[size > r.size()]
	e.says(at, *d, "ScalingReplicaSet", fmt.Sprintf("Scaled %s replica set %s from %d to %d", direction, r.name, r.size(), size))
	end = at
	for r.size() < size {
		name := r.name + "-" + e.suffix()
		pod := r.owned("Pod", name, "uid-"+name)
		e.says(at, r.subject, "SuccessfulCreate", "Created pod: "+name)
		r.pods = append(r.pods, pod)
		end = max(end, e.start(at, pod))
	}
	for r.size() > size {
		pod := r.pods[0]
		r.pods = r.pods[1:]
		e.says(at, r.subject, "SuccessfulDelete", "Deleted pod: "+pod.name)
		e.stop(at, pod)
	}
	return end
}

// statefulSet replaces its pods, which keep their names.
func (e *environment) statefulSet(at time.Duration) {
	s := e.newWorkload("StatefulSet", "db")
	pods := make([]subject, 1+e.random.IntN(3))
	for range 1 + e.random.IntN(3) {
		hash := s.name + "-" + e.suffix()
		for i := range pods {
			name := fmt.Sprintf("%s-%d", s.name, i)
			if pods[i].name != "" {
				e.says(at, s, "SuccessfulDelete", fmt.Sprintf("delete Pod %s in StatefulSet %s successful", name, s.name))
				at = e.stop(at, pods[i])
			}
			pods[i] = s.owned("Pod", name, "uid-"+e.suffix())
			pods[i].hash = hash
			e.says(at, s, "SuccessfulCreate", fmt.Sprintf("create Pod %s in StatefulSet %s successful", name, s.name))
			at = e.start(at, pods[i])
		}
		at = e.pause(at)
	}
}

// machine starts several times. Its instance is then another object with the same name, and can
// move to another node.
func (e *environment) machine(at time.Duration) {
	m := e.newWorkload("VirtualMachine", "vm")
	for range 1 + e.random.IntN(3) {
		instance := m.owned("VirtualMachineInstance", m.name, "uid-"+e.suffix())
		at = e.launch(at, instance)
		if e.oneIn(3) {
			at = e.launch(e.pause(at), instance)
		}
		at = e.pause(at)
	}
}

// launch makes a pod of an instance, and sometimes ends it. It returns when the pod runs or has
// ended.
func (e *environment) launch(at time.Duration, instance subject) time.Duration {
	name := "virt-launcher-" + instance.name + "-" + e.suffix()
	pod := instance.owned("Pod", name, "uid-"+name)
	e.says(at, instance, "SuccessfulCreate", "Created virtual machine pod "+name)
	at = e.start(at, pod)
	if e.oneIn(2) {
		e.says(at, instance, "SuccessfulDelete", "Deleted virtual machine pod "+name)
		at = e.stop(at, pod)
	}
	return at
}

func (e *environment) cronJob(at time.Duration) {
	c := e.newWorkload("CronJob", "report")
	for i := range 1 + e.random.IntN(4) {
		job := c.owned("Job", fmt.Sprintf("%s-%d", c.name, i), "uid-"+e.suffix())
		e.says(at, c, "SuccessfulCreate", "Created job "+job.name)
		e.runJob(at, job)
		at += time.Minute
	}
}

func (e *environment) job(at time.Duration) { e.runJob(at, e.newWorkload("Job", "import")) }

func (e *environment) runJob(at time.Duration, job subject) {
	for range 1 + e.random.IntN(2) {
		name := job.name + "-" + e.suffix()
		e.says(at, job, "SuccessfulCreate", "Created pod: "+name)
		at = e.start(at, job.owned("Pod", name, "uid-"+name))
	}
	if e.oneIn(4) {
		e.says(at+e.upTo(10*time.Minute), job, "DeadlineExceeded", "Job was active longer than specified deadline")
		return
	}
	e.says(at, job, "Completed", "Job completed")
}

// start returns when the pod runs.
func (e *environment) start(at time.Duration, pod subject) time.Duration {
	if e.oneIn(6) {
		for range 1 + e.random.IntN(5) {
			e.says(at, pod, "FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.")
			at += e.upTo(20 * time.Second)
		}
	}
	e.says(at, pod, "Scheduled", fmt.Sprintf("Successfully assigned shop/%s to worker-%d", pod.name, e.random.IntN(3)))
	if e.oneIn(8) {
		for range 1 + e.random.IntN(3) {
			at += e.upTo(10 * time.Second)
			e.says(at, pod, "FailedMount", `MountVolume.SetUp failed for volume "config"`)
		}
	}
	at += e.upTo(2 * time.Second)
	if e.oneIn(4) {
		at = e.run(at, pod, "init")
	}
	at = e.run(at, pod, "app")
	return e.later(at, pod)
}

// run starts a container, and returns when it runs.
func (e *environment) run(at time.Duration, pod subject, container string) time.Duration {
	says := func(after time.Duration, reason, message string) {
		at += after
		e.happened = append(e.happened, happening{at, pod, reason, message, container})
	}
	if e.oneIn(3) {
		says(0, "Pulled", `Container image "shop:1" already present on machine`)
	} else {
		says(0, "Pulling", `Pulling image "shop:1"`)
		if e.oneIn(6) {
			for range 1 + e.random.IntN(3) {
				says(e.upTo(3*time.Second), "Failed", `Failed to pull image "shop:1": unavailable`)
				says(0, "Failed", "Error: ErrImagePull")
				says(0, "BackOff", `Back-off pulling image "shop:1"`)
				says(e.upTo(20*time.Second), "Pulling", `Pulling image "shop:1"`)
			}
		}
		took := e.upTo(8 * time.Second)
		says(took, "Pulled", fmt.Sprintf(`Successfully pulled image "shop:1" in %v (%v including waiting). Image size: 1234 bytes.`, took, took))
	}
	says(e.upTo(2*time.Second), "Created", "Container created")
	says(e.upTo(2*time.Second), "Started", "Container started")
	return at
}

// later adds what happens to a pod after its start: nothing, crashes, or a probe that fails. Some containers
// recover.
func (e *environment) later(at time.Duration, pod subject) time.Duration {
	says := func(after time.Duration, reason, message string) {
		at += after
		e.happened = append(e.happened, happening{at, pod, reason, message, "app"})
	}
	switch e.random.IntN(8) {
	case 0:
		for range 1 + e.random.IntN(8) {
			says(time.Second+e.upTo(time.Minute), "BackOff", "Back-off restarting failed container app in pod "+pod.name)
			if e.oneIn(5) {
				return at
			}
			says(10*time.Second+e.upTo(time.Minute), "Pulled", `Container image "shop:1" already present on machine`)
			says(0, "Created", "Container created")
			says(0, "Started", "Container started")
		}
	case 1:
		for range 1 + e.random.IntN(3) {
			says(5*time.Second, "Unhealthy", "Readiness probe failed: connection refused")
		}
	case 2:
		says(e.upTo(time.Minute), "Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500")
		says(0, "Killing", "Container app failed liveness probe, will be restarted")
		says(5*time.Second, "Started", "Container started")
	}
	return at
}

// stop returns when the pod has ended.
func (e *environment) stop(at time.Duration, pod subject) time.Duration {
	at += e.upTo(2 * time.Second)
	e.happened = append(e.happened, happening{at, pod, "Killing", "Stopping container app", "app"})
	return at + e.upTo(5*time.Second)
}

// record is a state of an Event.
type record struct {
	happening
	uid   string
	since time.Duration
	count int64
}

// maxSimilar is how many messages of one reason a recorder writes into Events of their own.
const maxSimilar = 9

// recordsOf returns what the receiver emits. Recorders count repeats in one Event, combine many that are
// similar, and drop some.
func (e *environment) recordsOf(happened []happening) (records []record) {
	events, similar := map[string]*record{}, map[string]int{}
	for _, h := range happened {
		if !isWarning(&h) && e.random.Float64() < e.drops {
			continue
		}
		group := h.about.uid + " " + h.reason + " " + h.container
		key := group + " " + h.message
		if events[key] == nil {
			if similar[group]++; similar[group] > maxSimilar {
				key, h.message = group, "(combined from similar events): "+h.message
			}
		}
		if events[key] == nil {
			events[key] = &record{uid: fmt.Sprint("event-", len(events)), since: h.at.Truncate(time.Second)}
		}
		event := events[key]
		h.at = h.at.Truncate(time.Second)
		event.happening, event.count = h, event.count+1
		if e.random.Float64() >= e.skips {
			records = append(records, *event)
		}
	}
	return records
}

func isWarning(h *happening) bool {
	return strings.HasPrefix(h.reason, "Failed") || slices.Contains([]string{"BackOff", "Unhealthy", "DeadlineExceeded"}, h.reason)
}

// logsOf returns the records as the receiver emits them, with times after the epoch.
func (e *environment) logsOf(records []record, epoch time.Time) plog.Logs {
	logs := plog.NewLogs()
	for _, r := range records {
		rl := logs.ResourceLogs().AppendEmpty()
		resource := rl.Resource().Attributes()
		r.about.write(resource)
		if e.note != "" {
			resource.PutStr("k8s.namespace.label.note", e.note)
		}
		to := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		to.SetEventName("k8s.event")
		to.SetTimestamp(pcommon.NewTimestampFromTime(epoch.Add(r.at)))
		to.Body().SetStr(r.message)
		attributes := to.Attributes()
		attributes.PutStr("k8s.event.uid", r.uid)
		attributes.PutStr("k8s.event.reason", r.reason)
		attributes.PutStr("k8s.event.type", map[bool]string{true: "Warning", false: "Normal"}[isWarning(&r.happening)])
		attributes.PutInt("k8s.event.count", r.count)
		attributes.PutStr("k8s.event.start_time", epoch.Add(r.since).Format(time.RFC3339Nano))
		attributes.PutStr("log.record.uid", fmt.Sprintf("%s-%d", r.uid, r.count))
		if r.container != "" {
			field := map[bool]string{true: "spec.initContainers", false: "spec.containers"}[r.container == "init"]
			resource.PutStr("k8s.container.name", r.container)
			attributes.PutStr("k8s.object.fieldpath", field+"{"+r.container+"}")
		}
	}
	return logs
}

func (s *subject) write(resource pcommon.Map) {
	workload := cmp.Or(s.workload, s)
	version := map[string]string{"Pod": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}
	for name, value := range map[string]string{
		"k8s.cluster.uid": "cluster", "k8s.namespace.name": "shop", "k8s.object.api_version": cmp.Or(version[s.kind], "apps/v1"),
		"k8s.object.kind": s.kind, "k8s.object.name": s.name, "k8s.object.uid": s.uid,
		"k8s.workload.kind": workload.kind, "k8s.workload.name": workload.name, "k8s.workload.uid": workload.uid,
		"k8s.owner.uid": s.owner, "k8s.pod.label.controller-revision-hash": s.hash, "service.name": workload.name,
	} {
		if value != "" {
			resource.PutStr(name, value)
		}
	}
	if len(s.owners) > 0 {
		chain := resource.PutEmptySlice("k8s.owner.chain")
		for _, owner := range s.owners {
			chain.AppendEmpty().SetStr(owner)
		}
	}
}
