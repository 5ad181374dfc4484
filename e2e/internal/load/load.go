// SPDX-License-Identifier: Apache-2.0

// Package load writes events to a cluster as recorders do, and knows how many occurrences there
// were.
package load

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// Load is what goes on in a cluster: recorders that write events of both styles and count their
// repeats. It knows the truth, because it never gives a write up: each is repeated until the API
// server has taken it.
type Load struct {
	Pause    time.Duration // between two writes of one recorder
	Keep     int           // how many events a recorder repeats at a time
	Fresh    int           // of ten writes, how many are of a new event
	Prefix   string        // of the events' names
	Vanishes bool          // the cluster loses the events; only what is delivered counts

	client    kubernetes.Interface
	namespace string

	stop context.CancelFunc
	done sync.WaitGroup

	held    atomic.Bool
	writing sync.RWMutex // read-locked during a write

	mu       sync.Mutex
	made     map[string]int64 // occurrences, by the event's name
	again    int              // events that had to be made again
	mistakes []error          // writes that cannot succeed, which are the test's fault
}

const recorders = 6

// Start starts the recorders. They end with the test at the latest. Options change the fields.
func Start(t testing.TB, client kubernetes.Interface, namespace string, options ...func(*Load)) *Load {
	t.Helper()
	l := &Load{client: client, namespace: namespace, Pause: 60 * time.Millisecond, Keep: 8, Fresh: 1, made: map[string]int64{}}
	for _, option := range options {
		option(l)
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	for i := range recorders {
		l.done.Go(func() { (&recorder{Load: l, id: i}).run(ctx) })
	}
	t.Cleanup(l.End)
	return l
}

// End stops the recorders; what they have begun to write is written.
func (l *Load) End() {
	l.stop()
	l.done.Wait()
}

// Hold waits for the writes that are under way. No other write begins until Release.
func (l *Load) Hold() {
	l.held.Store(true)
	l.writing.Lock()
	defer l.writing.Unlock()
}

// Release lets the recorders write again.
func (l *Load) Release() { l.held.Store(false) }

// Truth is how many occurrences of each event there were.
func (l *Load) Truth() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.made)
}

// Total is how many occurrences there were so far.
func (l *Load) Total() (sum int64) {
	for _, n := range l.Truth() {
		sum += n
	}
	return sum
}

// Remade is how many events had to be made again.
func (l *Load) Remade() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.again
}

// Grows waits until the load has made n more occurrences.
func (l *Load) Grows(t testing.TB, by int64) {
	t.Helper()
	goal := l.Total() + by
	harness.Eventually(t, func() bool { return l.Total() >= goal }, "%d more occurrences", by)
}

// Mistakes are the errors of writes that cannot succeed.
func (l *Load) Mistakes() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.mistakes)
}

func (l *Load) note(name string, count int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made[name] = count
}

// recorder is one producer. Even ones are of the old style (count), odd ones of the new (series).
type recorder struct {
	*Load
	id     int
	serial int
	recent []*repeated
}

// repeated is an event that a recorder counts up.
type repeated struct {
	name  string
	first time.Time
	count int64
}

func (r *recorder) run(ctx context.Context) {
	for ctx.Err() == nil {
		r.step()
		select {
		case <-ctx.Done():
		case <-time.After(r.Pause/2 + rand.N(r.Pause)):
		}
	}
}

// step writes once, unless the load is held.
func (r *recorder) step() {
	r.writing.RLock()
	defer r.writing.RUnlock()
	switch {
	case r.held.Load():
	case len(r.recent) < r.Keep || rand.IntN(10) < r.Fresh:
		r.begin()
	default:
		r.repeat(r.recent[rand.IntN(len(r.recent))])
	}
}

// begin records something new, and forgets the oldest event.
func (r *recorder) begin() {
	r.serial++
	e := &repeated{name: fmt.Sprintf("%spod-%d.%d", r.Prefix, r.id, r.serial), first: time.Now(), count: 1}
	r.write(e, func(ctx context.Context) error { return r.create(ctx, e) })
	r.recent = append(r.recent, e)
	r.recent = r.recent[max(0, len(r.recent)-r.Keep):]
}

// repeat raises the count of an event, sometimes by more than one, as a throttled recorder does.
// One that the API server no longer has is made again with the count that was reached, as recorders
// do.
func (r *recorder) repeat(e *repeated) {
	e.count += 1 + rand.Int64N(3)
	r.write(e, func(ctx context.Context) error {
		err := r.patch(ctx, e)
		if !apierrors.IsNotFound(err) {
			return err
		}
		r.mu.Lock()
		r.again++
		r.mu.Unlock()
		return r.create(ctx, e)
	})
}

// write tries until the API server has taken it, so that the truth is known even if an answer gets
// lost.
func (r *recorder) write(e *repeated, try func(context.Context) error) {
	_ = wait.PollUntilContextCancel(context.Background(), 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		err := try(ctx)
		if err == nil || apierrors.IsAlreadyExists(err) && e.count == 1 {
			r.note(e.name, e.count)
			return true, nil
		}
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			r.mu.Lock()
			r.mistakes = append(r.mistakes, err)
			r.mu.Unlock()
			return true, nil
		}
		return false, nil
	})
}

func (r *recorder) newStyle() bool { return r.id%2 == 1 }

func (r *recorder) create(ctx context.Context, e *repeated) error {
	meta := metav1.ObjectMeta{Name: e.name, Namespace: r.namespace}
	// Each event is about a pod of its own: dedup_interval would sum those of one pod.
	involved := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: r.namespace, Name: e.name, UID: types.UID("uid-" + e.name)}
	if !r.newStyle() {
		_, err := r.client.CoreV1().Events(r.namespace).Create(ctx, &corev1.Event{
			ObjectMeta: meta, InvolvedObject: involved, Reason: fmt.Sprintf("Reason%d", r.id), Type: corev1.EventTypeWarning, Message: e.name,
			Source: corev1.EventSource{Component: "faults"}, Count: int32(e.count),
			FirstTimestamp: metav1.NewTime(e.first), LastTimestamp: metav1.NewTime(time.Now()),
		}, metav1.CreateOptions{})
		return err
	}
	event := &eventsv1.Event{
		ObjectMeta: meta, Regarding: involved, Reason: fmt.Sprintf("Reason%d", r.id), Type: corev1.EventTypeNormal, Note: e.name,
		Action: "Breaking", ReportingController: "example.com/faults", ReportingInstance: "faults-1", EventTime: metav1.NewMicroTime(e.first),
	}
	if e.count > 1 {
		event.Series = &eventsv1.EventSeries{Count: int32(e.count), LastObservedTime: metav1.NewMicroTime(time.Now())}
	}
	_, err := r.client.EventsV1().Events(r.namespace).Create(ctx, event, metav1.CreateOptions{})
	return err
}

func (r *recorder) patch(ctx context.Context, e *repeated) error {
	if r.newStyle() {
		patch, _ := json.Marshal(map[string]any{"series": eventsv1.EventSeries{Count: int32(e.count), LastObservedTime: metav1.NewMicroTime(time.Now())}})
		_, err := r.client.EventsV1().Events(r.namespace).Patch(ctx, e.name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	patch, _ := json.Marshal(map[string]any{"count": e.count, "lastTimestamp": metav1.NewTime(time.Now())})
	_, err := r.client.CoreV1().Events(r.namespace).Patch(ctx, e.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
