// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"regexp"
	"slices"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// The classes of problems.
const (
	classImage    = "image"
	classStart    = "start"
	classMount    = "mount"
	classSchedule = "schedule"
	classCreate   = "create"
	classCrash    = "crash"
	classProbe    = "probe"
	classEviction = "eviction"
	classJob      = "job"
	classNode     = "node"
	classScale    = "scale"
	classOther    = "other"
)

// symptom is a class of problems: what shows one, and what ends it. A new class is a row of symptoms, and a story.
type symptom struct {
	class string
	text  string // what is wrong
	shows []events
	// by tells two problems of an object apart.
	by    attribute
	quiet time.Duration // without a repeat for this long, it is over
	// grace is the time after the start of a container in which failures do not count, unless they go on.
	grace time.Duration
	// least is the number of failures from which on a problem that is over was one.
	least int64
	ends  []end
	hides []string // the classes of what a container with this problem shows as well
	// restarts is set if a container that starts again without having been killed shows it, too.
	restarts bool
	// outlives is set if the end of the pod does not end it.
	outlives bool
}

// events describes Events.
type events struct {
	of       place
	kinds    []string       // see record.KindOf; empty: all
	says     *regexp.Regexp // matches the message; nil: any
	isNormal bool           // they are no warnings
}

// end is what ends a problem.
type end struct {
	reasons []string // of Events that are no warnings
	on      place
	says    *regexp.Regexp // matches the reason and the message; nil: any
	unless  *regexp.Regexp // does not match them
	after   time.Duration  // at least this long after the last failure
	holds   time.Duration  // only if the problem has not come back for this long
	text    string
}

// place is an object, seen from the object that has a problem.
type place string

const (
	anything  place = "anything"
	pods      place = "pods"
	nodes     place = "nodes"
	container place = "the container"
	object    place = "the object"
	notPod    place = "the object, if it is no pod"
	workloads place = "the workload"
	itsNode   place = "the node"
	revision  place = "the revision"
	itsJob    place = "the Job of the pod"
)

// attribute is what problems differ by.
type attribute string

const (
	byObject    attribute = "object"
	byContainer attribute = "container"
	byReason    attribute = "reason"
)

const (
	// usualQuiet: a kubelet repeats a failure at least every 5 minutes.
	usualQuiet = 6 * time.Minute
	// controllerQuiet: the controller of ReplicaSets waits up to 1000 s before it tries again.
	controllerQuiet = 17 * time.Minute
	// schedulerQuiet: a scheduler writes a series of events.k8s.io each 30 minutes (client-go, tools/events).
	schedulerQuiet = 35 * time.Minute
	// crashQuiet: the longest back-off of a kubelet is 5 minutes, and programs run for some time before they end.
	crashQuiet = 10 * time.Minute
	// probeQuiet is the least for a probe, which a kubelet reports each time at first: periods of two minutes exist.
	probeQuiet = 150 * time.Second
	// startTime is the time that programs need until their probes succeed.
	startTime = time.Minute
	// endTime is the time for which a pod that ends may have warnings.
	endTime = 2 * time.Minute
)

// usualFailures is the usual failureThreshold of a probe.
const usualFailures = 3

// jobDone ends what pods of a Job have.
var jobDone = end{on: itsJob, reasons: []string{"Completed"}, text: "its Job has completed"}

// symptoms are the classes. The first one that shows what an Event says is its class.
var symptoms = []symptom{
	{
		class: classNode, text: "A node is not ready, or lacks memory, disk or process ids.",
		shows: []events{
			{of: nodes, kinds: []string{"NodeNotReady", "NodeHasInsufficientMemory", "NodeHasDiskPressure", "NodeHasInsufficientPID"}, isNormal: true},
			{of: pods, kinds: []string{"NodeNotReady"}},
		},
		by: byReason, quiet: Horizon,
		ends: []end{{on: itsNode, text: "the node recovered, or it is gone"}},
	},
	{
		class: classNode, text: "Any other warning of a node.",
		shows: []events{{of: nodes}},
		by:    byReason, quiet: usualQuiet,
	},
	{
		class: classImage, text: "The image of a container cannot be pulled.",
		shows: []events{{of: pods, kinds: []string{record.KindPullFailed}}},
		by:    byContainer, quiet: usualQuiet,
		ends:  []end{{on: container, reasons: []string{"Pulled", "Created", reasonStarted}, text: "the image was pulled"}, jobDone},
		hides: []string{classStart, classCrash, classProbe},
	},
	{
		class: classStart, text: "A container cannot be created or started.",
		shows: []events{{of: pods, kinds: []string{"Failed", "FailedCreatePodSandBox", "FailedPostStartHook", "FailedPodSandBoxStatus", "NetworkNotReady"}}},
		by:    byContainer, quiet: usualQuiet,
		ends:  []end{{on: container, reasons: []string{reasonStarted}, text: "the container started"}, jobDone},
		hides: []string{classCrash, classProbe},
	},
	{
		class: classMount, text: "A volume cannot be attached or mounted.",
		shows: []events{{of: pods, kinds: []string{"FailedMount", "FailedAttachVolume", "FailedMapVolume"}}},
		by:    byObject, quiet: usualQuiet,
		ends: []end{{on: object, reasons: []string{"Pulling", "Pulled", "Created", reasonStarted}, text: "the pod went on to start"}, jobDone},
	},
	{
		class: classCrash, text: "A container ends by itself, again and again.",
		shows: []events{{of: pods, kinds: []string{record.KindCrashed}}},
		by:    byContainer, quiet: crashQuiet, restarts: true,
		ends:  []end{{on: container, reasons: []string{reasonStarted}, holds: crashQuiet, text: "the container has run since"}, jobDone},
		hides: []string{classProbe},
	},
	{
		class: classProbe, text: "A probe fails, or kills a container.",
		shows: []events{
			{of: pods, kinds: []string{"Unhealthy"}},
			{of: anything, kinds: []string{record.KindRestarted}, says: says("probe"), isNormal: true},
		},
		by: byContainer, quiet: usualQuiet, grace: startTime, least: usualFailures,
		ends: []end{{on: revision, text: "its pods became available"}, jobDone},
	},
	{
		class: classSchedule, text: "No node has room for a pod.",
		shows: []events{{of: anything, kinds: []string{"FailedScheduling"}}},
		by:    byObject, quiet: schedulerQuiet,
		ends: []end{{on: object, reasons: []string{"Scheduled"}, text: "the pod was scheduled"}, jobDone},
	},
	{
		class: classCreate, text: "The owner cannot create a pod.",
		shows: []events{{of: anything, kinds: []string{"FailedCreate"}}},
		by:    byObject, quiet: controllerQuiet,
		// Some pods of a batch can be created, and others not.
		ends: []end{{on: object, reasons: []string{"SuccessfulCreate"}, after: time.Second, text: "a pod was created"}},
	},
	{
		class: classEviction, text: "A pod was evicted.",
		shows: []events{{of: anything, kinds: []string{"Evicted"}}},
		by:    byObject, quiet: usualQuiet, outlives: true,
		ends: []end{{on: workloads, reasons: []string{reasonStarted}, after: time.Second, text: "another pod has started"}},
	},
	{
		class: classJob, text: "A Job failed.",
		shows: []events{{of: anything, kinds: record.JobFailures}},
		by:    byObject, quiet: Horizon,
		// The next run of a CronJob has another name.
		ends: []end{{on: workloads, reasons: []string{"Completed"}, after: time.Second, text: "a Job has completed"}},
	},
	{
		class: classScale, text: "An autoscaler has no metrics.",
		shows: []events{{of: anything, kinds: []string{
			"FailedGetResourceMetric", "FailedComputeMetricsReplicas", "FailedGetExternalMetric", "FailedGetPodsMetric", "FailedGetObjectMetric",
		}}},
		by: byObject, quiet: usualQuiet,
		ends: []end{{on: object, reasons: []string{"SuccessfulRescale"}, text: "the autoscaler set a size"}},
	},
	{
		class: classOther, text: "Any other warning.",
		shows: []events{{of: anything}},
		by:    byReason, quiet: controllerQuiet,
		ends: []end{{on: notPod, says: says(`\bsucce|Succe`), unless: says(`(?i)\b(?:not|never|no )|n't\b`), after: time.Second, text: "it succeeded"}},
	},
}

// reasonStarted is that of an Event of a container. In a container that starts again, its count rises.
const reasonStarted = "Started"

// restarted is the class of a container that starts again without having been killed.
var restarted = &symptoms[slices.IndexFunc(symptoms, func(s symptom) bool { return s.restarts })]

// symptomOf returns the class of the problem that an Event shows; nil: it shows none.
func symptomOf(f *Fact) *symptom {
	for i := range symptoms {
		if slices.ContainsFunc(symptoms[i].shows, func(e events) bool { return e.match(f) }) {
			return &symptoms[i]
		}
	}
	return nil
}

func (e events) match(f *Fact) bool {
	switch {
	case e.of == pods && f.Pod == "", e.of == nodes && !f.isAboutNode():
		return false
	case len(e.kinds) > 0 && !slices.Contains(e.kinds, f.Kind), e.says != nil && !e.says.MatchString(f.Message):
		return false
	}
	return e.isNormal || f.IsWarning() && !f.IsHarmless
}
