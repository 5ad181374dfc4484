// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	kwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

const (
	// pageSize is how many events a page of a list has. For each page, etcd counts all events that
	// follow: with client-go's default of 500, a list of 50,000 events takes 1.7 times as long.
	pageSize = 2000
	// maxPage is how many bytes a page may have, unless it has one event only. 2,000 usual events
	// have less than half of it.
	maxPage = 4 << 20
	// responseTimeout is how long the server may take to answer a request, to end a watch after its
	// timeout, and may ask to wait. It also bounds the sum of the pauses within a list.
	responseTimeout = time.Minute
	// ignoredPause is a pause within a list that does not count: the server is reading etcd.
	ignoredPause = time.Second
	// minWatchTimeout is the minimum time after which the server ends a watch. The actual time is
	// random, up to twice the minimum, so that many receivers do not reconnect together.
	minWatchTimeout = 5 * time.Minute
)

var (
	errNoResponse = errors.New("the API server does not respond")
	// errIncompleteList is the end of a list without its bookmark.
	errIncompleteList = errors.New("the API server did not complete the list")
	errStalled        = errors.New("the receiver cannot take more events")
)

// listPages lists page by page, with one page in memory: the current events, or those as of
// exactAt. A stall does not end it: between two pages, it has no connection that costs the server
// memory.
func (s *Stream) listPages(ctx context.Context) error {
	if err := s.beginList(ctx); err != nil {
		return err
	}
	kind, options := Listed, metav1.ListOptions{Limit: pageSize}
	if s.exactAt != "" {
		kind = Existing
		options.ResourceVersion = s.exactAt
		options.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	}
	for {
		page, err := s.page(ctx, &options)
		if err != nil {
			if options.Continue != "" && isExpired(err) {
				reached.State("a list expires between two pages")
			}
			return err
		}
		s.config.Observer.Answered(s.config.Namespace)
		for i := range page.Items {
			ev := page.Items[i] // A copy, so that one kept event does not keep its page.
			if err := s.put(ctx, Change{Kind: kind, Event: &ev}); err != nil {
				return err
			}
		}
		next := page.Continue
		if next == "" {
			return s.endList(ctx, cmp.Or(s.exactAt, page.ResourceVersion))
		}
		// The token contains the version too.
		options = metav1.ListOptions{Limit: options.Limit, Continue: next}
		if err := s.config.Taker.Await(ctx); err != nil {
			return err
		}
	}
}

// page requests a page. If it has too many bytes, page requests fewer events instead. It sets the
// limit of the next page.
func (s *Stream) page(ctx context.Context, options *metav1.ListOptions) (*corev1.EventList, error) {
	began := time.Now()
	for {
		body, err := s.read(ctx, *options)
		delay := retryAfter(err)
		switch {
		case delay > 0 && options.Continue != "" && time.Since(began)+delay < responseTimeout:
			pause(ctx, delay) // A list from scratch would cost a busy server more than one page.
			continue
		case err != nil:
			return nil, err
		case len(body) > maxPage && options.Limit > 1:
			reached.State("a page of a list is too large")
			options.Limit = max(1, options.Limit/8) // What was read shows no more than that.
			continue
		case len(body) < maxPage/2:
			options.Limit = min(pageSize, 2*options.Limit)
		}
		page := &corev1.EventList{}
		object, _, err := event.Codecs.UniversalDeserializer().Decode(body, nil, page)
		if err == nil && object != page {
			err = apierrors.FromObject(object)
		}
		return page, err
	}
}

// read returns a response, or its beginning if it has too many bytes for a page.
func (s *Stream) read(ctx context.Context, options metav1.ListOptions) (content []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, responseTimeout, errNoResponse)
	defer cancel()
	body, err := s.request(&options).Stream(ctx)
	if err == nil {
		defer body.Close()
		most := int64(maxPage + 1)
		if options.Limit == 1 {
			most = math.MaxInt64
		}
		content, err = io.ReadAll(io.LimitReader(body, most))
	}
	if err != nil && errors.Is(context.Cause(ctx), errNoResponse) {
		return nil, errNoResponse
	}
	return content, err
}

func (s *Stream) request(options *metav1.ListOptions) *rest.Request {
	options.FieldSelector = s.config.FieldSelector
	return s.config.Client.Get().
		NamespaceIfScoped(s.config.Namespace, s.config.Namespace != "").
		Resource("events").
		MaxRetries(0). // client-go would wait without a report. The stream waits and connects again.
		VersionedParams(options, parameters)
}

// parameters encodes list options as a query of the core group's version.
var parameters = func() runtime.ParameterCodec {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	return runtime.NewParameterCodec(scheme)
}()

// watch streams until the server ends it, an error comes, the server is idle for too long, or the
// queue stalls.
func (s *Stream) watch(ctx context.Context, options metav1.ListOptions) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.config.Taker.Connected(), func() { cancel(errStalled) })()

	limit := minWatchTimeout + rand.N(minWatchTimeout)
	seconds := int64(limit.Seconds())
	options.TimeoutSeconds = &seconds
	options.Watch = true
	options.AllowWatchBookmarks = true
	err := s.stream(ctx, cancel, &options, limit+responseTimeout)
	if ctx.Err() != nil {
		return context.Cause(ctx) // The error only shows that the context ended.
	}
	return err
}

// stream opens a connection and reads it to its end.
func (s *Stream) stream(ctx context.Context, cancel context.CancelCauseFunc, options *metav1.ListOptions, idle time.Duration) error {
	if options.SendInitialEvents != nil {
		if err := s.beginList(ctx); err != nil {
			return err
		}
	}
	connection, err := s.open(ctx, cancel, options)
	if err != nil {
		return err
	}
	defer connection.Close()
	s.config.Observer.Answered(s.config.Namespace)
	if !s.listing {
		s.config.Observer.Healthy(s.config.Namespace)
	}
	return s.receive(ctx, cancel, connection, idle)
}

// open sends the request and waits for the response header.
func (s *Stream) open(ctx context.Context, cancel context.CancelCauseFunc, options *metav1.ListOptions) (io.ReadCloser, error) {
	timer := time.AfterFunc(responseTimeout, func() { cancel(errNoResponse) })
	defer timer.Stop()
	return s.request(options).Stream(ctx)
}

// receive reads messages until the stream ends.
func (s *Stream) receive(ctx context.Context, cancel context.CancelCauseFunc, body io.ReadCloser, idle time.Duration) error {
	timer := time.AfterFunc(s.idleTimeout(idle), func() { cancel(errNoResponse) })
	defer timer.Stop()
	decoder, err := NewDecoder(body)
	if err != nil {
		return err
	}
	for {
		began := time.Now()
		kind, object, err := decoder.Decode()
		// Only the time that the server takes counts, not the time that the Taker takes.
		timer.Stop()
		if waited := time.Since(began); waited > ignoredPause {
			s.paused += waited
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isEnd(err):
			return s.endOfStream()
		case err != nil:
			return err
		}
		if err := s.take(ctx, kwatch.Event{Type: kind, Object: object}); err != nil {
			return err
		}
		timer.Reset(s.idleTimeout(idle))
	}
}

// isEnd reports whether the error is the end of a stream: the server ended it, or the connection
// broke.
func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
}

// idleTimeout returns how long the connection may be idle. The time is shorter during a list,
// because the server has events to send. The pauses of a list add up, so that the receiver does not
// wait for a server that never ends the list but sends changes.
func (s *Stream) idleTimeout(idle time.Duration) time.Duration {
	if s.listing {
		return max(0, responseTimeout-s.paused)
	}
	return idle
}

// endOfStream distinguishes the server's time limit, after a complete list, from a connection that
// broke within a list.
func (s *Stream) endOfStream() error {
	if s.listing {
		reached.State("a connection breaks within a list")
		return errIncompleteList
	}
	return nil
}

// take passes on one message and sets where the stream resumes.
func (s *Stream) take(ctx context.Context, message kwatch.Event) error {
	switch message.Type {
	case kwatch.Error:
		return s.streamError(apierrors.FromObject(message.Object))
	case kwatch.Bookmark:
		return s.bookmark(ctx, message.Object)
	}
	ev, ok := message.Object.(*corev1.Event)
	if !ok {
		return fmt.Errorf("the API server sent a %T in a stream of events", message.Object)
	}
	change := Change{Kind: s.kind(message.Type), Event: ev}
	if !s.listing {
		change.ResourceVersion = resumeAfter(message.Type, ev.ResourceVersion)
	}
	if err := s.put(ctx, change); err != nil {
		return err
	}
	s.resourceVersion = change.ResourceVersion
	return nil
}

// streamError returns what an error within a stream means. If an internal error repeats at the same
// version, only a list helps. etcd has compacted the value that the next change replaced, and the
// API server needs this value ("etcd event received with PrevKv=nil",
// k8s.io/apiserver/pkg/storage/etcd3/watcher.go).
func (s *Stream) streamError(err error) error {
	if !apierrors.IsInternalError(err) || s.resourceVersion == "" {
		return err
	}
	if s.internalErrorAt == s.resourceVersion {
		reached.State("an internal error repeats at the same version")
		return apierrors.NewResourceExpired(err.Error())
	}
	s.internalErrorAt = s.resourceVersion
	return err
}

// resumeAfter returns where a stream resumes after a change. An etcd lease deletes up to 1,000
// expired events at one version, and the connection may end among them. So after a deletion, the
// stream resumes just before that version, and gets some deletions again. A version that is not a
// number, or has no predecessor, stays as it is.
func resumeAfter(kind kwatch.EventType, version string) string {
	if kind != kwatch.Deleted {
		return version
	}
	n := event.Version(version)
	if n < 2 {
		return version
	}
	return strconv.FormatUint(n-1, 10)
}

func (s *Stream) kind(t kwatch.EventType) Kind {
	switch {
	case t == kwatch.Deleted:
		return Deleted
	case s.listing:
		return Listed
	default:
		return Changed
	}
}

func (s *Stream) bookmark(ctx context.Context, object runtime.Object) error {
	ev, ok := object.(*corev1.Event)
	if !ok {
		return nil
	}
	if !s.listing {
		if err := s.put(ctx, Change{Kind: Bookmark, ResourceVersion: ev.ResourceVersion}); err != nil {
			return err
		}
		s.setVersion(ev.ResourceVersion)
		return nil
	}
	if ev.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
		return s.endList(ctx, ev.ResourceVersion)
	}
	return nil
}
