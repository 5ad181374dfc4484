// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// modelOf returns a model of records, and the time of the last one.
func modelOf(lines ...string) (*Model, time.Time) {
	m, last := NewModel(story.Epoch.Add(-Horizon)), story.Epoch
	var all []story.Record
	for _, line := range lines {
		all = append(all, story.Records(line)...)
	}
	slices.SortStableFunc(all, func(a, b story.Record) int { return int(a.At - b.At) })
	for _, r := range all {
		last = story.Epoch.Add(r.At)
		m.AddFacts(FactsOf(record.Read(r.Logs(story.Epoch)), last, false), last)
	}
	return m, last
}

func factIn(t *testing.T, line string) *Fact {
	t.Helper()
	all := record.Read(story.Logs(line)[0])
	require.Len(t, all, 1)
	return FactOf(all[0], story.Epoch.Add(Horizon))
}

// reasonOf returns the reason and a message that mean a kind.
func reasonOf(kind string) (reason, message string) {
	switch kind {
	case "":
		return "Odd", "odd"
	case record.KindPullFailed:
		return "Failed", "Failed to pull image"
	case record.KindCrashed:
		return "BackOff", "Back-off restarting failed container"
	case record.KindRestarted:
		return "Killing", "Container app failed liveness probe, will be restarted"
	}
	return kind, "failed"
}

// TestEachEventOfASymptom: the Events of a row are of its class, and not if another object has
// them, or if they are no warnings.
func TestEachEventOfASymptom(t *testing.T) {
	t.Parallel()
	for i := range symptoms {
		s := &symptoms[i]
		for _, e := range s.shows {
			object := map[place]string{placePods: "Pod/web-aaa-1", placeNodes: "Node/node-0", placeAnything: "Pod/web-aaa-1"}[e.of]
			for _, kind := range append(slices.Clone(e.kinds), map[bool][]string{true: {""}}[len(e.kinds) == 0]...) {
				reason, message := reasonOf(kind)
				shown := factIn(t, fmt.Sprintf("0s %s !%s{app}: %s", object, reason, message))
				require.NotNil(t, shown.symptom, reason)
				assert.Equal(t, s.class, shown.symptom.class, reason)
				if e.of != placeAnything {
					assert.False(t, e.match(factIn(t, fmt.Sprintf("0s Widget/w !%s: %s", reason, message))), reason)
				}
				assert.Equal(t, e.isNormal, e.match(factIn(t, fmt.Sprintf("0s %s %s{app}: %s", object, reason, message))), reason)
			}
		}
	}
	for _, reason := range []string{"ProbeWarning", "InvalidDiskCapacity"} {
		assert.Nil(t, factIn(t, "0s Node/node-0 !"+reason+": harmless").symptom, reason)
	}
}

// TestEachEndOfASymptom: what ends a problem ends it, and what another object or container shows
// does not.
func TestEachEndOfASymptom(t *testing.T) {
	t.Parallel()
	for i := range symptoms {
		s := &symptoms[i]
		for _, e := range s.ends {
			if len(e.reasons) == 0 || len(s.shows[0].kinds) == 0 || e.on == placeRevision || strings.HasPrefix(e.reasons[0], "(") {
				continue // Stories have them.
			}
			reason, message := reasonOf(s.shows[0].kinds[0])
			begun := fmt.Sprintf("1:00 Pod/web-aaa-1 !%s{app} node=node-0: %s", reason, message)
			for _, end := range e.reasons {
				state := func(object string) (over bool, because string) {
					m, last := modelOf(begun, fmt.Sprintf("3:00 %s %s{app}: done", object, end))
					for _, p := range m.At(context.Background(), last.Add(e.holds), Query{}).Problems() {
						if p.Class == s.class {
							return !p.Over.IsZero(), p.Because
						}
					}
					return true, "there is no problem"
				}
				over, because := state("Pod/web-aaa-1")
				assert.True(t, over, "%s: %s", s.class, end)
				assert.Equal(t, e.text, because)
				over, _ = state("Pod/cart-aaa-1")
				assert.Equal(t, s.quiet <= e.holds, over, "%s: %s of another workload", s.class, end)
			}
		}
	}
}

// TestEachEventOfAChange: the Events of a row show its change, and not if they are about another
// kind of object.
func TestEachEventOfAChange(t *testing.T) {
	t.Parallel()
	for i := range changeEvents {
		r := &changeEvents[i]
		for _, kind := range r.kinds {
			shown := factIn(t, lineOf(r, kind))
			require.Same(t, r, shown.change, "%s of %s", r.reason, kind)
			assert.NotContains(t, r.describe(shown), "%")
			assert.Nil(t, factIn(t, strings.Replace(lineOf(r, kind), objects[kind], "Widget/w", 1)).change, r.reason)
		}
		if r.end != "" {
			assert.Equal(t, r.end, endOfState(r.reason))
		}
	}
}

// objects are those of the kinds of changes.
var objects = map[string]string{
	"deployment.apps": "Deployment/web", "statefulset.apps": "StatefulSet/web", "daemonset.apps": "DaemonSet/web", "rollout.argoproj.io": "Rollout/web",
	"node": "Node/node-0", "pod": "Pod/web-aaa-1", "persistentvolumeclaim": "PersistentVolumeClaim/data",
	"kustomization.kustomize.toolkit.fluxcd.io": "Kustomization/web", "helmrelease.helm.toolkit.fluxcd.io": "HelmRelease/web",
	"gitrepository.source.toolkit.fluxcd.io": "GitRepository/web", "application.argoproj.io": "Application/web",
}

// lineOf returns a record that shows a change, at 30:00.
func lineOf(r *row, kind string) string {
	message := "it happened"
	switch {
	case r.reason == "TaintManagerEviction":
		message = "Marking for deletion Pod shop/web-aaa-1"
	case r.reason == "ScaleDown":
		message = "deleting pod for node scale down"
	case r.shows == reloaded:
		message = "Changes detected in 'settings' of type 'CONFIGMAP' in namespace 'shop'"
		if strings.Contains(r.text, "Secret") {
			message = strings.Replace(message, "CONFIGMAP", "SECRET", 1)
		}
	case strings.HasSuffix(r.text, "by itself"):
		message = "Initiated automated sync to '8a1cb4a'"
	case strings.HasPrefix(r.text, "%1 synced"):
		message = "admin initiated sync to HEAD (8a1cb4a)"
	case r.shows == deployed:
		message = "Deployment/shop/web configured"
	}
	return fmt.Sprintf("30:00 %s %s: %s", objects[kind], r.reason, message)
}

// problemOf returns a record that shows a problem of a class.
func problemOf(class string, at time.Duration, pod, node string) string {
	i := slices.IndexFunc(symptoms, func(s symptom) bool { return s.class == class && s.shows[0].of != placeNodes })
	kind := "NodeNotReady"
	if i >= 0 && len(symptoms[i].shows[0].kinds) > 0 {
		kind = symptoms[i].shows[0].kinds[0]
	} else if i >= 0 {
		kind = ""
	}
	reason, message := reasonOf(kind)
	return fmt.Sprintf("%s Pod/%s !%s{app} node=%s: %s", at, pod, reason, node, message)
}

// isCause reports whether the first problem of a class of the workload web has a cause of a kind in
// a place.
func isCause(c *change, where string, class string, lines ...string) bool {
	m, last := modelOf(lines...)
	for _, p := range m.At(context.Background(), last.Add(time.Second), Query{}).Problems() {
		if p.Key.Top.Name == "web" && p.Class == class {
			return slices.ContainsFunc(p.Causes, func(cause Cause) bool { return cause.what == c && cause.Where == where })
		}
	}
	return false
}

// others returns a class that a link cannot cause.
func others(l *link) string {
	for _, class := range []string{classCrash, classMount, classImage, classOther} {
		if !slices.Contains(l.can, class) {
			return class
		}
	}
	return ""
}

const web = "0:00 Pod/web-aaa-1 starts node=node-0"

// TestEachLinkOfANode: each Event of a node that a link connects with the problems of its pods is a
// cause of each of its classes; not on another node, not of another class, and not for ever.
func TestEachLinkOfANode(t *testing.T) {
	t.Parallel()
	tried := 0
	for i := range links {
		l := &links[i]
		for j := range changeEvents {
			r := &changeEvents[j]
			if l.where != whereNode || !slices.Contains(l.changes, r.shows) {
				continue
			}
			at := 30*time.Minute + l.within/2
			for _, class := range l.can {
				assert.True(t, isCause(r.shows, "node", class, web, lineOf(r, "node"), problemOf(class, at, "web-aaa-1", "node-0")), "%s: %s", r.reason, class)
				assert.False(t, isCause(r.shows, "node", class, web, lineOf(r, "node"), problemOf(class, at, "web-bbb-1", "node-1")), "%s: %s on another node", r.reason, class)
				early := []string{web, lineOf(r, "node"), problemOf(class, at+l.within, "web-aaa-1", "node-0")}
				if r.end != "" {
					early = append(early, fmt.Sprintf("30:10 Node/node-0 %s: it is over", r.end))
				}
				assert.False(t, isCause(r.shows, "node", class, early...), "%s: %s later", r.reason, class)
				tried++
			}
			if class := others(l); class != "" {
				assert.False(t, isCause(r.shows, "node", class, web, lineOf(r, "node"), problemOf(class, at, "web-aaa-1", "node-0")), "%s: %s", r.reason, class)
			}
		}
	}
	assert.Greater(t, tried, 50)
}

// TestEachLinkOfALeftNode: a node that a pod left explains what its replacement has, and nothing of
// pods that were there before.
func TestEachLinkOfALeftNode(t *testing.T) {
	t.Parallel()
	for i := range links {
		l := &links[i]
		for j := range changeEvents {
			r := &changeEvents[j]
			if l.where != whereLeftNode || !slices.Contains(l.changes, r.shows) {
				continue
			}
			left := "30:10 Pod/web-aaa-1 Killing{app} node=node-0: Stopping container app"
			assert.True(t, isCause(r.shows, "node", classCrash, web, lineOf(r, "node"), left, "30:11 Pod/web-aaa-2 starts node=node-1", problemOf(classCrash, 31*time.Minute, "web-aaa-2", "node-1")), r.reason)
			assert.False(t, isCause(r.shows, "node", classCrash, web, lineOf(r, "node"), left, "20:11 Pod/web-aaa-2 starts node=node-1", problemOf(classCrash, 31*time.Minute, "web-aaa-2", "node-1")), r.reason)
		}
	}
}

// TestEachOtherLink has, for each other link and change, records of which it is the cause, and
// records of which it is not.
func TestEachOtherLink(t *testing.T) {
	t.Parallel()
	const (
		scale  = "0:00 Deployment/web ScalingReplicaSet: Scaled up replica set web-aaa from 0 to 1"
		update = "30:00 Deployment/web ScalingReplicaSet: Scaled up replica set web-bbb from 0 to 1"
		newPod = "30:00 Pod/web-bbb-1 starts"
		cart   = "0:00 Deployment/cart ScalingReplicaSet: Scaled up replica set cart-aaa from 0 to 2"
	)
	crash := func(at time.Duration, pod string) string { return problemOf(classCrash, at, pod, "node-0") }
	cases := map[*where]map[*change][2][]string{
		whereWorkload: {
			rolledOut:      {{scale, web, update, newPod, crash(30*time.Minute+20*time.Second, "web-bbb-1")}, {scale, web, update, newPod, crash(40*time.Minute, "web-bbb-1")}},
			firstRolledOut: {{scale, web, crash(20*time.Second, "web-aaa-1")}, {scale, web, crash(2*time.Minute, "web-aaa-1")}},
			scaledDown: {
				{scale, web, "30:00 Deployment/web ScalingReplicaSet: Scaled down replica set web-aaa from 3 to 1", crash(31*time.Minute, "web-aaa-1")},
				{scale, web, "30:00 Deployment/web ScalingReplicaSet: Scaled down replica set web-aaa from 3 to 1", crash(41*time.Minute, "web-aaa-1")},
			},
			scaledUp: {
				{scale, web, "30:00 Deployment/web ScalingReplicaSet: Scaled up replica set web-aaa from 1 to 2", "30:00 Pod/web-aaa-2 starts", crash(31*time.Minute, "web-aaa-2")},
				{scale, web, "30:00 Deployment/web ScalingReplicaSet: Scaled up replica set web-aaa from 1 to 2", "30:00 Pod/web-aaa-2 starts", crash(31*time.Minute, "web-aaa-1")},
			},
			podDeleted: {
				{scale, web, "30:00 Pod/web-aaa-1 Killing{app}: Stopping container app", "30:01 Pod/web-aaa-2 starts", crash(31*time.Minute, "web-aaa-2")},
				{scale, web, "10:00 Pod/web-aaa-2 starts", "30:00 Pod/web-aaa-1 Killing{app}: Stopping container app", crash(31*time.Minute, "web-aaa-2")},
			},
			podEvicted: {
				{web, "30:00 Pod/web-aaa-1 EvictedByVPA: evicted", "30:01 Pod/web-aaa-2 starts", crash(31*time.Minute, "web-aaa-2")},
				{web, "10:00 Pod/web-aaa-2 starts", "30:00 Pod/web-aaa-1 EvictedByVPA: evicted", crash(31*time.Minute, "web-aaa-2")},
			},
			reloaded: {
				{scale, web, "30:00 Deployment/web Reloaded: Changes detected in 'settings' of type 'CONFIGMAP'", "30:00 Pod/web-bbb-1 starts", crash(31*time.Minute, "web-bbb-1")},
				{scale, web, "30:00 Deployment/web Reloaded: Changes detected in 'settings' of type 'CONFIGMAP'", crash(31*time.Minute, "web-aaa-1")},
			},
			podPreempted: {
				{web, "30:00 Pod/web-aaa-1 Preempted: Preempted by a pod", "30:01 Pod/web-aaa-2 starts", crash(31*time.Minute, "web-aaa-2")},
				{web, "10:00 Pod/web-aaa-2 starts", "30:00 Pod/web-aaa-1 Preempted: Preempted by a pod", crash(31*time.Minute, "web-aaa-2")},
			},
		},
		whereNamespace: {
			rolledOut: {
				{web, strings.ReplaceAll(scale, "web", "cart"), strings.ReplaceAll(web, "web", "cart"), strings.ReplaceAll(update, "web", "cart"), strings.ReplaceAll(newPod, "web", "cart"), crash(31*time.Minute, "web-aaa-1")},
				{web, strings.ReplaceAll(scale, "web", "cart"), strings.ReplaceAll(web, "web", "cart"), strings.ReplaceAll(update, "web", "cart"), strings.ReplaceAll(newPod, "web", "cart"), crash(35*time.Minute, "web-aaa-1")},
			},
			scaledDown: {
				{web, cart, "30:00 Deployment/cart ScalingReplicaSet: Scaled down replica set cart-aaa from 2 to 1", crash(31*time.Minute, "web-aaa-1")},
				{web, cart, "30:00 Deployment/cart ScalingReplicaSet: Scaled down replica set cart-aaa from 2 to 1", crash(33*time.Minute, "web-aaa-1")},
			},
			scaledToZero: {
				{web, cart, "30:00 Deployment/cart ScalingReplicaSet: Scaled down replica set cart-aaa from 2 to 0", crash(31*time.Minute, "web-aaa-1")},
				{web, cart + " namespace=other", "30:00 Deployment/cart ScalingReplicaSet namespace=other: Scaled down replica set cart-aaa from 2 to 0", crash(31*time.Minute, "web-aaa-1")},
			},
			podDeleted: {
				{web, "0:00 Pod/cart-aaa-1 starts", "30:00 Pod/cart-aaa-1 Killing{app}: Stopping container app", crash(31*time.Minute, "web-aaa-1")},
				{web, "0:00 Pod/cart-aaa-1 starts", "30:00 Pod/cart-aaa-1 Killing{app}: Stopping container app", problemOf(classImage, 31*time.Minute, "web-aaa-1", "node-0")},
			},
			noVolume: {
				{"29:40 Pod/web-aaa-1 !FailedScheduling: no volume", "30:00 PersistentVolumeClaim/data !ProvisioningFailed: no such class"},
				{web, "30:00 PersistentVolumeClaim/data !ProvisioningFailed: no such class", crash(31*time.Minute, "web-aaa-1")},
			},
			notResized: {
				{web, "30:00 PersistentVolumeClaim/data !VolumeResizeFailed: no", problemOf(classMount, 31*time.Minute, "web-aaa-1", "node-0")},
				{web, "30:00 PersistentVolumeClaim/data !VolumeResizeFailed: no", problemOf(classMount, 41*time.Minute, "web-aaa-1", "node-0")},
			},
		},
	}
	for where, changes := range cases {
		for c, stories := range changes {
			class := classCrash
			switch c {
			case noVolume:
				class = classSchedule
			case notResized:
				class = classMount
			}
			assert.True(t, isCause(c, where.name, class, stories[0]...), "%s: %s", where.text, c.text)
			assert.False(t, isCause(c, where.name, class, stories[1]...), "not: %s: %s", where.text, c.text)
		}
	}
	for i := range links {
		for _, c := range links[i].changes {
			if _, ok := cases[links[i].where]; ok && c != takenBack { // Stories have it.
				assert.Contains(t, cases[links[i].where], c, c.text)
			}
		}
	}
}

// TestEachMessage: what a message names is a cause of the classes that can have it, and of no other
// one.
func TestEachMessage(t *testing.T) {
	t.Parallel()
	examples := map[string]string{
		"the quota small is used up":                          `pods "x" is forbidden: exceeded quota: small, requested: cpu=1`,
		"the webhook a.b does not answer":                     `Internal error occurred: failed calling webhook "a.b": no endpoints`,
		"the webhook a.b refuses it":                          `admission webhook "a.b" denied the request: no`,
		"the policy no-root refuses it":                       `pods "x" is forbidden: ValidatingAdmissionPolicy 'no-root' with binding 'b' denied request: root`,
		"the Pod Security level restricted:latest refuses it": `pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged`,
		`the configmap "c" not found`:                         `MountVolume.SetUp failed: configmap "c" not found`,
		`the secret "c" not found`:                            `Error: secret "c" not found`,
		`the persistentvolumeclaim "c" not found`:             `persistentvolumeclaim "c" not found`,
		"the service account c does not exist":                `error looking up service account shop/c: serviceaccount "c" not found`,
		"the volume is still attached to another node":        `Multi-Attach error for volume "v"`,
		"the registry r.io answers 503 Service Unavailable":   `unexpected status from HEAD request to https://r.io/v2/a/manifests/1: 503 Service Unavailable`,
		"the registry r.io does not answer: no such host":     `Head "https://r.io/v2/a/manifests/1": dial tcp: lookup r.io: no such host`,
		"the registry limits pulls: toomanyrequests":          `toomanyrequests: You have reached your pull rate limit`,
		"the registry refuses access":                         `pull access denied, repository does not exist`,
		"the StorageClass fast does not exist":                `storageclass.storage.k8s.io "fast" not found`,
	}
	seen := map[*message]bool{}
	for want, text := range examples {
		f := factIn(t, "0s Pod/web-aaa-1 !Odd: "+strings.ReplaceAll(text, ": ", ":\t"))
		f.Message = text
		for i := range messages {
			if messages[i].describe(f) == want {
				seen[&messages[i]] = true
			}
		}
	}
	assert.Len(t, seen, len(messages))
	for i := range messages {
		assert.Empty(t, messages[i].describe(factIn(t, "0s Pod/web-aaa-1 !Odd: something else")))
	}
}
