// SPDX-License-Identifier: Apache-2.0

package details

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// elsewhere are names that anyone may write into an Event or a reference, and that are no names of objects.
var elsewhere = []string{"../../kube-system/pods/dns", "..", ".", "web-1/log", "web-1?x=y", "web-1%2flog", "a,b", strings.Repeat("a", 300)}

func TestAnEventReadsOnlyObjectsOfItsNamespace(t *testing.T) {
	for _, name := range elsewhere {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(c *Settings) { c.ConfigMaps = true })
			pod, job, set, stateful := restart("BackOff", 21, 1), restart("BackoffLimitExceeded", 21, 1), createdPod(1), createdPod(1)
			job.InvolvedObject.Kind, set.InvolvedObject.Kind = "Job", "ReplicaSet"
			for _, ev := range []*corev1.Event{pod, job, set, stateful} {
				ev.InvolvedObject.Name = name
				assert.Nil(t, s.ask(t, ev))
			}
			s.ask(t, scaled(name, 1))
			assert.Empty(t, s.sent())

			owned := replicaSet("a", 1, 0, 1)
			owned.OwnerReferences[0].Name = name
			s.put(replicaSets+"/a", owned)
			s.put(ofWeb, appsv1.ReplicaSetList{})
			assert.Equal(t, resolver.ResolutionNotFound, s.ask(t, scaled("a", 1)).Resolution)
			assert.Equal(t, []string{replicaSets + "/a", ofWeb}, s.sent())

			mounts := webPod(waiting("20s"), lastEnded(0, 20))
			mounts.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}}
			s.put(podPath, mounts)
			assert.Nil(t, s.ask(t, restart("BackOff", 21, 1)).ConfigMaps)
			assert.Equal(t, []string{podPath}, s.sent())
		})
	}
}

func TestAWorkloadWithoutASelectorHasNoFormerRevision(t *testing.T) {
	for name, selector := range map[string]*metav1.LabelSelector{
		"none":          nil,
		"empty":         {},
		"only the hash": {MatchLabels: map[string]string{"pod-template-hash": "a"}},
		"too long":      {MatchLabels: map[string]string{"app": "web"}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: strings.Split(strings.Repeat("web,", maxSelector/4)+"web", ",")}}},
		"unknown":       {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			set := replicaSet("a", 1, 0, 1)
			set.Spec.Selector = selector
			s.put(replicaSets+"/a", set)
			s.put(inStatefulSet, appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{UID: "web-uid", Generation: 1}, Spec: appsv1.StatefulSetSpec{Selector: selector}})
			assert.Nil(t, s.ask(t, scaled("a", 1)))
			if name != "only the hash" {
				assert.Nil(t, s.ask(t, createdPod(1)))
			}
			assert.NotContains(t, fmt.Sprint(s.sent()), "?")
		})
	}
}

func TestAnEventAboutTheReplicaSetOfAnotherDeployment(t *testing.T) {
	s := newServer(t)
	s.put(replicaSets+"/a", replicaSet("a", 1, 0, 1))
	ev := scaled("a", 1)
	ev.InvolvedObject.Name, ev.InvolvedObject.UID = "other", "other-uid"
	assert.Nil(t, s.ask(t, ev))
	s.put(ofWeb, appsv1.ReplicaSetList{})
	assert.NotNil(t, s.ask(t, scaled("a", 1)), "its own Event still says what changed")
}

func TestAReplicaSetWithoutARevisionIsReadOnceInTwoSeconds(t *testing.T) {
	s := newServer(t)
	set := replicaSet("a", 1, 0, 1)
	set.Annotations = nil
	s.put(replicaSets+"/a", set)
	for range 3 {
		assert.Nil(t, s.ask(t, scaled("a", 1)))
	}
	assert.Equal(t, []string{replicaSets + "/a"}, s.sent())
}

func TestARevisionThatWasComparedIsNotListedAgain(t *testing.T) {
	s := newServer(t)
	set := replicaSet("b", 2, 100, 1)
	s.put(replicaSets+"/b", set)
	s.put(ofWeb, appsv1.ReplicaSetList{Items: []appsv1.ReplicaSet{replicaSet("a", 1, 0, 1), set}})
	require.NotNil(t, s.ask(t, scaled("b", 101)))
	s.age()
	s.sent()
	assert.Nil(t, s.ask(t, scaled("b", 110)))
	assert.Equal(t, []string{replicaSets + "/b"}, s.sent())
}

func TestARollbackToARevisionThatWasCompared(t *testing.T) {
	s := newServer(t)
	s.put(theWorkload, metav1.PartialObjectMetadata{})
	old, next := replicaSet("a", 1, 0, 1), replicaSet("b", 2, 100, 1)
	put := func() {
		s.put(replicaSets+"/a", old)
		s.put(replicaSets+"/b", next)
		s.put(ofWeb, appsv1.ReplicaSetList{Items: []appsv1.ReplicaSet{old, next}})
	}
	put()
	require.NotNil(t, s.ask(t, scaled("a", 1)))
	require.NotNil(t, s.ask(t, scaled("b", 101)))
	for _, name := range s.replicaSets.Keys() {
		s.replicaSets.Add(name, compared{revision: map[string]int64{"a": 1, "b": 2}[name.Name]})
	}
	s.sent()
	larger := scaled("a", 150)
	larger.Message = "Scaled up replica set a from 1 to 2"
	assert.Nil(t, s.ask(t, larger))
	assert.Empty(t, s.sent(), "one that runs is no new revision")

	old.Annotations = map[string]string{"deployment.kubernetes.io/revision": "3", "deployment.kubernetes.io/revision-history": "1"}
	put()
	got := s.ask(t, scaled("a", 200))
	require.NotNil(t, got)
	assert.Equal(t, []string{"image app: app:b → app:a"}, got.Changes)
}

func TestAListThatIsCutSaysNothing(t *testing.T) {
	s := newServer(t)
	failed := webPod(ended(0, 10))
	failed.Status.Phase, failed.OwnerReferences = corev1.PodFailed, []metav1.OwnerReference{{UID: "job-uid"}}
	s.put("/api/v1/namespaces/shop/pods?job-name=copy", corev1.PodList{ListMeta: metav1.ListMeta{Continue: "more"}, Items: []corev1.Pod{failed}})
	ev := restart("BackoffLimitExceeded", 31, 1)
	ev.InvolvedObject = corev1.ObjectReference{Kind: "Job", Namespace: "shop", Name: "copy", UID: "job-uid"}
	got := s.ask(t, ev)
	assert.Equal(t, resolver.ResolutionUnavailable, got.Resolution)
	assert.Nil(t, got.Ended, "a later failure may be among the others")
}

func TestHugeAnswersAreNotKeptAndStopNobodyElse(t *testing.T) {
	s := newServer(t)
	for i := range failuresInARow + 1 {
		huge := webPod(waiting("20s"), lastEnded(0, 20))
		huge.Annotations = map[string]string{"huge": strings.Repeat("x", maxAnswer)}
		name := fmt.Sprint("huge-", i)
		s.put("/api/v1/namespaces/shop/pods/"+name, huge)
		ev := restart("BackOff", 21, 1)
		ev.InvolvedObject.Name = name
		got := s.ask(t, ev)
		assert.Equal(t, resolver.ResolutionUnavailable, got.Resolution)
		assert.Nil(t, got.Ended)
	}
	s.put(podPath, webPod(waiting("20s"), lastEnded(0, 20)))
	assert.NotNil(t, s.ask(t, restart("BackOff", 21, 1)).Ended)
}

func TestEventsAboutJobsThatCannotExistStopNoReadsOfOthers(t *testing.T) {
	for _, length := range []int{63, 64, 253} {
		s := newServer(t)
		s.put(podPath, webPod(waiting("20s"), lastEnded(0, 20)))
		for i := range failuresInARow {
			ev := restart("BackoffLimitExceeded", 31, 1)
			name := strings.Repeat(fmt.Sprint(i), length)
			ev.InvolvedObject = corev1.ObjectReference{Kind: "Job", Namespace: "shop", Name: name, UID: "job-uid"}
			want := resolver.ResolutionNotFound
			if length == 63 {
				s.put("/api/v1/namespaces/shop/pods?job-name="+name, corev1.PodList{})
				want = ""
			}
			assert.Equal(t, want, s.ask(t, ev).Resolution, "%d", length)
		}
		if length > 63 {
			assert.Empty(t, s.sent(), "the API server rejects such a value of a label")
		}
		assert.NotNil(t, s.ask(t, restart("BackOff", 21, 1)).Ended, "%d", length)
	}
}

func TestRequestsThatAreRejectedStopNoReadsOfOthers(t *testing.T) {
	for status, isAnswer := range map[int]bool{400: true, 414: true, 422: true, 431: true, 401: false, 429: false, 500: false, 503: false} {
		s := newServer(t)
		s.put(podPath, webPod(waiting("20s"), lastEnded(0, 20)))
		for i := range failuresInARow {
			ev := restart("BackOff", 21, 1)
			ev.InvolvedObject.Name = fmt.Sprint("other-", i)
			s.put("/api/v1/namespaces/shop/pods/"+ev.InvolvedObject.Name, status)
			assert.Equal(t, resolver.ResolutionUnavailable, s.ask(t, ev).Resolution)
		}
		assert.Equal(t, isAnswer, s.ask(t, restart("BackOff", 21, 1)).Ended != nil, "%d", status)
	}
}

func TestAListThatIsForbiddenForbidsNoGet(t *testing.T) {
	s := newServer(t)
	s.put("/api/v1/namespaces/shop/pods?job-name=copy", http.StatusForbidden)
	s.put(podPath, webPod(waiting("20s"), lastEnded(0, 20)))
	ev := restart("BackoffLimitExceeded", 31, 1)
	ev.InvolvedObject = corev1.ObjectReference{Kind: "Job", Namespace: "shop", Name: "copy", UID: "job-uid"}
	assert.Equal(t, resolver.ResolutionForbidden, s.ask(t, ev).Resolution)
	assert.NotNil(t, s.ask(t, restart("BackOff", 21, 1)).Ended)
	assert.Equal(t, []string{"list pods in shop"}, s.forbidden)
}

func TestAnObjectIsReadOnceInTwoSecondsWhateverTheAnswer(t *testing.T) {
	s := newServer(t)
	for range 3 {
		assert.Equal(t, resolver.ResolutionNotFound, s.ask(t, restart("BackOff", 21, 1)).Resolution)
	}
	assert.Len(t, s.sent(), 1, "not there")

	s = newServer(t)
	s.put(podPath, webPod(waiting("20s"), lastEnded(0, 20)))
	for i := range 3 {
		ev := restart("BackOff", 21, 1)
		ev.InvolvedObject.UID = types.UID(fmt.Sprint("other-", i))
		assert.Equal(t, resolver.ResolutionNotFound, s.ask(t, ev).Resolution)
	}
	assert.Len(t, s.sent(), 1, "another pod of the name")

	s.age()
	other := restart("BackOff", 21, 1)
	other.InvolvedObject.UID = "other"
	both := []observation.Observation{{Event: other}, {Event: restart("BackOff", 21, 1)}}
	s.Add(t.Context(), both)
	assert.Len(t, s.sent(), 1, "two pods of the name in one batch")
	assert.Equal(t, resolver.ResolutionNotFound, both[0].Details.Resolution)
	assert.Nil(t, both[0].Details.Ended)
	assert.NotNil(t, both[1].Details.Ended)
}

func TestPodsThatUseOneConfigMapShareARead(t *testing.T) {
	s := newServer(t, func(c *Settings) { c.ConfigMaps = true })
	var all []observation.Observation
	for i := range 5 {
		one := webPod(waiting("20s"), lastEnded(0, 20))
		one.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}}
		ev := restart("BackOff", 21, 1)
		ev.InvolvedObject.Name = fmt.Sprint("api-", i)
		s.put("/api/v1/namespaces/shop/pods/"+ev.InvolvedObject.Name, one)
		all = append(all, observation.Observation{Event: ev})
	}
	s.put("/api/v1/namespaces/shop/configmaps/settings", metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ManagedFields: []metav1.ManagedFieldsEntry{managed("helm", 3, "", `{"f:data":{}}`)},
	}})
	s.Add(t.Context(), all)
	assert.Equal(t, 1, strings.Count(fmt.Sprint(s.sent()), "configmaps/settings"))
	for _, one := range all {
		assert.NotEmpty(t, one.Details.ConfigMaps)
	}
	next := webPod(waiting("20s"), lastEnded(0, 20))
	next.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}}
	s.put(podPath, next)
	assert.NotEmpty(t, s.ask(t, restart("BackOff", 21, 1)).ConfigMaps)
	assert.Equal(t, []string{podPath}, s.sent(), "also with the next batch")
}

func TestAConfigMapThatKeepsChangingIsNeverNamed(t *testing.T) {
	s := newServer(t, func(c *Settings) { c.ConfigMaps = true })
	for i := range 4 {
		one := webPod(waiting("10s"), lastEnded(i*40, i*40+20))
		one.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "beat"}}}}}
		s.put(podPath, one)
		s.put("/api/v1/namespaces/shop/configmaps/beat", metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			ManagedFields: []metav1.ManagedFieldsEntry{managed("beat", i*40, "", `{"f:data":{}}`)},
		}})
		for range 2 {
			s.age()
			got := s.ask(t, restart("BackOff", i*40+21, 1))
			require.NotNil(t, got.Ended)
			assert.Nil(t, got.ConfigMaps, "change %d", i)
		}
	}
}

func TestNothingThatAToolWroteIntoAPodIsKept(t *testing.T) {
	s := newServer(t)
	one := webPod(waiting("20s"), lastEnded(0, 20))
	one.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"env": "s3cret"}`}
	one.Status.ContainerStatuses[0].LastTerminationState.Terminated.Message = "s3cret"
	s.put(podPath, one)
	require.NotNil(t, s.ask(t, restart("BackOff", 21, 1)).Ended)
	for _, known := range s.pods.Values() {
		text, err := json.Marshal(known)
		require.NoError(t, err)
		assert.NotContains(t, string(text), "s3cret")
	}
}

func TestAnAnnotationOfARestartThatIsNoTimeIsNotShown(t *testing.T) {
	after := template(t, before)
	after.Annotations["kubectl.kubernetes.io/restartedAt"] = "s3cret"
	assert.Equal(t, []string{"annotation kubectl.kubernetes.io/restartedAt added"}, compare(template(t, before), after))
}
