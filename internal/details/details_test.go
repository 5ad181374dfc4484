// SPDX-License-Identifier: Apache-2.0

package details

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is when the tests' first container starts.
var start = time.Date(2026, 11, 28, 14, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(start.Add(time.Duration(seconds) * time.Second))
}

// server is an API server that answers paths with objects, or with failures.
type server struct {
	*httptest.Server
	*Details

	mu        sync.Mutex
	answers   map[string]any // by path; an int is a status
	requests  []string
	queries   []url.Values // of the lists
	accepted  []string     // content types, of each request
	forbidden []string
	counted   []bool        // of each read that was counted, whether there was an answer
	hang      chan struct{} // nil: nothing hangs
}

func (s *server) LookupDone(err error, _ time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted = append(s.counted, err == nil)
}

func (s *server) Forbidden(verb string, resource schema.GroupResource, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forbidden = append(s.forbidden, verb+" "+resource.String()+" in "+namespace)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	path := r.URL.Path
	if selector := r.URL.Query().Get("labelSelector"); selector != "" {
		path += "?" + selector
		s.queries = append(s.queries, r.URL.Query())
	}
	s.requests, s.accepted = append(s.requests, path), append(s.accepted, r.Header.Get("Accept"))
	found, hang := s.answers[path], s.hang
	s.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	status, isStatus := found.(int)
	if found == nil {
		status, isStatus = http.StatusNotFound, true
	}
	if isStatus {
		w.WriteHeader(status)
		found = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(status), Reason: map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound}[status]}
	}
	_ = json.NewEncoder(w).Encode(found)
}

func newServer(t *testing.T, change ...func(*Settings)) *server {
	t.Helper()
	s := &server{answers: map[string]any{}}
	s.Server = httptest.NewServer(s)
	settings := Settings{ContainerStatus: true, TemplateChanges: true, Timeout: 5 * time.Second, Observer: s}
	for _, c := range change {
		c(&settings)
	}
	var err error
	s.Details, err = New(&rest.Config{Host: s.URL}, settings)
	require.NoError(t, err)
	t.Cleanup(func() {
		s.Details.Close()
		s.Server.Close()
	})
	return s
}

func (s *server) put(path string, answer any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = answer
}

// ask returns what is added to one Event.
func (s *server) ask(t *testing.T, ev *corev1.Event) *observation.Details {
	t.Helper()
	all := []observation.Observation{{Event: ev}}
	s.Add(t.Context(), all)
	return all[0].Details
}

// sent returns the requests since the last call.
func (s *server) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.requests
	s.requests = nil
	return sent
}

const podPath = "/api/v1/namespaces/shop/pods/web-1"

// restart is a kubelet's event about the container app of the pod web-1.
func restart(reason string, seconds, count int) *corev1.Event {
	message := map[string]string{
		"BackOff": "Back-off restarting failed container app in pod web-1_shop(web-uid)",
		"Started": "Started container app", "Created": "Created container: app",
	}[reason]
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: "web-1." + reason},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-1", UID: "web-uid", FieldPath: "spec.containers{app}"},
		Reason:         reason, Message: message, Count: int32(count), LastTimestamp: at(seconds),
	}
}

// webPod is the pod with the state of its container, which the following functions make.
func webPod(states ...func(*corev1.ContainerStatus)) corev1.Pod {
	status := corev1.ContainerStatus{Name: "app"}
	for _, state := range states {
		state(&status)
	}
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "web-uid"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "s3cret"}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: *quantity("64Mi")}},
		}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}},
	}
}

func running(since int) func(*corev1.ContainerStatus) {
	return func(s *corev1.ContainerStatus) { s.State.Running = &corev1.ContainerStateRunning{StartedAt: at(since)} }
}

func killed(from, to int) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137, StartedAt: at(from), FinishedAt: at(to)}
}

func ended(from, to int) func(*corev1.ContainerStatus) {
	return func(s *corev1.ContainerStatus) { s.State.Terminated = killed(from, to) }
}

func lastEnded(from, to int) func(*corev1.ContainerStatus) {
	return func(s *corev1.ContainerStatus) {
		s.LastTerminationState.Terminated, s.RestartCount = killed(from, to), 3
	}
}

func failedStart(seconds int) func(*corev1.ContainerStatus) {
	return func(s *corev1.ContainerStatus) {
		s.State.Terminated = &corev1.ContainerStateTerminated{Reason: "StartError", StartedAt: metav1.NewTime(time.Unix(0, 0)), FinishedAt: at(seconds)}
	}
}

func restarted(s *corev1.ContainerStatus) { s.RestartCount = 1 }

func waiting(pause string) func(*corev1.ContainerStatus) {
	return func(s *corev1.ContainerStatus) {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off " + pause + " restarting failed container=app pod=web-1_shop(web-uid)"}
	}
}

func waitingForNothing(s *corev1.ContainerStatus) {
	s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
}

func TestTheEndIsThatOfTheRunBeforeTheEvent(t *testing.T) {
	for name, tt := range map[string]struct {
		ev  *corev1.Event
		pod corev1.Pod
		end int // when the run ended; 0: the status shows another run, or may be older; -1: also of a known pod
	}{
		"a back-off":                                             {restart("BackOff", 21, 1), webPod(waiting("20s"), lastEnded(0, 20)), 20},
		"a back-off, status before the pause":                    {restart("BackOff", 21, 1), webPod(ended(0, 20), restarted), 20},
		"a back-off, status of the run that ends":                {restart("BackOff", 40, 2), webPod(running(10), lastEnded(0, 5)), 0},
		"a back-off, status of the pause before the run":         {restart("BackOff", 50, 2), webPod(waiting("20s"), lastEnded(0, 20)), 0},
		"a back-off, when the pause of the status ends":          {restart("BackOff", 40, 2), webPod(waiting("20s"), lastEnded(0, 20)), 0},
		"a back-off, in the second of the next run":              {restart("BackOff", 40, 2), webPod(waiting("40s"), lastEnded(40, 40)), 0},
		"a back-off, in the second of the next run, no pause":    {restart("BackOff", 40, 2), webPod(ended(40, 40), lastEnded(0, 20)), 0},
		"a back-off, in the second of the next run, which runs":  {restart("BackOff", 40, 2), webPod(running(40), lastEnded(0, 20)), 0},
		"a back-off, in the second of a run that was before":     {restart("BackOff", 40, 2), webPod(running(80), lastEnded(40, 40)), 0},
		"the first back-off, in the second of its run":           {restart("BackOff", 40, 1), webPod(waiting("10s"), lastEnded(40, 40), restarted), 40},
		"the first back-off, in the second of its run, no pause": {restart("BackOff", 40, 1), webPod(ended(40, 40), lastEnded(0, 20), restarted), 40},
		"a back-off, in the second of the end":                   {restart("BackOff", 40, 2), webPod(waiting("40s"), lastEnded(39, 40)), 40},
		"a back-off after a long run, status of the long run":    {restart("BackOff", 903, 2), webPod(ended(0, 900), lastEnded(-50, -20)), 0},
		"a back-off, the container runs again":                   {restart("BackOff", 21, 2), webPod(running(40), lastEnded(0, 20)), 20},
		"a back-off, two runs later":                             {restart("BackOff", 21, 2), webPod(running(100), lastEnded(40, 60)), 0},
		"the first restart":                                      {restart("Started", 21, 2), webPod(ended(0, 20)), 20},
		"the first restart, reported late":                       {restart("Started", 28, 2), webPod(ended(0, 20)), 20},
		"the first restart, its run has ended, too":              {restart("Started", 25, 2), webPod(ended(24, 24), restarted, lastEnded(0, 18)), 18},
		"the first restart, the pause after its run":             {restart("Started", 25, 2), webPod(waiting("10s"), lastEnded(24, 24)), 0},
		"a restart, status after the start":                      {restart("Started", 40, 2), webPod(running(40), lastEnded(0, 20)), 20},
		"a restart, reported late":                               {restart("Started", 45, 2), webPod(running(40), lastEnded(0, 20)), 20},
		"a restart, status of the pause before":                  {restart("Started", 40, 2), webPod(waiting("20s"), lastEnded(0, 20)), 20},
		"a restart, its run has ended, too":                      {restart("Started", 40, 2), webPod(ended(40, 44), lastEnded(0, 20)), 20},
		"a restart, status of the run that ends":                 {restart("Started", 40, 2), webPod(running(10), lastEnded(0, 5)), 0},
		"a restart long after the pause of the status":           {restart("Started", 90, 2), webPod(waiting("20s"), lastEnded(0, 20)), 0},
		"a restart after a long run, reported at once":           {restart("Started", 901, 2), webPod(ended(0, 900), lastEnded(-50, -20)), 900},
		"a start, its run has ended within the second":           {restart("Started", 40, 2), webPod(running(50), lastEnded(40, 40)), 0},
		"a start, the next run has ended, too":                   {restart("Started", 40, 2), webPod(ended(50, 50), lastEnded(40, 40)), 0},
		"a creation whose start failed":                          {restart("Created", 40, 2), webPod(failedStart(40), lastEnded(0, 20)), 20},
		"the first start, its run has ended":                     {restart("Started", 40, 1), webPod(ended(40, 40)), -1},
		"the first start, its run has ended, the next runs":      {restart("Started", 40, 1), webPod(running(40), lastEnded(40, 40), restarted), -1},
		"the second start, the first run was short":              {restart("Started", 40, 2), webPod(running(40), lastEnded(40, 40), restarted), 40},
		"the first back-off, status of the first end":            {restart("BackOff", 23, 1), webPod(ended(0, 20)), 0},
		"a back-off, status of the end before":                   {restart("BackOff", 42, 2), webPod(ended(0, 20), restarted), 0},
		"the first start":                                        {restart("Started", 1, 2), webPod(running(1)), 0},
		"a back-off, ten seconds after the end of the status":    {restart("BackOff", 30, 2), webPod(ended(0, 20), restarted), 0},
		"a back-off, nine seconds after the end of the status":   {restart("BackOff", 29, 2), webPod(ended(0, 20), restarted), 20},
		"a back-off, status without states":                      {restart("BackOff", 30, 2), webPod(func(s *corev1.ContainerStatus) { s.RestartCount = 3 }), 0},
		"a status without states":                                {restart("Started", 1, 2), webPod(), 0},
		"a back-off whose pause the status does not say":         {restart("BackOff", 29, 2), webPod(waitingForNothing, lastEnded(0, 20)), 20},
		"a back-off after a pause that the status does not say":  {restart("BackOff", 30, 2), webPod(waitingForNothing, lastEnded(0, 20)), 0},
		"an end without a time": {restart("BackOff", 21, 1), webPod(waiting("20s"), func(s *corev1.ContainerStatus) {
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{}
		}), 0},
		"a program that never started (start at the epoch)": {restart("BackOff", 21, 1), webPod(waiting("20s"), func(s *corev1.ContainerStatus) {
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "StartError", ExitCode: 128, StartedAt: metav1.NewTime(time.Unix(0, 0)), FinishedAt: at(20)}
		}), 20},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.put(podPath, tt.pod)
			if tt.end < 0 { // The pod is known, because another of its containers has ended.
				s.pods.Add(types.NamespacedName{Namespace: "shop", Name: "web-1"}, &pod{podMetadata: podMetadata{UID: "web-uid"}})
			}
			got := s.ask(t, tt.ev)
			require.NotNil(t, got)
			assert.Empty(t, got.Resolution)
			if tt.end <= 0 {
				assert.Nil(t, got.Ended)
				return
			}
			require.NotNil(t, got.Ended)
			assert.Equal(t, at(tt.end).Time, got.Ended.FinishedAt.UTC())
			assert.EqualValues(t, 64<<20, got.Ended.MemoryLimit)
		})
	}
}

func TestEventsThatCallForNoDetails(t *testing.T) {
	image := restart("BackOff", 1, 5)
	image.Message = `Back-off pulling image "web:1"`
	foreign := restart("BackOff", 1, 5)
	foreign.Namespace = "tenant-b"
	killing := restart("Killing", 1, 2)
	sandbox := restart("Created", 1, 2)
	sandbox.InvolvedObject.FieldPath = ""
	completed := restart("Completed", 1, 1)
	completed.InvolvedObject.Kind = "Job"
	deletion := createdPod(1)
	deletion.Reason = "SuccessfulDelete"
	said := restart("ScalingReplicaSet", 1, 1)
	said.InvolvedObject.Kind, said.Reason, said.Message = "Deployment", "Note", "Scaled up replica set web-5d from 0 to 1"
	scaledDown := restart("ScalingReplicaSet", 1, 1)
	scaledDown.InvolvedObject.Kind, scaledDown.Message = "Deployment", "Scaled down replica set web-5d to 0 from 1"
	for name, ev := range map[string]*corev1.Event{
		"a back-off of an image":          image,
		"the first start of a container":  restart("Started", 1, 1),
		"an Event of another namespace":   foreign,
		"a container that is being ended": killing,
		"an Event of no container":        sandbox,
		"a Job that has not failed":       completed,
		"a deletion by a StatefulSet":     deletion,
		"the words of a scale-up":         said,
		"a scale-down":                    scaledDown,
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			assert.Nil(t, s.ask(t, ev))
			assert.Empty(t, s.sent())
		})
	}
}

func TestAnObjectIsReadAboutOnceForEachRestart(t *testing.T) {
	s := newServer(t)
	s.put(podPath, webPod(waiting("20s"), lastEnded(0, 20)))
	both := []observation.Observation{{Event: restart("BackOff", 21, 1)}, {Event: restart("BackOff", 22, 2)}}
	s.Add(t.Context(), both)
	assert.Len(t, s.sent(), 1, "the Events of one batch share a read")
	assert.NotNil(t, both[1].Details.Ended)
	s.age()
	assert.NotNil(t, s.ask(t, restart("BackOff", 35, 3)).Ended)
	assert.NotNil(t, s.ask(t, restart("Started", 41, 1)).Ended, "also one whose count has begun again")
	assert.Empty(t, s.sent(), "within the pause after the end, nothing else can have ended")
	assert.Nil(t, s.ask(t, restart("BackOff", 40, 3)).Ended, "when the pause ends, another run may have ended")
	assert.Len(t, s.sent(), 1)
	s.age()
	s.put(podPath, webPod(waiting("40s"), lastEnded(41, 50)))
	assert.Equal(t, at(50).Time, s.ask(t, restart("BackOff", 52, 4)).Ended.FinishedAt.UTC())
	assert.Len(t, s.sent(), 1)
}

// TestAPodThatRanWhenItWasRead: a status that is older than the pause has nothing of it.
func TestAPodThatRanWhenItWasRead(t *testing.T) {
	for _, reason := range []string{"BackOff", "Started"} {
		s := newServer(t)
		s.put(podPath, webPod(running(30), lastEnded(0, 20)))
		require.NotNil(t, s.ask(t, restart("Started", 30, 2)).Ended, reason)
		s.age()
		s.put(podPath, webPod(waiting("40s"), lastEnded(30, 50)))
		seconds := map[string]int{"BackOff": 51, "Started": 90}[reason]
		assert.Equal(t, at(50).Time, s.ask(t, restart(reason, seconds, 3)).Ended.FinishedAt.UTC(), reason)
	}
}

// age lets no read be shared any more because it was just now.
func (s *server) age() {
	for _, known := range s.pods.Values() {
		known.readAt = time.Time{}
	}
	for _, name := range s.replicaSets.Keys() {
		known, _ := s.replicaSets.Get(name)
		known.readAt = time.Time{}
		s.replicaSets.Add(name, known)
	}
	for _, name := range s.configMaps.Keys() {
		known, _ := s.configMaps.Get(name)
		known.readAt = time.Time{}
		s.configMaps.Add(name, known)
	}
}

func TestDetailsThatDoNotCome(t *testing.T) {
	for name, tt := range map[string]struct {
		answer any
		want   resolver.Resolution
	}{
		"forbidden":                {http.StatusForbidden, resolver.ResolutionForbidden},
		"not there":                {http.StatusNotFound, resolver.ResolutionNotFound},
		"a server in trouble":      {http.StatusInternalServerError, resolver.ResolutionUnavailable},
		"another pod of that name": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "other"}}, resolver.ResolutionNotFound},
		"no JSON of a pod":         {[]string{"?"}, resolver.ResolutionUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.put(podPath, tt.answer)
			got := s.ask(t, restart("BackOff", 1, 1))
			assert.Equal(t, tt.want, got.Resolution)
			assert.Nil(t, got.Ended)
		})
	}
}

func TestAMissingPermissionIsReportedAndNotTriedAgainAtOnce(t *testing.T) {
	s := newServer(t)
	s.put(podPath, http.StatusForbidden)
	for range 3 {
		assert.Equal(t, resolver.ResolutionForbidden, s.ask(t, restart("BackOff", 1, 1)).Resolution)
	}
	assert.Len(t, s.sent(), 1)
	assert.Equal(t, []string{"get pods in shop"}, s.forbidden)
}

func TestEachReadIsCounted(t *testing.T) {
	s := newServer(t)
	s.put(podPath, webPod(waiting("20s"), lastEnded(0, 20)))
	require.NotNil(t, s.ask(t, restart("BackOff", 21, 1)).Ended)
	missing := restart("BackOff", 21, 1)
	missing.InvolvedObject.Name = "web-2"
	s.ask(t, missing)
	assert.Equal(t, []bool{true, false}, s.counted)
}

func TestAServerThatHangsDelaysOneBatch(t *testing.T) {
	s := newServer(t, func(c *Settings) { c.Timeout = 50 * time.Millisecond })
	s.hang = make(chan struct{})
	assert.Equal(t, resolver.ResolutionTimeout, s.ask(t, restart("BackOff", 1, 1)).Resolution)
	s.sent()
	for range 5 {
		assert.Equal(t, resolver.ResolutionTimeout, s.ask(t, restart("BackOff", 1, 1)).Resolution)
	}
	assert.Empty(t, s.sent(), "later reads are answered at once")

	s.mu.Lock()
	close(s.hang)
	s.hang = nil
	s.mu.Unlock()
	s.put(podPath, webPod(waiting("20s"), lastEnded(0, 20)))
	s.reader.breakers[schema.GroupResource{Resource: "pods"}].retryAt = time.Now()
	require.Eventually(t, func() bool { return s.ask(t, restart("BackOff", 21, 1)).Resolution == "" }, 10*time.Second, time.Millisecond,
		"a read in the background finds that it works again")
}

// TestAFailureOfLongAgoSaysNothing: the first read after a minute is sent.
func TestAFailureOfLongAgoSaysNothing(t *testing.T) {
	s := newServer(t)
	s.put(podPath, webPod(waiting("20s"), lastEnded(0, 20)))
	pods := schema.GroupResource{Resource: "pods"}
	for open, ago := range map[bool]time.Duration{true: openFor / 2, false: openFor + time.Second} {
		s.reader.breakers[pods] = &breaker{failures: failuresInARow, failure: resolver.ResolutionTimeout, retryAt: time.Now().Add(-ago)}
		s.pods.Purge()
		assert.Equal(t, open, s.ask(t, restart("BackOff", 21, 1)).Resolution == resolver.ResolutionTimeout)
		s.reader.trials.Wait()
	}
}

func TestReadsOfANamespaceAreLimited(t *testing.T) {
	s := newServer(t)
	var all []observation.Observation
	for i := range burst {
		ev := restart("BackOff", 21, 1)
		ev.InvolvedObject.Name = fmt.Sprint("web-", i)
		all = append(all, observation.Observation{Event: ev})
	}
	s.Add(t.Context(), all)
	assert.Less(t, len(s.sent()), burst*3/4)
	other := restart("BackOff", 21, 1)
	other.Namespace, other.InvolvedObject.Namespace = "other", "other"
	assert.Equal(t, resolver.ResolutionNotFound, s.ask(t, other).Resolution, "another namespace has its part")
}

func TestReadsOfAllNamespacesAreLimited(t *testing.T) {
	s := newServer(t)
	allowed := 0
	for i := range 4 * burst {
		if s.reader.refuses(path{version: "v1", resource: "pods", namespace: fmt.Sprint("shop-", i%40), name: "web"}) == "" {
			allowed++
		}
	}
	assert.GreaterOrEqual(t, allowed, burst)
	assert.Less(t, allowed, 2*burst, "of several namespaces together")
}

// TestFailuresWithAnAnswerBetweenThemStopNoReads, whatever the answer is: the API server is there.
func TestFailuresWithAnAnswerBetweenThemStopNoReads(t *testing.T) {
	for name, answer := range map[string]any{
		"an object": webPod(waiting("20s"), lastEnded(0, 20)), "not there": http.StatusNotFound, "forbidden": http.StatusForbidden, "rejected": http.StatusBadRequest,
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			n := 0
			read := func(answer any) {
				ev := restart("BackOff", 21, 1)
				n++
				ev.Namespace, ev.InvolvedObject.Namespace = fmt.Sprint("shop-", n), fmt.Sprint("shop-", n)
				s.put("/api/v1/namespaces/"+ev.Namespace+"/pods/web-1", answer)
				s.ask(t, ev)
				assert.Len(t, s.sent(), 1, "read %d", n)
			}
			for range failuresInARow - 1 {
				read(http.StatusInternalServerError)
			}
			read(answer)
			for range failuresInARow {
				read(http.StatusInternalServerError)
			}
		})
	}
}

func TestWhyAJobFailed(t *testing.T) {
	pod := func(name string, uid string, finished, code int) corev1.Pod {
		p := webPod(func(s *corev1.ContainerStatus) {
			s.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: int32(code), StartedAt: at(0), FinishedAt: at(finished)}
		})
		p.Name, p.Status.Phase = name, corev1.PodFailed
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "copy", UID: "job-uid"}}
		if uid != "" {
			p.OwnerReferences[0].UID = "other"
		}
		return p
	}
	running := pod("copy-6", "", 30, 6)
	running.Status.Phase = corev1.PodRunning
	s := newServer(t)
	s.put("/api/v1/namespaces/shop/pods?job-name=copy", corev1.PodList{Items: []corev1.Pod{
		pod("copy-1", "", 10, 1), pod("copy-2", "", 29, 2), pod("copy-3", "", 20, 3), pod("copy-4", "other", 30, 4), pod("copy-5", "", 90, 5),
		running, pod("copy-7", "", 30, 0),
	}})
	ev := restart("BackoffLimitExceeded", 31, 1)
	ev.InvolvedObject = corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "copy", UID: "job-uid"}
	got := s.ask(t, ev)
	require.NotNil(t, got.Ended)
	assert.EqualValues(t, 2, got.Ended.ExitCode, "the newest failure before the event")
	require.Len(t, s.queries, 1)
	assert.Equal(t, "status.phase=Failed", s.queries[0].Get("fieldSelector"))
	assert.Equal(t, maxItems, s.queries[0].Get("limit"))

	s = newServer(t)
	setup := pod("copy-1", "", 10, 0)
	setup.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7, FinishedAt: at(5)}}}}
	s.put("/api/v1/namespaces/shop/pods?job-name=copy", corev1.PodList{Items: []corev1.Pod{setup}})
	got = s.ask(t, ev)
	require.NotNil(t, got.Ended)
	assert.EqualValues(t, 7, got.Ended.ExitCode, "of the container that failed, and of none that did not")
}

func TestOnlyWhatIsSwitchedOnIsRead(t *testing.T) {
	job := restart("BackoffLimitExceeded", 31, 1)
	job.InvolvedObject = corev1.ObjectReference{Kind: "Job", Namespace: "shop", Name: "copy", UID: "job-uid"}
	mounts := webPod(waiting("20s"), lastEnded(0, 20))
	mounts.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}}
	const jobs, settings = "/api/v1/namespaces/shop/pods?job-name=copy", "/api/v1/namespaces/shop/configmaps/settings"
	for name, tt := range map[string]struct {
		settings Settings
		want     []string
	}{
		"why containers ended":              {Settings{ContainerStatus: true}, []string{podPath, jobs}},
		"what revisions changed":            {Settings{TemplateChanges: true}, []string{replicaSets + "/b", inStatefulSet}},
		"also which ConfigMap changed last": {Settings{ContainerStatus: true, ConfigMaps: true}, []string{podPath, settings, jobs}},
		"ConfigMaps of no container":        {Settings{ConfigMaps: true}, nil},
		"nothing":                           {Settings{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(c *Settings) {
				c.ContainerStatus, c.TemplateChanges, c.ConfigMaps = tt.settings.ContainerStatus, tt.settings.TemplateChanges, tt.settings.ConfigMaps
			})
			s.put(podPath, mounts)
			for _, ev := range []*corev1.Event{restart("BackOff", 21, 1), job, scaled("b", 101), createdPod(101)} {
				s.ask(t, ev)
			}
			assert.Equal(t, tt.want, s.sent())
		})
	}
}

// TestOfAConfigMapNoValueIsRead: the API server is asked for its metadata only.
func TestOfAConfigMapNoValueIsRead(t *testing.T) {
	s := newServer(t, func(c *Settings) { c.ConfigMaps = true })
	mounts := webPod(waiting("20s"), lastEnded(0, 20))
	mounts.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "URL", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "url",
	}}}}
	s.put(podPath, mounts)
	s.ask(t, restart("BackOff", 21, 1))
	require.Equal(t, []string{podPath, "/api/v1/namespaces/shop/configmaps/settings"}, s.sent())
	assert.Contains(t, s.accepted[1], "as=PartialObjectMetadata")
}

// TestTheFirstStartOfAPodWhoseNameIsKnown: a StatefulSet gives the names of its pods again.
func TestTheFirstStartOfAPodWhoseNameIsKnown(t *testing.T) {
	s := newServer(t)
	s.put(podPath, webPod(waiting("20s"), lastEnded(0, 20)))
	require.NotNil(t, s.ask(t, restart("BackOff", 21, 1)).Ended)
	s.sent()
	s.age()
	next := restart("Started", 60, 1)
	next.InvolvedObject.UID = "next-uid"
	assert.Nil(t, s.ask(t, next))
	assert.Empty(t, s.sent())
}

func TestEachContainerOfAPodHasItsOwnEnd(t *testing.T) {
	one := webPod(waiting("20s"), lastEnded(0, 20))
	limited := func(name, memory string) corev1.Container {
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: *quantity(memory)}}}
	}
	status := func(name string, code int32) corev1.ContainerStatus {
		s := corev1.ContainerStatus{Name: name, RestartCount: code}
		waiting("20s")(&s)
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: at(0), FinishedAt: at(20)}
		return s
	}
	one.Spec.Containers = []corev1.Container{limited("app", "1Mi"), limited("proxy", "2Mi")}
	one.Spec.InitContainers = []corev1.Container{limited("setup", "3Mi")}
	one.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
	one.Status.ContainerStatuses = []corev1.ContainerStatus{status("app", 1), status("proxy", 2)}
	one.Status.InitContainerStatuses = []corev1.ContainerStatus{status("setup", 3)}
	one.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{status("debug", 4)}
	s := newServer(t)
	s.put(podPath, one)
	for field, want := range map[string]observation.Termination{
		"spec.containers{app}":            {ExitCode: 1, Restarts: 1, MemoryLimit: 1 << 20},
		"spec.containers{proxy}":          {ExitCode: 2, Restarts: 2, MemoryLimit: 2 << 20},
		"spec.initContainers{setup}":      {ExitCode: 3, Restarts: 3, MemoryLimit: 3 << 20},
		"spec.ephemeralContainers{debug}": {ExitCode: 4, Restarts: 4},
	} {
		ev := restart("BackOff", 21, 1)
		ev.InvolvedObject.FieldPath = field
		got := s.ask(t, ev).Ended
		require.NotNil(t, got, field)
		got.StartedAt, got.FinishedAt = time.Time{}, time.Time{}
		assert.Equal(t, want, *got, field)
	}
	unknown := restart("BackOff", 21, 1)
	unknown.InvolvedObject.FieldPath = "spec.containers{other}"
	assert.Nil(t, s.ask(t, unknown).Ended)
}

// TestTheSignalOfAnExitCode: a shell, and a container runtime, add it to 128.
func TestTheSignalOfAnExitCode(t *testing.T) {
	for exit, want := range map[[2]int32]int32{
		{137, 0}: 9, {143, 0}: 15, {192, 0}: 64, {129, 0}: 1,
		{0, 0}: 0, {1, 0}: 0, {128, 0}: 0, {193, 0}: 0, {255, 0}: 0,
		{137, 15}: 15, {0, 9}: 9,
	} {
		got := (&pod{}).termination("app", 1, &endedRun{ExitCode: exit[0], Signal: exit[1]})
		assert.Equal(t, want, got.Signal, "%v", exit)
	}
}

func TestAConfigurationThatIsNotPossible(t *testing.T) {
	_, err := New(&rest.Config{Host: "https://api", TLSClientConfig: rest.TLSClientConfig{CAFile: "/nowhere/ca.crt"}}, Settings{ContainerStatus: true})
	assert.ErrorContains(t, err, "no client for details: ")
}

func TestDetailsThatAreSwitchedOff(t *testing.T) {
	var off *Details
	all := []observation.Observation{{Event: restart("BackOff", 21, 1)}}
	off.Add(t.Context(), all)
	assert.Nil(t, all[0].Details)
	off.Close()
}

func TestNothingOfAPodsEnvironmentIsKept(t *testing.T) {
	s := newServer(t)
	s.put(podPath, webPod(waiting("20s"), lastEnded(0, 20)))
	s.ask(t, restart("BackOff", 21, 1))
	for _, known := range s.pods.Values() {
		text, err := json.Marshal(known)
		require.NoError(t, err)
		assert.Contains(t, string(text), "web-1")
		assert.NotContains(t, string(text), "s3cret")
	}
}

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}
