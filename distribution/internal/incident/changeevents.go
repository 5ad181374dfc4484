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

// change is something that links connect with problems.
type change struct {
	kind string // in answers
	text string
}

// What changes.
var (
	rolledOut      = &change{kindRollout, "an update"}
	firstRolledOut = &change{kindRollout, "the first rollout"}
	takenBack      = &change{kindRollout, "a rollout that was taken back"}
	scaledUp       = &change{kindScaling, "a scale-up"}
	scaledDown     = &change{kindScaling, "a scale-down"}
	scaledToZero   = &change{kindScaling, "a scale to zero"}
	podDeleted     = &change{kindDeletion, "a pod deleted by hand, or by a drain"}
	podEvicted     = &change{kindEviction, "an eviction"}
	podPreempted   = &change{kindPreemption, "a preemption"}

	nodeNotReady    = &change{kindNode, "NotReady"}
	nodeCordoned    = &change{kindNode, "cordon"}
	nodeMemory      = &change{kindNode, "low memory"}
	nodeDisk        = &change{kindNode, "disk pressure"}
	nodeProcesses   = &change{kindNode, "few process ids"}
	nodeRebooted    = &change{kindNode, "reboot"}
	nodeEvicts      = &change{kindNode, "eviction threshold"}
	nodeOutOfMemory = &change{kindNode, "system OOM"}
	nodeKilled      = &change{kindNode, "OOM kill"}
	nodeShutDown    = &change{kindNode, "shutdown"}
	nodeRemoved     = &change{kindNode, "removal"}
	nodeNotDrained  = &change{kindNode, "failed drain"}

	reloaded   = &change{kindConfig, "a changed ConfigMap or Secret"}
	noVolume   = &change{kindVolume, "a claim without a volume"}
	notResized = &change{kindVolume, "a volume that cannot grow"}
	deployed   = &change{kindGitOps, "a deployment by Flux or Argo CD"}
)

var nodeChanges = []*change{
	nodeNotReady, nodeCordoned, nodeMemory, nodeDisk, nodeProcesses, nodeRebooted, nodeEvicts, nodeOutOfMemory, nodeKilled, nodeShutDown,
	nodeRemoved, nodeNotDrained,
}

// row is an Event that shows a change. A new one is a row of changeEvents, and a story.
type row struct {
	reason string
	kinds  []string // of the object, as kubectl names it
	says   *regexp.Regexp
	shows  *change
	// text has %o for the object, %m for the message, %1 and %2 for the groups of says, and %r for the
	// pod that preempts.
	text string
	end  string // the reason of the Event that ends the state; empty: it is none
}

var (
	ofNodes  = []string{"node"}
	ofPods   = []string{"pod"}
	ofOwners = []string{"deployment.apps", "statefulset.apps", "daemonset.apps", "rollout.argoproj.io"}
	ofClaims = []string{"persistentvolumeclaim"}
	gitops   = []string{
		"kustomization.kustomize.toolkit.fluxcd.io", "helmrelease.helm.toolkit.fluxcd.io", "gitrepository.source.toolkit.fluxcd.io",
		"application.argoproj.io",
	}
)

// EndOf returns when a state of an object ended, by the text of its change. The model may have forgotten how it began. Zero:
// it goes on, or it is no state.
func (v *At) EndOf(k Key, text string, since time.Time) (end time.Time) {
	w := v.workloads[k]
	if w == nil || k.Top.GroupKind() != "node" {
		return end
	}
	for i := range changeEvents {
		if r := &changeEvents[i]; r.end != "" && strings.HasSuffix(text, strings.TrimPrefix(r.text, "%o")) {
			end = firstFrom(w.timesOf(sign{k.Top.String(), anyContainer, r.end}), since)
		}
	}
	return end
}

func says(pattern string) *regexp.Regexp { return regexp.MustCompile(pattern) }

// What messages say that can be a cause, and that problems can share.
var (
	usedQuota      = says(`exceeded quota: ([^,]+)`)
	brokenWebhook  = says(`failed calling webhook "([^"]+)"`)
	noStorageClass = says(`storageclass\S* "([^"]+)" not found`)
	noConfig       = says(`(?i)((?:configmap|secret) "[^"]+") not found`)
)

// changeEvents lists what Events of nodes, evictions, volumes and deployment tools show. Karpenter
// writes the same Events about a node and its NodeClaim, which names no node: those of the node are
// enough.
var changeEvents = []row{
	{reason: "NodeNotReady", kinds: ofNodes, shows: nodeNotReady, text: "%o became NotReady", end: "NodeReady"},
	{reason: "NodeNotSchedulable", kinds: ofNodes, shows: nodeCordoned, text: "%o was cordoned", end: "NodeSchedulable"},
	{reason: "NodeHasInsufficientMemory", kinds: ofNodes, shows: nodeMemory, text: "%o had too little memory", end: "NodeHasSufficientMemory"},
	{reason: "NodeHasDiskPressure", kinds: ofNodes, shows: nodeDisk, text: "%o had disk pressure", end: "NodeHasNoDiskPressure"},
	{reason: "NodeHasInsufficientPID", kinds: ofNodes, shows: nodeProcesses, text: "%o had too few process ids", end: "NodeHasSufficientPID"},
	{reason: "Rebooted", kinds: ofNodes, shows: nodeRebooted, text: "%o was rebooted"},
	{reason: "EvictionThresholdMet", kinds: ofNodes, shows: nodeEvicts, text: "%o: %m"},
	{reason: "SystemOOM", kinds: ofNodes, shows: nodeOutOfMemory, text: "%o ran out of memory: %m"},
	{reason: "OOMKilling", kinds: ofNodes, shows: nodeKilled, text: "%o: %m"},
	{reason: "Shutdown", kinds: ofNodes, shows: nodeShutDown, text: "%o was shut down"},
	{reason: "RemovingNode", kinds: ofNodes, shows: nodeRemoved, text: "%o was removed"},
	{reason: "DeletingNode", kinds: ofNodes, shows: nodeRemoved, text: "%o was deleted by the cloud provider"},
	{reason: "SpotInterrupted", kinds: ofNodes, shows: nodeRemoved, text: "%o: its spot instance was interrupted"},
	{reason: "SpotInterruption", kinds: ofNodes, shows: nodeRemoved, text: "%o: its spot instance was interrupted"},
	{reason: "PreemptScheduled", kinds: ofNodes, shows: nodeRemoved, text: "%o: its spot instance is to be preempted"},
	{reason: "InstanceTerminating", kinds: ofNodes, shows: nodeRemoved, text: "%o: its instance was terminated"},
	{reason: "DisruptionTerminating", kinds: ofNodes, shows: nodeRemoved, text: "Karpenter disrupted %o: %m"},
	{reason: "ScaleDown", kinds: ofNodes, shows: nodeRemoved, text: "the cluster autoscaler removed %o"},
	{reason: "FailedDraining", kinds: ofNodes, shows: nodeNotDrained, text: "%o could not be drained: %m"},
	{reason: "Evicted", kinds: ofPods, shows: podEvicted, text: "%o was evicted: %m"},
	{reason: "EvictedByVPA", kinds: ofPods, shows: podEvicted, text: "%o was evicted by the VerticalPodAutoscaler"},
	{reason: "TaintManagerEviction", kinds: ofPods, says: says("^Marking for deletion"), shows: podEvicted, text: "%o was deleted because of a taint of its node"},
	{reason: "ScaleDown", kinds: ofPods, says: says("deleting pod"), shows: podEvicted, text: "%o was deleted because its node is scaled down"},
	{reason: "Preempted", kinds: ofPods, shows: podPreempted, text: "%o was preempted by %r"},
	{reason: "Descheduled", kinds: ofPods, shows: podEvicted, text: "%o was evicted by the descheduler"},
	{reason: "Reloaded", kinds: ofOwners, says: says(`'([^']+)' of type 'CONFIGMAP'`), shows: reloaded, text: "the ConfigMap %1 changed"},
	{reason: "Reloaded", kinds: ofOwners, says: says(`'([^']+)' of type 'SECRET'`), shows: reloaded, text: "the Secret %1 changed"},
	{reason: "ProvisioningFailed", kinds: ofClaims, shows: noVolume, text: "%o has no volume: %m"},
	{reason: "FailedBinding", kinds: ofClaims, shows: noVolume, text: "%o has no volume: %m"},
	{reason: "VolumeResizeFailed", kinds: ofClaims, shows: notResized, text: "%o could not be resized: %m"},
	{reason: "Progressing", kinds: gitops, says: says(`(?i)\b(?:configured|created|deleted)\b`), shows: deployed, text: "%o: %m"},
	{reason: "UpgradeSucceeded", kinds: gitops, shows: deployed, text: "%o: %m"},
	{reason: "InstallSucceeded", kinds: gitops, shows: deployed, text: "%o: %m"},
	{reason: "NewArtifact", kinds: gitops, shows: deployed, text: "%o: %m"},
	{reason: "OperationStarted", kinds: gitops, says: says(`^Initiated automated sync to '?([^' ]+)`), shows: deployed, text: "Argo CD synced %o to %1 by itself"},
	{reason: "OperationStarted", kinds: gitops, says: says(`^(\S+) initiated (?:partial )?sync to (?:\S+ \()?([^\s()]+)\)?$`), shows: deployed, text: "%1 synced %o to %2"},
	{reason: "OperationStarted", kinds: gitops, shows: deployed, text: "%o: %m"},
	{reason: "OperationCompleted", kinds: gitops, shows: deployed, text: "%o: %m"},
}

// message is a cause that the message of a problem names.
type message struct {
	says *regexp.Regexp
	kind string   // of the change
	can  []string // the classes of problems whose messages do
	text string   // has %1 and %2 for groups of says
}

var (
	inCreations = []string{classCreate}
	inVolumes   = []string{classMount, classStart, classSchedule, classCreate}
	inImages    = []string{classImage}
	inOthers    = []string{classOther}
)

// messages are causes that the message of the problem itself names.
var messages = []message{
	{says: usedQuota, kind: kindQuota, can: inCreations, text: "the quota %1 is used up"},
	{says: brokenWebhook, kind: kindWebhook, can: inCreations, text: "the webhook %1 does not answer"},
	{says: says(`admission webhook "([^"]+)" denied`), kind: kindWebhook, can: inCreations, text: "the webhook %1 refuses it"},
	{says: says(`ValidatingAdmissionPolicy '([^']+)' .*denied request`), kind: kindWebhook, can: inCreations, text: "the policy %1 refuses it"},
	{says: says(`violates PodSecurity "([^"]+)"`), kind: kindWebhook, can: inCreations, text: "the Pod Security level %1 refuses it"},
	{says: says(`(?i)configmap ("[^"]+") not found`), kind: kindConfig, can: inVolumes, text: "the configmap %1 not found"},
	{says: says(`(?i)secret ("[^"]+") not found`), kind: kindConfig, can: inVolumes, text: "the secret %1 not found"},
	{says: says(`(?i)persistentvolumeclaim ("[^"]+") not found`), kind: kindVolume, can: inVolumes, text: "the persistentvolumeclaim %1 not found"},
	{says: says(`serviceaccount "([^"]+)" not found`), kind: kindConfig, can: inVolumes, text: "the service account %1 does not exist"},
	{says: says(`Multi-Attach error`), kind: kindVolume, can: inVolumes, text: "the volume is still attached to another node"},
	{says: says(`https?://([^/ "]+)/\S*: (\d{3} [A-Z][A-Za-z ]+)`), kind: kindRegistry, can: inImages, text: "the registry %1 answers %2"},
	{says: says(`(?:HEAD|GET|Get|Head) "?https?://([^/ "]+)/.*(no such host|connection refused|i/o timeout|TLS handshake timeout)`), kind: kindRegistry, can: inImages, text: "the registry %1 does not answer: %2"},
	{says: says(`(toomanyrequests)`), kind: kindRegistry, can: inImages, text: "the registry limits pulls: %1"},
	{says: says(`pull access denied|authorization failed|unauthorized`), kind: kindRegistry, can: inImages, text: "the registry refuses access"},
	{says: noStorageClass, kind: kindVolume, can: inOthers, text: "the StorageClass %1 does not exist"},
}

// rowOf returns what an Event shows; nil: nothing.
func rowOf(f *Fact) *row {
	for i := range changeEvents {
		r := &changeEvents[i]
		// Some controllers put their strategy into the reason, and what they did into the action.
		isNamed := r.reason == f.Reason || r.reason == f.Action
		if isNamed && !f.IsForeign() && slices.Contains(r.kinds, f.Object().GroupKind()) && (r.says == nil || r.says.MatchString(f.Message)) {
			return r
		}
	}
	return nil
}

// describe returns the text about an Event.
func (r *row) describe(f *Fact) string {
	pairs := []string{"%o", f.Object().Kind + " " + f.Object().Name, "%m", record.Cut(f.Message, maxText), "%r", cmp.Or(f.Related, "another pod")}
	if r.says != nil {
		pairs = append(pairs, groupsIn(r.says, f.Message)...)
	}
	return strings.NewReplacer(pairs...).Replace(r.text)
}

// groupsIn returns the groups of a pattern in a message, as %1, its text, %2, its text and so on; nil: the
// pattern does not match.
func groupsIn(pattern *regexp.Regexp, message string) (pairs []string) {
	for i, group := range pattern.FindStringSubmatch(message) {
		pairs = append(pairs, "%"+strconv.Itoa(i), group)
	}
	return pairs
}

// describe returns the text about the message of an Event; empty: it names no cause.
func (m *message) describe(f *Fact) string {
	pairs := groupsIn(m.says, f.Message)
	if pairs == nil {
		return ""
	}
	return strings.NewReplacer(pairs...).Replace(m.text)
}

// removals are the reasons of Events after which a node is gone.
var removals = []string{"RemovingNode", "DeletingNode"}

// endOfState returns the reason of the Event that ends a state of a node; empty: none does.
func endOfState(reason string) string {
	i := slices.IndexFunc(changeEvents, func(r row) bool { return r.reason == reason && r.end != "" })
	if i < 0 {
		return ""
	}
	return changeEvents[i].end
}
