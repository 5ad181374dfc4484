// SPDX-License-Identifier: Apache-2.0

package details

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// template is a pod template in YAML.
func template(t *testing.T, text string) (parsed corev1.PodTemplateSpec) {
	t.Helper()
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &parsed))
	return parsed
}

const before = `
metadata:
  labels: {app: web, pod-template-hash: a1}
  annotations: {checksum/config: aaaa, gone: x}
spec:
  initContainers: [{name: migrate, image: "migrate:1"}]
  containers:
  - name: app
    image: app:1
    args: [--password=s3cret]
    env: [{name: URL, value: "http://s3cret"}, {name: OLD, value: s3cret}, {name: SAME, value: "1"}]
    envFrom: [{configMapRef: {name: app-6f4b}}, {secretRef: {name: tokens}}]
    resources: {limits: {memory: 256Mi, cpu: "1"}, requests: {memory: 64Mi}}
    livenessProbe: {tcpSocket: {port: 80}, periodSeconds: 10}
  volumes:
  - {name: settings, configMap: {name: settings}}
`

func TestWhatATemplateChanged(t *testing.T) {
	for name, tt := range map[string]struct {
		after string
		want  []string
	}{
		"nothing but the hash": {`
metadata:
  labels: {app: web, pod-template-hash: b2}
  annotations: {checksum/config: aaaa, gone: x}
spec:
  initContainers: [{name: migrate, image: "migrate:1"}]
  containers:
  - name: app
    image: app:1
    args: [--password=s3cret]
    env: [{name: SAME, value: "1"}, {name: URL, value: "http://s3cret"}, {name: OLD, value: s3cret}]
    envFrom: [{configMapRef: {name: app-6f4b}}, {secretRef: {name: tokens}}]
    resources: {limits: {memory: 256Mi, cpu: "1"}, requests: {memory: 64Mi}}
    livenessProbe: {tcpSocket: {port: 80}, periodSeconds: 10}
  volumes:
  - {name: settings, configMap: {name: settings}}
`, nil},
		"all that has a name": {`
metadata:
  labels: {app: web}
  annotations: {checksum/config: bbbb, new: x, kubectl.kubernetes.io/restartedAt: "2026-11-28T14:00:00Z"}
spec:
  containers:
  - name: app
    image: app:2
    command: [/bin/other]
    args: [--password=other]
    env: [{name: URL, value: "http://other"}, {name: SAME, value: "1"}, {name: NEW, value: s3cret}]
    envFrom: [{configMapRef: {name: app-9d21}}]
    resources: {limits: {memory: 128Mi}, requests: {memory: 64Mi}}
    livenessProbe: {tcpSocket: {port: 80}, periodSeconds: 5}
    readinessProbe: {tcpSocket: {port: 80}}
  - {name: proxy, image: "proxy:1"}
  volumes:
  - {name: settings, secret: {secretName: settings}}
`, []string{
			"annotation checksum/config changed",
			"annotation gone removed",
			"restart by hand at 2026-11-28T14:00:00Z",
			"annotation new added",
			"args app changed",
			"command app added",
			"configmap app: app-6f4b → app-9d21",
			"configmap settings removed",
			"cpu limit app: 1 removed",
			"env app NEW added",
			"env app OLD removed",
			"env app URL changed",
			"image app: app:1 → app:2",
			"image migrate: migrate:1 removed",
			"image proxy: proxy:1 added",
			"liveness probe app changed",
			"memory limit app: 256Mi → 128Mi",
			"other settings of the pod template changed",
			"readiness probe app added",
			"secret settings added",
			"secret tokens removed",
		}},
		"on which nodes and as whom pods run": {before + `
  affinity: {nodeAffinity: {}}
  nodeSelector: {disk: s3cret}
  priorityClassName: s3cret
  securityContext: {runAsUser: 1}
  serviceAccount: s3cret
  serviceAccountName: s3cret
  tolerations: [{key: s3cret}]
`, []string{
			"affinity added",
			"nodeSelector added",
			"priorityClassName changed",
			"securityContext added",
			"serviceAccountName changed",
			"tolerations added",
		}},
		"probes of another kind": {strings.Replace(before, "livenessProbe: {tcpSocket: {port: 80}, periodSeconds: 10}", "startupProbe: {tcpSocket: {port: 80}}", 1), []string{
			"liveness probe app removed",
			"startup probe app added",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := compare(template(t, before), template(t, tt.after))
			assert.Equal(t, tt.want, got)
			assert.NotContains(t, fmt.Sprint(got), "s3cret")
		})
	}
}

// TestASettingWithoutAValue: a Deployment that gets, or loses, an annotation that only is there.
func TestASettingWithoutAValue(t *testing.T) {
	with := template(t, before)
	with.Annotations["empty"] = ""
	assert.Equal(t, []string{"annotation empty added"}, compare(template(t, before), with))
	assert.Equal(t, []string{"annotation empty removed"}, compare(with, template(t, before)))
}

// TestTwoObjectsWhoseNamesDifferInAHash are not a new state of one object.
func TestTwoObjectsWhoseNamesDifferInAHash(t *testing.T) {
	with := template(t, before)
	with.Spec.Containers[0].EnvFrom = append(with.Spec.Containers[0].EnvFrom, corev1.EnvFromSource{
		ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app-9d21"}},
	})
	const more = "other settings of the pod template changed"
	assert.Equal(t, []string{"configmap app-9d21 added", more}, compare(template(t, before), with))
	with.Spec.Containers[0].EnvFrom[2].ConfigMapRef.Name = "app-6f4b"
	assert.Equal(t, []string{more}, compare(template(t, before), with), "the same object, once more")
}

func TestManyChangesAreCut(t *testing.T) {
	after := template(t, before)
	for i := range 100 {
		after.Spec.Containers[0].Env = append(after.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("N", i)})
	}
	got := compare(template(t, before), after)
	assert.Len(t, got, maxSentences+1)
	assert.Equal(t, "and more", got[maxSentences])
}

const (
	replicaSets   = "/apis/apps/v1/namespaces/shop/replicasets"
	ofWeb         = replicaSets + "?app=web"
	theWorkload   = "/apis/apps/v1/namespaces/shop/deployments/web"
	inStatefulSet = "/apis/apps/v1/namespaces/shop/statefulsets/web"
	ofRevisions   = "/apis/apps/v1/namespaces/shop/controllerrevisions?app=web"
)

// replicaSet is one of the Deployment web, with an image of its own.
func replicaSet(name string, revision, createdAt int, replicas int32) appsv1.ReplicaSet {
	return appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name + "-uid"), CreationTimestamp: at(createdAt),
			Annotations:     map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(revision)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "web-uid", Controller: new(true)}},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "pod-template-hash": name}},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:" + name}}}},
		},
	}
}

func scaled(name string, seconds int) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "web-uid"},
		Reason:         "ScalingReplicaSet", Message: "Scaled up replica set " + name + " from 0 to 1", LastTimestamp: at(seconds),
	}
}

func TestTheFirstRecordOfANewReplicaSetSaysWhatChanged(t *testing.T) {
	rolledBack := usedAgain(replicaSet("a", 1, 0, 1), 3, "1")
	combined := scaled("a", 9000)
	combined.Message = "(combined from similar events): " + combined.Message
	stranger := ofStranger(replicaSet("c", 9, 50, 1))
	for name, tt := range map[string]struct {
		ev   *corev1.Event
		sets []appsv1.ReplicaSet
		want []string
	}{
		"the second revision":               {scaled("b", 100), []appsv1.ReplicaSet{replicaSet("a", 1, 0, 1), replicaSet("b", 2, 100, 1), stranger}, []string{"image app: app:a → app:b"}},
		"the first revision":                {scaled("a", 0), []appsv1.ReplicaSet{replicaSet("a", 1, 0, 1)}, nil},
		"a rollback":                        {scaled("a", 9000), []appsv1.ReplicaSet{rolledBack, replicaSet("b", 2, 100, 1)}, []string{"image app: app:b → app:a"}},
		"a rollback of many pods":           {combined, []appsv1.ReplicaSet{rolledBack, replicaSet("b", 2, 100, 1)}, []string{"image app: app:b → app:a"}},
		"scaled up from 0 after a rollback": {scaled("a", 9000), []appsv1.ReplicaSet{rolledBack, replicaSet("b", 2, 100, 0)}, nil},
		"an old one is scaled up by hand":   {scaled("b", 9000), []appsv1.ReplicaSet{replicaSet("a", 1, 0, 1), replicaSet("b", 2, 100, 1)}, nil},
		"an old one is scaled up":           {scaled("b", 9000), []appsv1.ReplicaSet{replicaSet("a", 1, 0, 0), replicaSet("b", 2, 100, 1)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.put(ofWeb, appsv1.ReplicaSetList{Items: tt.sets})
			for _, one := range tt.sets {
				s.put(replicaSets+"/"+one.Name, one)
			}
			got := s.ask(t, tt.ev)
			if tt.want == nil {
				assert.True(t, got == nil || got.Changes == nil)
			} else {
				require.NotNil(t, got)
				assert.Equal(t, tt.want, got.Changes)
			}
			s.sent()
			assert.Nil(t, s.ask(t, tt.ev), "a second record does not say it again")
			assert.Empty(t, s.sent())
		})
	}
}

// usedAgain makes a ReplicaSet one that was used again, as a rollback does.
func usedAgain(set appsv1.ReplicaSet, revision int, history string) appsv1.ReplicaSet {
	set.Annotations = map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(revision), "deployment.kubernetes.io/revision-history": history}
	return set
}

func TestAnEventOfAReplicaSetSaysWhatItsOwnUseChanged(t *testing.T) {
	a, b, c := replicaSet("a", 1, 0, 1), replicaSet("b", 2, 100, 1), replicaSet("c", 3, 200, 1)
	rollout := replicaSet("b", 2, 100, 1)
	rollout.Annotations = map[string]string{"rollout.argoproj.io/revision": "2"}
	before := replicaSet("a", 3, 0, 1)
	before.Annotations = map[string]string{"rollout.argoproj.io/revision": "3", "rollout.argoproj.io/revision-history": "1"}
	for name, tt := range map[string]struct {
		ev   *corev1.Event
		sets []appsv1.ReplicaSet
		want string
	}{
		"the first use, read after a rollback":                       {scaled("a", 1), []appsv1.ReplicaSet{usedAgain(a, 3, "1"), b}, ""},
		"the rollback":                                               {scaled("a", 150), []appsv1.ReplicaSet{usedAgain(a, 3, "1"), b}, "b → a"},
		"a rollback a second after the revision before it":           {scaled("a", 101), []appsv1.ReplicaSet{usedAgain(a, 3, "1"), b}, ""},
		"a rollback within the second":                               {scaled("a", 100), []appsv1.ReplicaSet{usedAgain(a, 3, "1"), b}, ""},
		"the former one was used again":                              {scaled("b", 101), []appsv1.ReplicaSet{usedAgain(a, 3, "1"), b}, "a → b"},
		"the former one was used again, another one is older":        {scaled("c", 201), []appsv1.ReplicaSet{a, usedAgain(b, 4, "2"), c}, "b → c"},
		"a rollback of a rollback":                                   {scaled("b", 300), []appsv1.ReplicaSet{usedAgain(a, 3, "1"), usedAgain(b, 4, "2")}, "a → b"},
		"two uses that it may be, after different ones":              {scaled("b", 300), []appsv1.ReplicaSet{usedAgain(a, 5, "1"), usedAgain(b, 6, "2,4"), c}, ""},
		"two uses, of which one was long before":                     {scaled("b", 300), []appsv1.ReplicaSet{a, usedAgain(b, 4, "2"), c}, "c → b"},
		"the one before it is deleted":                               {scaled("c", 201), []appsv1.ReplicaSet{a, c}, ""},
		"of one that was deleted and created again":                  {scaled("c", 101), []appsv1.ReplicaSet{b, c}, ""},
		"of one that was created again, and then used again":         {scaled("c", 101), []appsv1.ReplicaSet{b, usedAgain(c, 5, "3")}, ""},
		"another rollout controller, the former one was used again":  {scaled("b", 101), []appsv1.ReplicaSet{before, rollout}, "a → b"},
		"another rollout controller, a rollback":                     {scaled("a", 9000), []appsv1.ReplicaSet{before, rollout}, "b → a"},
		"another rollout controller, read after a rollback":          {scaled("a", 1), []appsv1.ReplicaSet{before, rollout}, ""},
		"numbers that are none":                                      {scaled("b", 101), []appsv1.ReplicaSet{usedAgain(a, 3, "x,,1"), b}, "a → b"},
		"a stranger has the number of the former one, and the label": {scaled("b", 101), []appsv1.ReplicaSet{ofStranger(replicaSet("x", 1, 0, 1)), a, b}, "a → b"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.put(ofWeb, appsv1.ReplicaSetList{Items: tt.sets})
			for _, one := range tt.sets {
				s.put(replicaSets+"/"+one.Name, one)
			}
			got := s.ask(t, tt.ev)
			if tt.want == "" {
				assert.True(t, got == nil || got.Changes == nil, "%+v", got)
				return
			}
			require.NotNil(t, got)
			from, to, _ := strings.Cut(tt.want, " → ")
			assert.Equal(t, []string{"image app: app:" + from + " → app:" + to}, got.Changes)
		})
	}
}

func ofStranger(set appsv1.ReplicaSet) appsv1.ReplicaSet {
	set.OwnerReferences[0].UID = "other"
	return set
}

// TestAnEventOfAReplicaSetItself: a ReplicaSet that creates its first pod says so before its Deployment does, and
// other tools than a Deployment say nothing at all.
func TestAnEventOfAReplicaSetItself(t *testing.T) {
	s := newServer(t)
	a, b := replicaSet("a", 1, 0, 1), replicaSet("b", 2, 100, 1)
	s.put(ofWeb, appsv1.ReplicaSetList{Items: []appsv1.ReplicaSet{a, b}})
	s.put(replicaSets+"/b", b)
	s.put(theWorkload, metav1.PartialObjectMetadata{})
	created := createdPod(101)
	created.InvolvedObject = corev1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "shop", Name: "b", UID: "b-uid"}
	deleted := createdPod(101)
	deleted.InvolvedObject, deleted.Reason = created.InvolvedObject, "SuccessfulDelete"
	assert.Nil(t, s.ask(t, deleted))
	got := s.ask(t, created)
	require.NotNil(t, got)
	assert.Equal(t, []string{"image app: app:a → app:b"}, got.Changes)
}

func TestALateEventTakesNothingFromARollback(t *testing.T) {
	s := newServer(t)
	old := usedAgain(replicaSet("a", 1, 0, 1), 3, "1")
	s.put(replicaSets+"/a", old)
	s.put(ofWeb, appsv1.ReplicaSetList{Items: []appsv1.ReplicaSet{old, replicaSet("b", 2, 100, 1)}})
	s.put(theWorkload, metav1.PartialObjectMetadata{})
	late := s.ask(t, scaled("a", 1))
	assert.True(t, late == nil || late.Changes == nil)
	s.age()
	got := s.ask(t, scaled("a", 150))
	require.NotNil(t, got)
	assert.Equal(t, []string{"image app: app:b → app:a"}, got.Changes)
	s.age()
	assert.Nil(t, s.ask(t, scaled("a", 151)), "once")
}

func TestALateEventOfARevisionThatWasComparedSaysNothing(t *testing.T) {
	s := newServer(t)
	a := replicaSet("a", 1, 0, 1)
	s.put(theWorkload, metav1.PartialObjectMetadata{})
	put := func(sets ...appsv1.ReplicaSet) {
		s.put(replicaSets+"/a", sets[0])
		s.put(ofWeb, appsv1.ReplicaSetList{Items: sets})
	}
	put(a)
	require.NotNil(t, s.ask(t, scaled("a", 1)))
	s.age()
	put(usedAgain(a, 3, "1"), replicaSet("b", 2, 100, 1))
	for range 2 {
		assert.Nil(t, s.ask(t, scaled("a", 2)))
		s.age()
	}
	got := s.ask(t, scaled("a", 150))
	require.NotNil(t, got)
	assert.Equal(t, []string{"image app: app:b → app:a"}, got.Changes)
}

func managed(manager string, seconds int, subresource, fields string) metav1.ManagedFieldsEntry {
	time := at(seconds)
	owned := &metav1.FieldsV1{}
	owned.SetRawBytes([]byte(fields))
	return metav1.ManagedFieldsEntry{Manager: manager, Time: &time, Subresource: subresource, FieldsV1: owned}
}

const ofTemplate = `{"f:spec":{"f:template":{"f:spec":{}}}}`

func TestByWhichToolAndWhom(t *testing.T) {
	for name, tt := range map[string]struct {
		workload metav1.ObjectMeta
		by, who  string
	}{
		"Argo CD, annotation":                       {metav1.ObjectMeta{Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "front:apps/Deployment:shop/web"}}, "application.argoproj.io/front", ""},
		"Argo CD, the annotation of another object": {metav1.ObjectMeta{Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "front:apps/Deployment:shop/api"}}, "", ""},
		"Argo CD, label": {metav1.ObjectMeta{
			Labels:        map[string]string{"app.kubernetes.io/instance": "front"},
			ManagedFields: []metav1.ManagedFieldsEntry{managed("argocd-controller", 59, "", ofTemplate)},
		}, "application.argoproj.io/front", "argocd-controller"},
		"a label that everybody sets": {metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/instance": "front"}}, "", ""},
		"Flux, Kustomization":         {metav1.ObjectMeta{Labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps"}}, "kustomization.kustomize.toolkit.fluxcd.io/apps", ""},
		"Flux, HelmRelease": {metav1.ObjectMeta{
			Labels:      map[string]string{"helm.toolkit.fluxcd.io/name": "web"},
			Annotations: map[string]string{"meta.helm.sh/release-name": "shop-web"},
		}, "helmrelease.helm.toolkit.fluxcd.io/web", ""},
		"Helm": {metav1.ObjectMeta{Annotations: map[string]string{"meta.helm.sh/release-name": "web"}}, "helm/web", ""},
		"kubectl edit after a tool": {metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
			managed("helm", 1, "", ofTemplate),
			managed("kubectl-edit", 60, "", ofTemplate),
			managed("kube-controller-manager", 90, "status", `{"f:status":{}}`),
			managed("kube-controller-manager", 91, "", `{"f:metadata":{"f:annotations":{}}}`),
			managed("kubectl", 92, "scale", `{"f:spec":{"f:replicas":{}}}`),
			managed("keda", 93, "", `{"f:spec":{"f:replicas":{}}}`),
		}}, "", "kubectl-edit"},
		"in any order": {metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
			managed("kubectl-edit", 60, "", ofTemplate), managed("helm", 55, "", ofTemplate),
		}}, "", "kubectl-edit"},
		"the change of the revision was taken back": {metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{managed("helm", 39, "", ofTemplate)}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.put(replicaSets+"/a", replicaSet("a", 1, 60, 1))
			s.put(ofWeb, appsv1.ReplicaSetList{Items: []appsv1.ReplicaSet{replicaSet("a", 1, 60, 1)}})
			tt.workload.Namespace, tt.workload.Name = "shop", "web"
			s.put(theWorkload, metav1.PartialObjectMetadata{ObjectMeta: tt.workload})
			got := s.ask(t, scaled("a", 61))
			require.NotNil(t, got)
			assert.Empty(t, got.Resolution)
			assert.Equal(t, tt.by, got.DeployedBy)
			assert.Equal(t, tt.who, got.ChangedBy)
			assert.Equal(t, tt.who == "", got.ChangedAt.IsZero())
		})
	}
}

// createdPod is the event of a StatefulSet that creates a pod.
func createdPod(seconds int) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "shop", Name: "web", UID: "web-uid"},
		Reason:         "SuccessfulCreate", Message: "create Pod web-0 in StatefulSet web successful", LastTimestamp: at(seconds),
	}
}

func revisionOf(number int64, createdAt int) appsv1.ControllerRevision {
	return appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("web-", number), CreationTimestamp: at(createdAt), OwnerReferences: []metav1.OwnerReference{{UID: "web-uid"}}},
		Revision:   number,
		Data:       runtime.RawExtension{Raw: fmt.Appendf(nil, `{"spec":{"template":{"$patch":"replace","spec":{"containers":[{"name":"app","image":"app:%d"}]}}}}`, number)},
	}
}

func TestTheFirstRecordOfANewRevisionOfAStatefulSetSaysWhatChanged(t *testing.T) {
	for name, tt := range map[string]struct {
		ev              *corev1.Event
		current, update string
		want            bool
	}{
		"a new revision":                   {createdPod(101), "web-1", "web-2", true},
		"a rollout that takes hours":       {createdPod(9000), "web-1", "web-2", true},
		"a pod of an old revision is lost": {createdPod(9000), "web-2", "web-2", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.put(inStatefulSet, appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-uid", Generation: 7},
				Spec:       appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
				Status:     appsv1.StatefulSetStatus{CurrentRevision: tt.current, UpdateRevision: tt.update},
			})
			s.put(ofRevisions, appsv1.ControllerRevisionList{Items: []appsv1.ControllerRevision{revisionOf(2, 100), revisionOf(1, 0)}})
			got := s.ask(t, tt.ev)
			if !tt.want {
				assert.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			assert.Equal(t, []string{"image app: app:1 → app:2"}, got.Changes)
			assert.Nil(t, s.ask(t, tt.ev))
			assert.Len(t, s.sent(), 2, "it is not read again within two seconds")
		})
	}
}

// TestAPodOfTheRevisionBeforeDuringARollout is created again, because its node is lost.
func TestAPodOfTheRevisionBeforeDuringARollout(t *testing.T) {
	s := newServer(t)
	s.put(inStatefulSet, appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-uid", Generation: 7},
		Spec:       appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     appsv1.StatefulSetStatus{CurrentRevision: "web-2", UpdateRevision: "web-3"},
	})
	s.put(ofRevisions, appsv1.ControllerRevisionList{Items: []appsv1.ControllerRevision{revisionOf(3, 400), revisionOf(2, 100), revisionOf(1, 0)}})
	assert.Nil(t, s.ask(t, createdPod(300)))
}

// numberedAgain makes a revision the newest again, as a rollback does. A time below 0: nobody noted when.
func numberedAgain(r appsv1.ControllerRevision, number int64, seconds int) appsv1.ControllerRevision {
	r.Revision = number
	if seconds >= 0 {
		r.ManagedFields = []metav1.ManagedFieldsEntry{managed("kube-controller-manager", seconds, "", `{"f:revision":{},"f:data":{}}`)}
	}
	return r
}

func TestAnEventOfAStatefulSetSaysWhatItsOwnRevisionChanged(t *testing.T) {
	first, second, third := revisionOf(1, 0), revisionOf(2, 100), revisionOf(3, 200)
	for name, tt := range map[string]struct {
		at        int
		revisions []appsv1.ControllerRevision
		want      string
	}{
		"read before the next revision":              {101, []appsv1.ControllerRevision{second, first}, "app:1 → app:2"},
		"read after the next revision":               {101, []appsv1.ControllerRevision{third, second, first}, "app:1 → app:2"},
		"the next revision comes within the second":  {199, []appsv1.ControllerRevision{third, second, first}, ""},
		"of a revision that is not new any more":     {150, []appsv1.ControllerRevision{third, revisionOf(2, 20), first}, ""},
		"of the first revision":                      {1, []appsv1.ControllerRevision{second, first}, ""},
		"of a workload that was there before":        {50, []appsv1.ControllerRevision{third, second}, ""},
		"of a revision that was rolled back":         {101, []appsv1.ControllerRevision{numberedAgain(first, 3, 150), second}, ""},
		"of a rollback":                              {151, []appsv1.ControllerRevision{numberedAgain(first, 3, 150), second}, "app:2 → app:1"},
		"of a rollback, nobody noted when it was":    {151, []appsv1.ControllerRevision{numberedAgain(first, 3, -1), second}, ""},
		"the revision before it is deleted":          {201, []appsv1.ControllerRevision{third, first}, ""},
		"read after a rollback to the one before it": {101, []appsv1.ControllerRevision{numberedAgain(second, 4, 300), third, first}, ""},
		"of the revision after a rollback":           {400, []appsv1.ControllerRevision{revisionOf(4, 399), numberedAgain(first, 3, 150), second}, "app:1 → app:4"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.put(inStatefulSet, appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-uid", Generation: 7},
				Spec:       appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			})
			s.put(ofRevisions, appsv1.ControllerRevisionList{Items: tt.revisions})
			got := s.ask(t, createdPod(tt.at))
			if tt.want == "" {
				assert.True(t, got == nil || got.Changes == nil, "%+v", got)
				return
			}
			require.NotNil(t, got)
			assert.Equal(t, []string{"image app: " + tt.want}, got.Changes)
		})
	}
}

func TestALateEventTakesNothingFromTheNextRevision(t *testing.T) {
	s := newServer(t)
	s.put(inStatefulSet, appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-uid", Generation: 7, ManagedFields: []metav1.ManagedFieldsEntry{managed("helm", 200, "", ofTemplate)}},
		Spec:       appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	})
	s.put(ofRevisions, appsv1.ControllerRevisionList{Items: []appsv1.ControllerRevision{revisionOf(3, 200), revisionOf(2, 100), revisionOf(1, 0)}})
	all := []observation.Observation{{Event: createdPod(101)}, {Event: createdPod(102)}, {Event: createdPod(201)}, {Event: createdPod(202)}}
	s.Add(t.Context(), all)
	require.NotNil(t, all[0].Details)
	assert.Equal(t, []string{"image app: app:1 → app:2"}, all[0].Details.Changes)
	assert.Empty(t, all[0].Details.ChangedBy, "the last change of the StatefulSet came after the Event")
	assert.Nil(t, all[1].Details)
	require.NotNil(t, all[2].Details)
	assert.Equal(t, []string{"image app: app:2 → app:3"}, all[2].Details.Changes)
	assert.Equal(t, "helm", all[2].Details.ChangedBy)
	assert.Nil(t, all[3].Details)
}

func TestARevisionThatMayNotBeReadSaysSo(t *testing.T) {
	for name, tt := range map[string]struct {
		ev        *corev1.Event
		forbidden string
	}{
		"a ReplicaSet":                   {scaled("b", 101), replicaSets + "/b"},
		"the ReplicaSet before it":       {scaled("b", 101), ofWeb},
		"its Deployment":                 {scaled("b", 101), theWorkload},
		"a StatefulSet":                  {createdPod(101), inStatefulSet},
		"the revisions of a StatefulSet": {createdPod(101), ofRevisions},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			a, b := replicaSet("a", 1, 0, 1), replicaSet("b", 2, 100, 1)
			s.put(replicaSets+"/b", b)
			s.put(ofWeb, appsv1.ReplicaSetList{Items: []appsv1.ReplicaSet{a, b}})
			s.put(theWorkload, metav1.PartialObjectMetadata{})
			s.put(inStatefulSet, appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-uid", Generation: 7},
				Spec:       appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			})
			s.put(ofRevisions, appsv1.ControllerRevisionList{Items: []appsv1.ControllerRevision{revisionOf(2, 100), revisionOf(1, 0)}})
			s.put(tt.forbidden, http.StatusForbidden)
			got := s.ask(t, tt.ev)
			require.NotNil(t, got)
			assert.Equal(t, resolver.ResolutionForbidden, got.Resolution)
			assert.Len(t, s.forbidden, 1)
		})
	}
}

// TestWhoBeganARevision is who changed the template just before, however late the Event comes.
func TestWhoBeganARevision(t *testing.T) {
	for name, tt := range map[string]struct {
		changed, at int
		want        string
	}{
		"a first Event":                          {59, 61, "kubectl-edit"},
		"a later Event":                          {59, 100, "kubectl-edit"},
		"another change before the Event":        {70, 75, ""},
		"the controller needed ten seconds":      {50, 61, "kubectl-edit"},
		"the change that began it was long gone": {49, 61, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			b := replicaSet("b", 2, 60, 1)
			s.put(replicaSets+"/b", b)
			s.put(ofWeb, appsv1.ReplicaSetList{Items: []appsv1.ReplicaSet{replicaSet("a", 1, 0, 1), b}})
			s.put(theWorkload, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				ManagedFields: []metav1.ManagedFieldsEntry{managed("kubectl-edit", tt.changed, "", ofTemplate)},
			}})
			got := s.ask(t, scaled("b", tt.at))
			require.NotNil(t, got)
			assert.Equal(t, tt.want, got.ChangedBy)
		})
	}
}

// TestOnlyADeploymentIsReadForItsReplicaSet: of the kinds of other tools, the account may have no rights.
func TestOnlyADeploymentIsReadForItsReplicaSet(t *testing.T) {
	for _, owner := range []metav1.OwnerReference{
		{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout"}, {APIVersion: "example.com/v1", Kind: "Deployment"}, {APIVersion: "apps/v1", Kind: "Other"},
	} {
		s := newServer(t)
		owner.Name, owner.UID, owner.Controller = "web", "web-uid", new(true)
		a, b := replicaSet("a", 1, 0, 1), replicaSet("b", 2, 100, 1)
		a.OwnerReferences, b.OwnerReferences = []metav1.OwnerReference{owner}, []metav1.OwnerReference{owner}
		s.put(replicaSets+"/b", b)
		s.put(ofWeb, appsv1.ReplicaSetList{Items: []appsv1.ReplicaSet{a, b}})
		got := s.ask(t, scaled("b", 101))
		require.NotNil(t, got)
		assert.Equal(t, &observation.Details{Changes: []string{"image app: app:a → app:b"}}, got)
		assert.Equal(t, []string{replicaSets + "/b", ofWeb}, s.sent(), owner.Kind)
	}
}

func TestWhichChangesOfAConfigMapAreMeant(t *testing.T) {
	const by = "configmap settings changed at 2026-11-28T14:00:00Z by "
	for name, one := range map[string]struct {
		manager string
		created int // seconds before the change
		at      int // of the container's end, in seconds after it
		want    string
	}{
		"a lock that a leader had long ago":   {"lock", 600, 90, ""},
		"an edit, at once":                    {"kubectl-edit", 600, 20, by + "kubectl-edit"},
		"a deployment, at once":               {"argocd-controller", 600, 20, by + "argocd-controller"},
		"one by a program, which may go on":   {"operator", 600, 20, ""},
		"one by a program, after a minute":    {"operator", 600, 60, by + "operator"},
		"one that was only created":           {"kubectl", 0, 20, "configmap settings created at 2026-11-28T14:00:00Z by kubectl"},
		"one that was created with the edit":  {"kubectl-edit", 2, 20, by + "kubectl-edit"},
		"one that a program has just created": {"operator", 1, 20, "configmap settings created at 2026-11-28T14:00:00Z by operator"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(c *Settings) { c.ConfigMaps = true })
			pod := webPod(waiting("20s"), lastEnded(one.at-10, one.at))
			pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}}
			s.put(podPath, pod)
			changed := managed(one.manager, 0, "", `{"f:data":{}}`)
			var annotations map[string]string
			if one.manager == "lock" {
				annotations = map[string]string{leaderAnnotation: "{}"}
			}
			s.put("/api/v1/namespaces/shop/configmaps/settings", metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Annotations:       annotations,
				CreationTimestamp: metav1.NewTime(changed.Time.Add(-time.Duration(one.created) * time.Second)),
				ManagedFields:     []metav1.ManagedFieldsEntry{changed},
			}})
			assert.Equal(t, one.want, strings.Join(s.ask(t, restart("BackOff", one.at+1, 1)).ConfigMaps, "; "))
		})
	}
}

func TestTheConfigMapThatChangedLast(t *testing.T) {
	pod := webPod(waiting("20s"), lastEnded(0, 20))
	pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "env"}}}}
	for _, name := range []string{"files", "lock", "optional", "replicated"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}})
	}
	s := newServer(t, func(c *Settings) { c.ConfigMaps = true })
	s.put(podPath, pod)
	put := func(name string, seconds int, manager, fields string, annotations map[string]string) {
		s.put("/api/v1/namespaces/shop/configmaps/"+name, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), Annotations: annotations,
			ManagedFields: []metav1.ManagedFieldsEntry{managed(manager, seconds, "", fields)},
		}})
	}
	const data = `{"f:data":{"f:key":{}}}`
	put("env", 3, "helm", data, nil)
	put("files", 5, "kubectl-edit", data, nil)
	put("lock", 19, "leader", data, map[string]string{leaderAnnotation: "{}"})
	put("replicated", 18, "labeler", `{"f:metadata":{}}`, nil)
	got := s.ask(t, restart("BackOff", 21, 1))
	assert.Empty(t, got.Resolution)
	assert.Equal(t, []string{"configmap files changed at 2026-11-28T14:00:05Z by kubectl-edit"}, got.ConfigMaps)

	s.age()
	put("files", 40, "heartbeat", data, nil)
	pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = killed(30, 50)
	s.put(podPath, pod)
	got = s.ask(t, restart("BackOff", 51, 2))
	assert.Equal(t, []string{"configmap env changed at 2026-11-28T14:00:03Z by helm"}, got.ConfigMaps, "one that changes all the time is not meant")

	s.put("/api/v1/namespaces/shop/configmaps/env", http.StatusForbidden)
	s.age()
	pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = killed(60, 80)
	s.put(podPath, pod)
	got = s.ask(t, restart("BackOff", 81, 3))
	assert.Equal(t, resolver.ResolutionForbidden, got.Resolution)
	assert.NotNil(t, got.Ended, "why the container ended is known all the same")
}
