// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// observer records the reports of a stream.
type observer struct {
	mu     sync.Mutex
	causes []Cause
}

func (o *observer) Arrived() {}

func (o *observer) Withdrawn() {}

func (o *observer) Answered(string) {}

func (o *observer) Restarting(_ string, cause Cause, _ error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.causes = append(o.causes, cause)
}

func (o *observer) WentBack(string, uint64, uint64) {}

func (o *observer) has(cause Cause) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Contains(o.causes, cause)
}

// running is a stream that runs, with its changes.
type running struct {
	t        *testing.T
	changes  chan Change
	observer *observer
}

func stream(t *testing.T, api *apitest.Server, namespace string) *running {
	t.Helper()
	client, err := kubeclient.Events(&rest.Config{Host: api.URL, Transport: api})
	require.NoError(t, err)
	s := &running{t: t, changes: make(chan Change), observer: &observer{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		New(Settings{Client: client, Namespace: namespace, Taker: s, Observer: s.observer, Pages: semaphore.NewWeighted(1)}).Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		kubeclient.Close(client)
	})
	return s
}

func (s *running) Put(ctx context.Context, change Change) error {
	select {
	case s.changes <- change:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// expect takes one change for each text, such as "listed a" or "began".
func (s *running) expect(words ...string) {
	s.t.Helper()
	var got []string
	for range words {
		select {
		case c := <-s.changes:
			got = append(got, c.String())
		case <-time.After(20 * time.Second):
			require.Fail(s.t, "nothing comes", "after %v, expected %v", got, words)
		}
	}
	require.Equal(s.t, words, got)
}

func (c Change) String() string {
	kind := map[Kind]string{KindListBegan: "began", KindListed: "listed", KindListEnded: "ended", KindChanged: "changed", KindDeleted: "deleted", KindBookmark: "bookmark"}[c.Kind]
	if c.Event == nil {
		return kind
	}
	return fmt.Sprintf("%s %s=%d", kind, c.Event.Name, c.Event.Count)
}

func newEvent(name string, count int32) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Count: count}
}

func TestEventsAreNormalizedOnArrival(t *testing.T) {
	managed := func(name string, count int32) *corev1.Event {
		ev := newEvent(name, count)
		ev.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
		return ev
	}
	api := apitest.New(t)
	api.Put(managed("a", 1))
	s := stream(t, api, "")
	s.expect("began")
	assert.Empty(t, (<-s.changes).Event.ManagedFields, "of a listed event")
	s.expect("ended")
	api.Put(managed("a", 2))
	assert.Empty(t, (<-s.changes).Event.ManagedFields, "of a watched event")
}

func TestListsThenWatches(t *testing.T) {
	api := apitest.New(t)
	a := api.Put(newEvent("a", 1))
	api.Put(newEvent("b", 1))
	s := stream(t, api, "")
	s.expect("began", "listed a=1", "listed b=1", "ended")
	api.Put(newEvent("a", 2))
	api.Delete(a)
	s.expect("changed a=2", "deleted a=2")
}

func TestPagesAreReadOneByOne(t *testing.T) {
	api := apitest.New(t)
	const events = 2*pageSize + 10
	for i := range events {
		api.Put(newEvent(fmt.Sprintf("e%05d", i), 1))
	}
	s := stream(t, api, "")
	s.expect("began")
	for i := range events {
		s.expect(fmt.Sprintf("listed e%05d=1", i))
	}
	s.expect("ended")
	api.Put(newEvent("new", 1))
	s.expect("changed new=1")
	assert.Equal(t, []string{"list", "more", "more", "watch"}, connections(api.Requests()))
}

func TestOneNamespaceOnly(t *testing.T) {
	api := apitest.New(t)
	other := newEvent("a", 1)
	other.Namespace = "other"
	api.Put(other)
	api.Put(newEvent("b", 1))
	s := stream(t, api, "ns")
	s.expect("began", "listed b=1", "ended")
	api.Put(other)
	api.Put(newEvent("c", 1))
	s.expect("changed c=1")
}

func TestACutConnectionResumesWhereItWas(t *testing.T) {
	api := apitest.New(t)
	api.Put(newEvent("a", 1))
	s := stream(t, api, "")
	s.expect("began", "listed a=1", "ended")
	api.Put(newEvent("a", 2))
	s.expect("changed a=2")
	api.Cut()
	api.Put(newEvent("a", 3))
	s.expect("changed a=3")
	assert.Equal(t, []string{"list", "watch", "watch"}, connections(api.Requests()), "no second listing")
}

func TestAStreamResumesAtABookmark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewInMemory(t)
		api.WithBookmarks()
		api.Put(newEvent("a", 1))
		s := stream(t, api, "")
		s.expect("began", "listed a=1", "ended")
		api.Bookmark()
		s.expect("bookmark")
		api.Compact() // What came before the bookmark.
		api.Cut()
		api.Put(newEvent("a", 2))
		change := <-s.changes
		for change.Kind == KindBookmark { // Another one may have come before the cut.
			change = <-s.changes
		}
		assert.Equal(t, "changed a=2", change.String())
		assert.Equal(t, []string{"list", "watch", "watch"}, connections(api.Requests()), "no second listing")
	})
}

func TestWhatHappenedBefore410IsListed(t *testing.T) {
	api := apitest.New(t)
	a := api.Put(newEvent("a", 1))
	s := stream(t, api, "")
	s.expect("began", "listed a=1", "ended")
	api.Refuse(func(*http.Request) int { return http.StatusServiceUnavailable })
	api.Cut()
	api.Put(newEvent("b", 1))
	api.Delete(a)
	api.Put(newEvent("b", 5))
	api.Compact()
	api.Refuse(nil)
	s.expect("began", "listed b=5", "ended")
	assert.True(t, s.observer.has(CauseExpired))
}

func TestAListingThatBreaksRestarts(t *testing.T) {
	api := apitest.New(t)
	for i := range pageSize + 1 {
		api.Put(newEvent(fmt.Sprintf("e%05d", i), 1))
	}
	var broken atomic.Bool
	api.Refuse(func(r *http.Request) int {
		if r.URL.Query().Get("continue") != "" && broken.CompareAndSwap(false, true) {
			return http.StatusInternalServerError
		}
		return 0
	})
	s := stream(t, api, "")
	for range 2 {
		s.expect("began")
		for i := range pageSize {
			s.expect(fmt.Sprintf("listed e%05d=1", i))
		}
	}
	s.expect(fmt.Sprintf("listed e%05d=1", pageSize), "ended")
}

func TestPermissionsThatComeLater(t *testing.T) {
	for cause, status := range map[Cause]int{CauseUnauthorized: http.StatusUnauthorized, CauseForbidden: http.StatusForbidden, CauseUnavailable: http.StatusInternalServerError} {
		t.Run(string(cause), func(t *testing.T) {
			api := apitest.New(t)
			api.Refuse(func(*http.Request) int { return status })
			s := stream(t, api, "")
			s.expect("began")
			require.Eventually(t, func() bool { return s.observer.has(cause) }, 20*time.Second, 10*time.Millisecond)
			api.Refuse(nil)
			api.Put(newEvent("a", 1))
			for c := range s.changes {
				if c.Kind == KindListEnded {
					return
				}
			}
		})
	}
}

func TestSilenceIsNotWaitedForForEver(t *testing.T) {
	for name, messages := range map[string][]*corev1.Event{"from the beginning": nil, "after a message": {newEvent("a", 1)}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Settings{Taker: make(taken, 1), Observer: &observer{}})
				ctx, cancel := context.WithCancelCause(t.Context())
				body, server := io.Pipe()
				context.AfterFunc(ctx, func() { _ = server.CloseWithError(ctx.Err()) })
				go func() {
					time.Sleep(30 * time.Second)
					_, _ = server.Write(apitest.Protobuf(t, messages...))
					time.Sleep(time.Hour)
					_ = server.Close() // It would be a normal end.
				}()
				err := s.receive(ctx, cancel, body, time.Minute)
				require.ErrorIs(t, err, errIdle)
				assert.Equal(t, CauseIdle, s.afterEnd(err), "not CauseSilent: the server may be well")
				time.Sleep(2 * time.Hour) // The server ends.
			})
		})
	}
}

// balance counts the events that came and were not withdrawn.
type balance struct {
	observer
	events int
}

func (b *balance) Arrived() { b.events++ }

func (b *balance) Withdrawn() { b.events-- }

func TestAnEventThatIsNotTakenIsWithdrawn(t *testing.T) {
	counted := &balance{}
	s := New(Settings{Taker: make(taken, 1), Observer: counted})
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, s.put(ctx, Change{Event: newEvent("a", 1)}))
	cancel()
	require.Error(t, s.put(ctx, Change{Event: newEvent("b", 1)}))
	assert.Equal(t, 1, counted.events)
}

// slow is a Taker that takes each change after this time.
type slow struct{ after time.Duration }

func (s slow) Put(context.Context, Change) error {
	time.Sleep(s.after)
	return nil
}

func TestTheTimeThatTheQueueTakesIsNotSilenceOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Settings{Taker: slow{after: 2 * time.Minute}, Observer: &observer{}})
		ctx, cancel := context.WithCancelCause(t.Context())
		body := io.NopCloser(bytes.NewReader(apitest.Protobuf(t, newEvent("a", 1))))
		require.NoError(t, s.receive(ctx, cancel, body, time.Minute))
		assert.NoError(t, ctx.Err())
	})
}

func TestOnlyAnInternalErrorThatRepeatsAtAVersionIsFollowedByAList(t *testing.T) {
	internal := apierrors.NewInternalError(errors.New("etcd event received with PrevKv=nil"))
	for name, tt := range map[string]struct {
		before, at string // the versions of two errors
		err        error
		want       Cause
	}{
		"at the same version": {"5", "5", internal, CauseExpired},
		"at another version":  {"4", "5", internal, CauseUnavailable},
		"within lists":        {"", "", internal, CauseUnavailable},
		"another error":       {"5", "5", apierrors.NewServiceUnavailable("busy"), CauseUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Settings{ResourceVersion: tt.before})
			assert.Equal(t, CauseUnavailable, s.afterEnd(s.streamError(tt.err)))
			s.resourceVersion = tt.at
			assert.Equal(t, tt.want, s.afterEnd(s.streamError(tt.err)))
		})
	}
}

func TestTheEndOfAConnectionIsTheEndOfTheStream(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"the server ended it":        {io.EOF, true},
		"it ended, in another error": {fmt.Errorf("read: %w", io.EOF), true},
		"it broke":                   {io.ErrUnexpectedEOF, true},
		"it broke, in another error": {fmt.Errorf("read: %w", io.ErrUnexpectedEOF), true},
		"the server goes away":       {errors.New("http2: server sent GOAWAY and closed the connection"), true},
		"it timed out":               {os.ErrDeadlineExceeded, true},
		"another error":              {errors.New("broken"), false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, isEnd(tt.err)) })
	}
}

func TestTheCauseOfAnEnd(t *testing.T) {
	events := corev1.Resource("events")
	for name, tt := range map[string]struct {
		err  error
		want Cause
	}{
		"a normal end":           {nil, CauseEnded},
		"an expired version":     {apierrors.NewResourceExpired("too old"), CauseExpired},
		"a token that expired":   {apierrors.NewUnauthorized("no"), CauseUnauthorized},
		"a missing permission":   {apierrors.NewForbidden(events, "", errors.New("no")), CauseForbidden},
		"no answer to a request": {fmt.Errorf("list: %w", errNoResponse), CauseSilent},
		"no answer in time":      {fmt.Errorf("get: %w", context.DeadlineExceeded), CauseSilent},
		"an idle watch":          {errIdle, CauseIdle},
		"a busy server":          {apierrors.NewTooManyRequests("busy", 1), CauseUnavailable},
		"a broken connection":    {errors.New("connection refused"), CauseUnavailable},
	} {
		assert.Equal(t, tt.want, CauseOf(tt.err), name)
	}
}

func TestErrorsThatMeanThatTheVersionIsNotThere(t *testing.T) {
	tooLarge := apierrors.NewTimeoutError("waiting", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"410 Expired":             {apierrors.NewResourceExpired("too old"), true},
		"410 Gone":                {apierrors.NewResourceExpired("gone"), true},
		"too large, by its cause": {tooLarge, true},
		"too large, by its text":  {apierrors.NewTimeoutError("Too large resource version: 9, current: 1", 1), true},
		"a timeout":               {apierrors.NewTimeoutError("waiting", 1), false},
		"another error":           {errors.New("Too large resource version"), false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, isExpired(tt.err)) })
	}
}

// An event that is larger than the buffer is passed on before the next one comes.
func TestWhatFillsABufferIsNotHeldBack(t *testing.T) {
	large := newEvent("large", 1)
	large.Message = strings.Repeat("m", 28*readBuffer)
	body, server := io.Pipe()
	taker := make(taken, 1)
	s := New(Settings{Taker: taker, Observer: &observer{}})
	ended := make(chan error, 1)
	go func() { ended <- s.receive(t.Context(), func(error) {}, body, time.Hour) }()
	_, err := server.Write(apitest.Protobuf(t, large))
	require.NoError(t, err)
	select {
	case <-taker:
	case <-time.After(20 * time.Second):
		t.Error("the event is held back")
	}
	require.NoError(t, server.Close())
	require.NoError(t, <-ended)
}

// taken is a Taker that has room for one change.
type taken chan Change

func (t taken) Put(ctx context.Context, c Change) error {
	select {
	case t <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connections leaves out the requests for the store's version.
func connections(requests []string) []string {
	return slices.DeleteFunc(requests, func(r string) bool { return r == "version" })
}
