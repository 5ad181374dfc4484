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

// symptom is a class of problems: what shows one, and what ends it. A new class is a row of
// symptoms, and a story.
type symptom struct {
	class string
	text  string // what is wrong
	shows []events
	// by tells two problems of an object apart.
	by    attribute
	quiet time.Duration // without a repeat for this long, it is over
	// grace is the time after the start of a container in which failures do not count, unless they
	// go on.
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
	reasons []string // of Events that are no warnings, or a sign
	on      place
	after   time.Duration // at least this long after the last failure
	holds   time.Duration // only if the problem has not come back for this long
	text    string
}

// place is an object, seen from the object that has a problem.
type place string

const (
	placeAnything  place = "anything"
	placePods      place = "pods"
	placeNodes     place = "nodes"
	placeContainer place = "the container"
	placeObject    place = "the object"
	placeWorkload  place = "the workload"
	placeNode      place = "the node"
	placeRevision  place = "the revision"
)

// attribute is what problems differ by.
type attribute string

const (
	attributeObject    attribute = "object"
	attributeContainer attribute = "container"
	attributeReason    attribute = "reason"
)

const (
	// usualQuiet: after its first 25 Events about a pod, a kubelet writes the next one that comes after 5
	// minutes. Volumes are tried each 122 s.
	usualQuiet = 8 * time.Minute
	// controllerQuiet: the controller of ReplicaSets waits up to 1000 s before it tries again.
	controllerQuiet = 17 * time.Minute
	// schedulerQuiet: a scheduler writes a series of events.k8s.io each 30 minutes (client-go,
	// tools/events).
	schedulerQuiet = 35 * time.Minute
	// crashQuiet: the longest back-off of a kubelet is 5 minutes, and programs run for some time
	// before they end.
	crashQuiet = 10 * time.Minute
	// probeQuiet is the least for a probe, which a kubelet reports each time at first: periods of
	// two minutes exist.
	probeQuiet = 150 * time.Second
	// startTime is the time that programs need until their probes succeed.
	startTime = time.Minute
	// endTime is the time for which a pod that ends may have warnings.
	endTime = 2 * time.Minute
)

// usualFailures is the usual failureThreshold of a probe. manyFailures are a problem also if each pod has fewer.
const (
	usualFailures = 3
	manyFailures  = 10
)

// jobDone ends what pods of a Job have, and scaledAway what those of a ReplicaSet have, and the
// ReplicaSet itself.
var (
	jobDone    = end{on: placeRevision, reasons: []string{"Completed"}, text: "its Job has completed"}
	scaledAway = end{on: placeRevision, reasons: []string{signZero}, text: "its ReplicaSet was scaled to zero"}
)

// symptoms are the classes. The first one that shows what an Event says is its class.
var symptoms = []symptom{
	{
		class: classNode, text: "A node is not ready, or lacks memory, disk or process ids.",
		shows: []events{
			{of: placeNodes, kinds: []string{"NodeNotReady", "NodeHasInsufficientMemory", "NodeHasDiskPressure", "NodeHasInsufficientPID"}, isNormal: true},
			{of: placePods, kinds: []string{"NodeNotReady"}},
		},
		by: attributeReason, quiet: Horizon,
		ends: []end{{on: placeNode, text: "the node recovered, or it is gone"}},
	},
	{
		class: classNode, text: "Any other warning of a node.",
		shows: []events{{of: placeNodes}},
		by:    attributeReason, quiet: usualQuiet,
	},
	{
		class: classImage, text: "The image of a container cannot be pulled.",
		shows: []events{{of: placePods, kinds: []string{record.KindPullFailed}}},
		by:    attributeContainer, quiet: usualQuiet,
		ends:  []end{{on: placeContainer, reasons: []string{"Pulled", "Created", reasonStarted}, text: "the image was pulled"}, jobDone, scaledAway},
		hides: []string{classStart, classCrash, classProbe},
	},
	{
		class: classStart, text: "A container cannot be created or started.",
		shows: []events{{of: placePods, kinds: []string{"Failed", "FailedCreatePodSandBox", "FailedPostStartHook", "FailedPodSandBoxStatus", "NetworkNotReady"}}},
		by:    attributeContainer, quiet: usualQuiet,
		ends:  []end{{on: placeContainer, reasons: []string{reasonStarted}, text: "the container started"}, jobDone, scaledAway},
		hides: []string{classCrash, classProbe},
	},
	{
		class: classMount, text: "A volume cannot be attached or mounted.",
		shows: []events{{of: placePods, kinds: []string{"FailedMount", "FailedAttachVolume", "FailedMapVolume"}}},
		by:    attributeObject, quiet: usualQuiet,
		ends: []end{{on: placeObject, reasons: []string{"Pulling", "Pulled", "Created", reasonStarted}, text: "the pod went on to start"}, jobDone, scaledAway},
	},
	{
		class: classCrash, text: "A container ends by itself, again and again.",
		shows: []events{{of: placePods, kinds: []string{record.KindCrashed}}},
		by:    attributeContainer, quiet: crashQuiet, restarts: true,
		ends:  []end{{on: placeContainer, reasons: []string{reasonStarted}, holds: crashQuiet, text: "the container has run since"}, jobDone, scaledAway},
		hides: []string{classProbe},
	},
	{
		class: classProbe, text: "A probe fails, or kills a container.",
		shows: []events{
			{of: placePods, kinds: []string{"Unhealthy"}},
			{of: placeAnything, kinds: []string{record.KindRestarted}, says: says("probe"), isNormal: true},
		},
		by: attributeContainer, quiet: usualQuiet, grace: startTime, least: usualFailures,
		ends: []end{{on: placeRevision, reasons: []string{signAvailable}, text: "its pods became available"}, jobDone, scaledAway},
	},
	{
		class: classSchedule, text: "No node has room for a pod.",
		shows: []events{{of: placeAnything, kinds: []string{"FailedScheduling"}}},
		by:    attributeObject, quiet: schedulerQuiet,
		ends: []end{{on: placeObject, reasons: []string{"Scheduled"}, text: "the pod was scheduled"}, jobDone, scaledAway},
	},
	{
		class: classCreate, text: "The owner cannot create a pod.",
		shows: []events{{of: placeAnything, kinds: []string{"FailedCreate"}}},
		by:    attributeObject, quiet: controllerQuiet,
		// Some pods of a batch can be created, and others not.
		ends: []end{{on: placeObject, reasons: []string{"SuccessfulCreate"}, after: time.Second, text: "a pod was created"}, scaledAway},
	},
	{
		class: classEviction, text: "A pod was evicted.",
		shows: []events{{of: placeAnything, kinds: []string{"Evicted"}}},
		by:    attributeObject, quiet: usualQuiet, outlives: true,
		ends: []end{{on: placeWorkload, reasons: []string{reasonStarted}, after: time.Second, text: "another pod has started"}},
	},
	{
		class: classJob, text: "A Job failed.",
		shows: []events{{of: placeAnything, kinds: record.JobFailures}},
		by:    attributeObject, quiet: Horizon,
		// The next run of a CronJob has another name.
		ends: []end{{on: placeWorkload, reasons: []string{"Completed"}, after: time.Second, text: "a Job has completed"}},
	},
	{
		class: classScale, text: "An autoscaler has no metrics.",
		shows: []events{{of: placeAnything, kinds: []string{
			"FailedGetResourceMetric", "FailedComputeMetricsReplicas", "FailedGetExternalMetric", "FailedGetPodsMetric", "FailedGetObjectMetric",
		}}},
		by: attributeObject, quiet: usualQuiet,
		ends: []end{{on: placeObject, reasons: []string{"SuccessfulRescale"}, text: "the autoscaler set a size"}},
	},
	{
		class: classOther, text: "Any other warning.",
		shows: []events{{of: placeAnything}},
		by:    attributeReason, quiet: controllerQuiet,
		ends: []end{{on: placeObject, reasons: []string{signSuccess}, after: time.Second, text: "it succeeded"}},
	},
}

// reasonStarted is that of an Event of a container. In a container that starts again, its count
// rises.
const reasonStarted = "Started"

// restarted is the class of a container that starts again without having been killed.
var restarted = &symptoms[slices.IndexFunc(symptoms, func(s symptom) bool { return s.restarts })]

// workloadSigns are the reasons that end a problem if another object of the workload shows them.
var workloadSigns = signsOf(placeWorkload)

func signsOf(on place) (reasons []string) {
	for _, s := range symptoms {
		for _, e := range s.ends {
			if e.on == on {
				reasons = append(reasons, e.reasons...)
			}
		}
	}
	return reasons
}

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
	case e.of == placePods && f.Pod == "", e.of == placeNodes && !f.isAboutNode():
		return false
	case len(e.kinds) > 0 && !slices.Contains(e.kinds, f.Kind), e.says != nil && !e.says.MatchString(f.Message):
		return false
	}
	return e.isNormal || f.IsWarning() && !f.IsHarmless
}
