// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

const (
	// pageSize is how many events a page of a listing holds, client-go's own default.
	pageSize = 500
	// answerWithin is how long the server may take to answer a request, or to send the next event of a listing.
	answerWithin = time.Minute
	// shortestWatch is the least time after which the server ends a watch; the time is drawn between it and twice it, so
	// that many receivers do not come back together.
	shortestWatch = 5 * time.Minute
	// overdue is how long after that the connection counts as dead.
	overdue = 30 * time.Second
)

var errSilent = errors.New("the API server says nothing")

// listPages lists by pages, holding one of them at a time.
func (s *Stream) listPages(ctx context.Context) error {
	if err := s.beginList(ctx); err != nil {
		return err
	}
	for next := ""; ; {
		page, err := s.page(ctx, next)
		if err != nil {
			return err
		}
		for i := range page.Items {
			ev := page.Items[i] // A copy, so that one event that is kept does not keep its page.
			if err := s.hand(ctx, Change{Kind: Listed, Event: &ev}); err != nil {
				return err
			}
		}
		if next = page.Continue; next == "" {
			return s.endList(ctx, page.ResourceVersion)
		}
	}
}

func (s *Stream) page(ctx context.Context, next string) (*corev1.EventList, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerWithin, errSilent)
	defer cancel()
	page := &corev1.EventList{}
	err := s.request(&metav1.ListOptions{Limit: pageSize, Continue: next}).Do(ctx).Into(page)
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return nil, errSilent
	}
	return page, err
}

func (s *Stream) request(options *metav1.ListOptions) *rest.Request {
	options.FieldSelector = s.config.FieldSelector
	return s.config.Client.Get().
		NamespaceIfScoped(s.config.Namespace, s.config.Namespace != "").
		Resource("events").
		VersionedParams(options, parameters)
}

// parameters writes list options as a query of the core group's version.
var parameters = func() runtime.ParameterCodec {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	return runtime.NewParameterCodec(scheme)
}()

// watch streams until the server ends it, an error comes, or the server falls silent.
func (s *Stream) watch(ctx context.Context, options metav1.ListOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	limit := shortestWatch + rand.N(shortestWatch)
	seconds := int64(limit.Seconds())
	options.TimeoutSeconds = &seconds
	options.Watch = true
	options.AllowWatchBookmarks = true
	if options.SendInitialEvents != nil {
		if err := s.beginList(ctx); err != nil {
			return err
		}
	}

	connection, err := s.open(ctx, cancel, &options)
	if err != nil {
		return err
	}
	defer connection.Stop()
	if !s.listing {
		s.config.Observer.Healthy(s.config.Namespace)
	}
	return s.receive(ctx, connection, limit+overdue)
}

// open sends the request and waits for the head of the answer.
func (s *Stream) open(ctx context.Context, cancel context.CancelFunc, options *metav1.ListOptions) (kwatch.Interface, error) {
	late := time.AfterFunc(answerWithin, cancel)
	connection, err := s.request(options).Watch(ctx)
	if !late.Stop() {
		if err == nil {
			connection.Stop()
		}
		return nil, errSilent
	}
	return connection, err
}

func (s *Stream) receive(ctx context.Context, connection kwatch.Interface, silence time.Duration) error {
	timer := time.NewTimer(silence)
	defer timer.Stop()
	for {
		// Only waiting for the server counts, not waiting for whoever takes the changes.
		timer.Reset(s.patience(silence))
		select {
		case message, ok := <-connection.ResultChan():
			if !ok {
				return s.endOfStream()
			}
			if err := s.take(ctx, message); err != nil {
				return err
			}
		case <-timer.C:
			return errSilent
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// patience is shorter while the server is listing: it has something to send.
func (s *Stream) patience(silence time.Duration) time.Duration {
	if s.listing {
		return answerWithin
	}
	return silence
}

// endOfStream tells the server's time limit, which leaves a complete listing, from a connection that broke within one.
func (s *Stream) endOfStream() error {
	if s.listing {
		return errors.New("the listing broke off")
	}
	return nil
}

// take hands one message over and moves the place to resume from.
func (s *Stream) take(ctx context.Context, message kwatch.Event) error {
	switch message.Type {
	case kwatch.Error:
		return apierrors.FromObject(message.Object)
	case kwatch.Bookmark:
		return s.bookmark(ctx, message.Object)
	}
	ev, ok := message.Object.(*corev1.Event)
	if !ok {
		return fmt.Errorf("the API server sent a %T in a stream of events", message.Object)
	}
	change := Change{Kind: s.kind(message.Type), Event: ev}
	if !s.listing {
		change.ResourceVersion = ev.ResourceVersion
	}
	if err := s.hand(ctx, change); err != nil {
		return err
	}
	s.resourceVersion = change.ResourceVersion
	return nil
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
		s.resourceVersion = ev.ResourceVersion
		return nil
	}
	if ev.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
		return s.endList(ctx, ev.ResourceVersion)
	}
	return nil
}
