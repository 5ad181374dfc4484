// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
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

// load is what goes on in a cluster: recorders that write events of both styles and count their
// repeats. It knows the truth, because it never gives a write up: each is repeated until the API
// server has taken it.
type load struct {
	client    kubernetes.Interface
	namespace string
	clockOff  time.Duration // how far the recorders' clocks are off
	pause     time.Duration // between two writes of one recorder
	keep      int           // how many events a recorder repeats at a time
	fresh     int           // of ten writes, how many are of a new event
	prefix    string        // of the events' names
	vanishes  bool          // the cluster loses the events; only what is delivered counts

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

func startLoad(t *testing.T, c *cluster, namespace string, options ...func(*load)) *load {
	t.Helper()
	l := &load{client: c, namespace: namespace, pause: 60 * time.Millisecond, keep: 8, fresh: 1, made: map[string]int64{}}
	for _, option := range options {
		option(l)
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	for i := range recorders {
		l.done.Go(func() { (&recorder{load: l, id: i}).run(ctx) })
	}
	t.Cleanup(l.end)
	return l
}

// end stops the recorders; what they have begun to write is written.
func (l *load) end() {
	l.stop()
	l.done.Wait()
}

// hold waits for the writes that are under way. No other write begins until release.
func (l *load) hold() {
	l.held.Store(true)
	l.writing.Lock()
	defer l.writing.Unlock()
}

func (l *load) release() { l.held.Store(false) }

// truth is how many occurrences of each event there were.
func (l *load) truth() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.made)
}

// total is how many occurrences there were so far.
func (l *load) total() (sum int64) {
	for _, n := range l.truth() {
		sum += n
	}
	return sum
}

// remade is how many events had to be made again.
func (l *load) remade() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.again
}

// grows waits until the load has made n more occurrences.
func (l *load) grows(t *testing.T, by int64) {
	t.Helper()
	goal := l.total() + by
	harness.Eventually(t, func() bool { return l.total() >= goal }, "%d more occurrences", by)
}

func (l *load) note(name string, count int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made[name] = count
}

// recorder is one producer. Even ones are of the old style (count), odd ones of the new (series).
type recorder struct {
	*load
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
		case <-time.After(r.pause/2 + rand.N(r.pause)):
		}
	}
}

// step writes once, unless the load is held.
func (r *recorder) step() {
	r.writing.RLock()
	defer r.writing.RUnlock()
	switch {
	case r.held.Load():
	case len(r.recent) < r.keep || rand.IntN(10) < r.fresh:
		r.begin()
	default:
		r.repeat(r.recent[rand.IntN(len(r.recent))])
	}
}

// begin records something new, and forgets the oldest event.
func (r *recorder) begin() {
	r.serial++
	e := &repeated{name: fmt.Sprintf("%spod-%d.%d", r.prefix, r.id, r.serial), first: r.now(), count: 1}
	r.write(e, func(ctx context.Context) error { return r.create(ctx, e) })
	r.recent = append(r.recent, e)
	r.recent = r.recent[max(0, len(r.recent)-r.keep):]
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

func (r *recorder) now() time.Time { return time.Now().Add(r.clockOff) }

func (r *recorder) newStyle() bool { return r.id%2 == 1 }

func (r *recorder) create(ctx context.Context, e *repeated) error {
	meta := metav1.ObjectMeta{Name: e.name, Namespace: r.namespace}
	involved := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: r.namespace, Name: fmt.Sprintf("pod-%d", r.id), UID: types.UID(fmt.Sprintf("uid-%d", r.id))}
	if !r.newStyle() {
		_, err := r.client.CoreV1().Events(r.namespace).Create(ctx, &corev1.Event{
			ObjectMeta: meta, InvolvedObject: involved, Reason: fmt.Sprintf("Reason%d", r.id), Type: corev1.EventTypeWarning, Message: e.name,
			Source: corev1.EventSource{Component: "faults"}, Count: int32(e.count),
			FirstTimestamp: metav1.NewTime(e.first), LastTimestamp: metav1.NewTime(r.now()),
		}, metav1.CreateOptions{})
		return err
	}
	event := &eventsv1.Event{
		ObjectMeta: meta, Regarding: involved, Reason: fmt.Sprintf("Reason%d", r.id), Type: corev1.EventTypeNormal, Note: e.name,
		Action: "Breaking", ReportingController: "example.com/faults", ReportingInstance: "faults-1", EventTime: metav1.NewMicroTime(e.first),
	}
	if e.count > 1 {
		event.Series = &eventsv1.EventSeries{Count: int32(e.count), LastObservedTime: metav1.NewMicroTime(r.now())}
	}
	_, err := r.client.EventsV1().Events(r.namespace).Create(ctx, event, metav1.CreateOptions{})
	return err
}

func (r *recorder) patch(ctx context.Context, e *repeated) error {
	if r.newStyle() {
		patch, _ := json.Marshal(map[string]any{"series": eventsv1.EventSeries{Count: int32(e.count), LastObservedTime: metav1.NewMicroTime(r.now())}})
		_, err := r.client.EventsV1().Events(r.namespace).Patch(ctx, e.name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	patch, _ := json.Marshal(map[string]any{"count": e.count, "lastTimestamp": metav1.NewTime(r.now())})
	_, err := r.client.CoreV1().Events(r.namespace).Patch(ctx, e.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
