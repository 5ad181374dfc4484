// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// row is a cause that an Event can show. A new cause is a row here and a test in stories_test.go.
type row struct {
	reason string
	kinds  []string // of the object, as kubectl names it
	says   *regexp.Regexp
	change string // the kind of the change
	// text has %o for the object, %m for the message, %1 and %2 for groups of says, and %r for the pod that preempts.
	text string
	// before is the longest time between the cause and the onset. An ongoing state counts from its
	// end.
	before time.Duration
	late   time.Duration // how long after the change its record can come
	can    []string      // the classes of problems that it can cause
	end    string        // the reason of the Event that ends the state; empty: it is none
	// moves is set if it makes pods leave a node: then it can cause any problem of the pods that take their place.
	moves bool
}

// Sets of classes.
var (
	startups = []string{classImage, classStart, classMount, classSchedule, classCreate, classCrash, classProbe}
	runtimes = []string{classCrash, classProbe, classOther}
	places   = []string{classSchedule, classEviction}

	images    = []string{classImage}
	creations = []string{classCreate}
	volumes   = []string{classMount, classStart, classSchedule, classCreate}

	ofNodes  = []string{"node"}
	machines = []string{"node", "nodeclaim.karpenter.sh"}
	ofPods   = []string{"pod"}
	gitops   = []string{
		"kustomization.kustomize.toolkit.fluxcd.io", "helmrelease.helm.toolkit.fluxcd.io", "gitrepository.source.toolkit.fluxcd.io",
		"application.argoproj.io",
	}
)

const (
	soon         = 10 * time.Minute
	statusUpdate = 10 * time.Second // a kubelet reports conditions of its node that often
)

func says(pattern string) *regexp.Regexp { return regexp.MustCompile(pattern) }

// causes lists what Events of nodes, evictions, volumes and deployment tools mean.
var causes = []row{
	{reason: "NodeNotReady", kinds: ofNodes, change: kindNode, text: "%o became NotReady", before: soon, can: []string{classNode, classProbe, classStart, classMount, classSchedule, classEviction}, end: "NodeReady", moves: true},
	{reason: "NodeNotSchedulable", kinds: ofNodes, change: kindNode, text: "%o was cordoned", before: soon, late: statusUpdate, can: places, end: "NodeSchedulable", moves: true},
	{reason: "NodeHasInsufficientMemory", kinds: ofNodes, change: kindNode, text: "%o had too little memory", before: soon, late: statusUpdate, can: []string{classEviction, classCrash, classSchedule, classProbe}, end: "NodeHasSufficientMemory", moves: true},
	{reason: "NodeHasDiskPressure", kinds: ofNodes, change: kindNode, text: "%o had disk pressure", before: soon, late: statusUpdate, can: []string{classEviction, classImage, classSchedule, classStart}, end: "NodeHasNoDiskPressure", moves: true},
	{reason: "NodeHasInsufficientPID", kinds: ofNodes, change: kindNode, text: "%o had too few process ids", before: soon, late: statusUpdate, can: []string{classEviction, classCrash, classStart, classProbe}, end: "NodeHasSufficientPID", moves: true},
	{reason: "Rebooted", kinds: ofNodes, change: kindNode, text: "%o was rebooted", before: soon, can: []string{classCrash, classProbe, classStart, classMount}},
	{reason: "EvictionThresholdMet", kinds: ofNodes, change: kindNode, text: "%o: %m", before: soon, can: []string{classEviction, classImage}, moves: true},
	{reason: "SystemOOM", kinds: ofNodes, change: kindNode, text: "%o ran out of memory: %m", before: soon, can: []string{classCrash, classProbe}},
	{reason: "OOMKilling", kinds: ofNodes, change: kindNode, text: "%o: %m", before: statusUpdate, can: []string{classCrash, classProbe}},
	{reason: "RemovingNode", kinds: ofNodes, change: kindNode, text: "%o was removed", before: soon, can: places, moves: true},
	{reason: "DeletingNode", kinds: ofNodes, change: kindNode, text: "%o was deleted by the cloud provider", before: soon, can: places, moves: true},
	{reason: "Shutdown", kinds: ofNodes, change: kindNode, text: "%o was shut down", before: soon, can: []string{classEviction, classSchedule, classProbe}, moves: true},
	{reason: "SpotInterrupted", kinds: machines, change: kindNode, text: "%o: its spot instance was interrupted", before: soon, can: places, moves: true},
	{reason: "SpotInterruption", kinds: ofNodes, change: kindNode, text: "%o: its spot instance was interrupted", before: soon, can: places, moves: true},
	{reason: "PreemptScheduled", kinds: ofNodes, change: kindNode, text: "%o: its spot instance is to be preempted", before: soon, can: places, moves: true},
	{reason: "InstanceTerminating", kinds: machines, change: kindNode, text: "%o: its instance was terminated", before: soon, can: places, moves: true},
	{reason: "DisruptionTerminating", kinds: machines, change: kindNode, text: "Karpenter disrupted %o: %m", before: soon, can: places, moves: true},
	{reason: "FailedDraining", kinds: machines, change: kindNode, text: "%o could not be drained: %m", before: soon, can: places},
	{reason: "ScaleDown", kinds: ofNodes, change: kindNode, text: "the cluster autoscaler removed %o", before: soon, can: places, moves: true},
	{reason: "Evicted", kinds: ofPods, change: kindEviction, text: "%o was evicted: %m", before: soon, can: startups},
	{reason: "EvictedByVPA", kinds: ofPods, change: kindEviction, text: "%o was evicted by the VerticalPodAutoscaler", before: soon, can: startups},
	{reason: "TaintManagerEviction", kinds: ofPods, says: says("^Marking for deletion"), change: kindEviction, text: "%o was deleted because of a taint of its node", before: soon, can: startups},
	{reason: "ScaleDown", kinds: ofPods, says: says("deleting pod"), change: kindEviction, text: "%o was deleted because its node is scaled down", before: soon, can: startups},
	{reason: "Preempted", kinds: ofPods, change: kindPreemption, text: "%o was preempted by %r", before: soon, can: startups},
	{reason: "ProvisioningFailed", kinds: []string{"persistentvolumeclaim"}, change: kindVolume, text: "%o has no volume: %m", before: Horizon, late: 30 * time.Second, can: []string{classSchedule, classMount}},
	{reason: "FailedBinding", kinds: []string{"persistentvolumeclaim"}, change: kindVolume, text: "%o has no volume: %m", before: Horizon, late: 30 * time.Second, can: []string{classSchedule, classMount}},
	{reason: "VolumeResizeFailed", kinds: []string{"persistentvolumeclaim"}, change: kindVolume, text: "%o could not be resized: %m", before: soon, can: []string{classMount}},
	{reason: "Progressing", kinds: gitops, says: says(`(?i)\b(?:configured|created|deleted)\b`), change: kindGitOps, text: "%o: %m", before: soon, can: startups},
	{reason: "UpgradeSucceeded", kinds: gitops, change: kindGitOps, text: "%o: %m", before: soon, can: startups},
	{reason: "InstallSucceeded", kinds: gitops, change: kindGitOps, text: "%o: %m", before: soon, can: startups},
	{reason: "NewArtifact", kinds: gitops, change: kindGitOps, text: "%o: %m", before: soon, can: startups},
	{reason: "OperationStarted", kinds: gitops, change: kindGitOps, text: "%o: %m", before: soon, can: startups},
	{reason: "OperationCompleted", kinds: gitops, change: kindGitOps, text: "%o: %m", before: soon, can: startups},
}

// own are causes that the message of the problem itself names.
var own = []row{
	{says: says(`exceeded quota: ([^,]+)`), change: kindQuota, can: creations, text: "the quota %1 is used up"},
	{says: says(`failed calling webhook "([^"]+)"`), change: kindWebhook, can: creations, text: "the webhook %1 does not answer"},
	{says: says(`admission webhook "([^"]+)" denied`), change: kindWebhook, can: creations, text: "the webhook %1 refuses it"},
	{says: says(`violates PodSecurity "([^"]+)"`), change: kindWebhook, can: creations, text: "the Pod Security level %1 refuses it"},
	{says: says(`(?i)(configmap "[^"]+" not found)`), change: kindConfig, can: volumes, text: "the %1"},
	{says: says(`(?i)(secret "[^"]+" not found)`), change: kindConfig, can: volumes, text: "the %1"},
	{says: says(`(?i)(persistentvolumeclaim "[^"]+" not found)`), change: kindVolume, can: volumes, text: "the %1"},
	{says: says(`https?://([^/ "]+)/\S*: (\d{3} [A-Z][A-Za-z ]+)`), change: kindRegistry, can: images, text: "the registry %1 answers %2"},
	{says: says(`(?:HEAD|GET|Get|Head) "?https?://([^/ "]+)/.*(no such host|connection refused|i/o timeout|TLS handshake timeout)`), change: kindRegistry, can: images, text: "the registry %1 does not answer: %2"},
	{says: says(`(toomanyrequests)`), change: kindRegistry, can: images, text: "the registry limits pulls: %1"},
	{says: says(`pull access denied|authorization failed|unauthorized`), change: kindRegistry, can: images, text: "the registry refuses access"},
	{says: says(`storageclass\S* "([^"]+)" not found`), change: kindVolume, can: []string{classOther}, text: "the StorageClass %1 does not exist"},
	{says: says(`Multi-Attach error`), change: kindVolume, can: volumes, text: "the volume is still attached to another node"},
	{says: says(`serviceaccount "([^"]+)" not found`), change: kindConfig, can: volumes, text: "the service account %1 does not exist"},
}

// rowOf returns what an Event shows; nil: nothing.
func rowOf(f *Fact) *row {
	for i := range causes {
		r := &causes[i]
		if r.reason == f.Reason && slices.Contains(r.kinds, f.Object().GroupKind()) && (r.says == nil || r.says.MatchString(f.Message)) {
			return r
		}
	}
	return nil
}

// tell returns the text about an Event.
func (r *row) tell(f *Fact) string {
	pairs := []string{"%o", f.Object().Kind + " " + f.Object().Name, "%m", record.Cut(f.Message, maxText), "%r", cmp.Or(f.Related, "another pod")}
	if r.says != nil {
		for i, group := range r.says.FindStringSubmatch(f.Message) {
			pairs = append(pairs, "%"+strconv.Itoa(i), group)
		}
	}
	return strings.NewReplacer(pairs...).Replace(r.text)
}

// removals are the reasons of Events after which a node is gone.
var removals = []string{"RemovingNode", "DeletingNode"}

// endOfState returns the reason of the Event that ends a state of a node; empty: none does.
func endOfState(reason string) string {
	for i := range causes {
		if causes[i].reason == reason && causes[i].end != "" {
			return causes[i].end
		}
	}
	return ""
}
