// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	kwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
)

const (
	// pageSize is the number of events in a page of a list. For each page, etcd counts all events
	// that follow: with client-go's default of 500, a list of 50,000 events takes 1.7 times as
	// long.
	pageSize = 2000
	// maxPage is the maximum size of a page of several events. 2,000 usual events have less than
	// half of it.
	maxPage = 4 << 20
	// responseTimeout is the time that the server may take to answer a request, may take to end a
	// watch after its timeout, and may ask the receiver to wait.
	responseTimeout = time.Minute
	// minWatchTimeout is the minimum time after which the server ends a watch. The actual time is
	// random, up to twice the minimum, so that many receivers do not reconnect together.
	minWatchTimeout = 5 * time.Minute
)

var (
	errNoResponse = errors.New("the API server does not respond: check network policies, firewalls and proxies before it")
	errIdle       = errors.New("nothing came over the watch, not even its end: proxies may drop idle connections")
	errEndless    = errors.New("the API server repeats a page of the list of events: check proxies before it")
	errNoList     = errors.New("the API server answers with a list without a resource version: check proxies before it")
)

// listPages lists page by page, with one page in memory: the current events, or those as of
// exactAt. While the queue is full, it has no connection that costs the server memory.
func (s *Stream) listPages(ctx context.Context) error {
	if err := s.put(ctx, Change{Kind: KindListBegan}); err != nil {
		return err
	}
	kind, options := KindListed, metav1.ListOptions{Limit: pageSize, FieldSelector: s.settings.FieldSelector}
	if s.exactAt != "" {
		kind = KindExisting
		options.ResourceVersion = s.exactAt
		options.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	}
	tokens := map[string]bool{}
	for {
		page, err := s.takePage(ctx, kind, &options)
		if err != nil {
			return err
		}
		next := nextPage(page.Continue)
		if next == "" {
			return s.endList(ctx, cmp.Or(s.exactAt, page.ResourceVersion))
		}
		if tokens[next] {
			return errEndless
		}
		tokens[next] = true
		// The token contains the version too.
		options = metav1.ListOptions{Limit: options.Limit, FieldSelector: options.FieldSelector, Continue: next}
	}
}

// takePage requests a page and puts its events.
func (s *Stream) takePage(ctx context.Context, kind Kind, options *metav1.ListOptions) (*metav1.ListMeta, error) {
	if err := s.settings.Pages.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.settings.Pages.Release(1)
	page, err := s.page(ctx, s.settings.Namespace, options)
	if err != nil {
		return nil, err
	}
	if !s.failed {
		s.settings.Observer.Answered(s.settings.Namespace)
	}
	for i := range page.Items {
		ev := page.Items[i] // A copy, so that one kept event does not keep its page.
		if err := s.put(ctx, Change{Kind: kind, Event: &ev}); err != nil {
			return nil, err
		}
	}
	return &page.ListMeta, nil
}

// nextPage returns the token of the next page. The API server allows any bytes in the name of an event, but
// its token has the key after the last event as a JSON string: the next page would begin before this
// event, and the list would never end. So it begins after all names with the same valid beginning.
func nextPage(token string) string {
	key, start := map[string]json.RawMessage{}, ""
	decoded, _ := base64.RawURLEncoding.DecodeString(token)
	if json.Unmarshal(decoded, &key) != nil || json.Unmarshal(key["start"], &start) != nil {
		return token
	}
	valid, _, isInvalid := strings.Cut(start, string(utf8.RuneError))
	if !isInvalid {
		return token
	}
	if start = after(valid); start == "" {
		return ""
	}
	key["start"], _ = json.Marshal(start)
	encoded, _ := json.Marshal(key) // It knows no error for strings.
	return base64.RawURLEncoding.EncodeToString(encoded)
}

// after returns where the keys begin that follow all keys with the same beginning; empty if the namespace has
// no valid ones there.
func after(beginning string) string {
	beginning = strings.TrimRight(beginning, string(utf8.MaxRune)) // Only invalid bytes follow this rune.
	last, size := utf8.DecodeLastRuneInString(beginning)
	if size == 0 {
		return ""
	}
	switch last++; {
	case last == '/': // No name has one.
		last++
	case !utf8.ValidRune(last):
		last = '\uE000' // The first rune after the surrogates, which are no runes.
	}
	start := beginning[:len(beginning)-size] + string(last)
	if path.Clean("/"+start) != "/"+start {
		return start + "\x00" // The API server rejects keys that end so, and no event is named "." or "..".
	}
	return start
}

// page requests a page. If it has too many bytes, page requests fewer events instead. It sets the
// limit of the next page.
func (s *Stream) page(ctx context.Context, namespace string, options *metav1.ListOptions) (*corev1.EventList, error) {
	began := time.Now()
	for {
		body, err := s.read(ctx, namespace, options)
		delay := retryAfter(err)
		switch {
		case delay > 0 && options.Continue != "" && time.Since(began)+delay < responseTimeout:
			pause(ctx, delay) // A list from scratch would cost a busy server more than one page.
			continue
		case err != nil:
			return nil, err
		case len(body) > maxPage && options.Limit > 1:
			options.Limit = max(1, options.Limit/8) // What was read shows no more than that.
			continue
		case len(body) < maxPage/2:
			options.Limit = min(pageSize, 2*options.Limit)
		}
		return decodePage(body)
	}
}

func decodePage(body []byte) (*corev1.EventList, error) {
	page := &corev1.EventList{}
	object, _, err := event.Codecs.UniversalDeserializer().Decode(body, nil, page)
	switch {
	case err != nil:
		return nil, err
	case object != page:
		return nil, apierrors.FromObject(object)
	case page.ResourceVersion == "":
		return nil, errNoList
	}
	return page, nil
}

// read returns a response, or its beginning if it has too many bytes for a page of several events.
func (s *Stream) read(ctx context.Context, namespace string, options *metav1.ListOptions) (content []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, responseTimeout, errNoResponse)
	defer cancel()
	body, err := s.request(namespace, options).Stream(ctx)
	if err == nil {
		defer body.Close()
		most := int64(maxPage)
		if options.Limit == 1 {
			most = maxEvent
		}
		content, err = io.ReadAll(io.LimitReader(body, most+1))
	}
	if len(content) > maxEvent {
		return nil, errEventTooLarge
	}
	if err != nil && errors.Is(context.Cause(ctx), errNoResponse) {
		return nil, errNoResponse
	}
	return content, err
}

func (s *Stream) request(namespace string, options *metav1.ListOptions) *rest.Request {
	client := s.settings.Client
	if options.Watch {
		client = s.settings.Watches
	}
	return client.Get().
		NamespaceIfScoped(namespace, namespace != "").
		Resource("events").
		MaxRetries(0). // client-go would wait without a report. The stream waits and connects again.
		SpecificallyVersionedParams(options, metav1.ParameterCodec, metav1.SchemeGroupVersion)
}

// watch streams until the server ends it, an error comes, or the server is idle for too long.
func (s *Stream) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := minWatchTimeout + rand.N(minWatchTimeout)
	seconds := int64(limit.Seconds())
	connection, err := s.open(ctx, cancel, &metav1.ListOptions{
		FieldSelector: s.settings.FieldSelector, ResourceVersion: s.resourceVersion,
		Watch: true, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	})
	if err == nil {
		defer connection.Close()
		if s.useless < maxUseless {
			s.works()
		} else { // Only a message, or the time for which it is open, shows that it works.
			opened := time.AfterFunc(minUptime, func() { s.settings.Observer.Answered(s.settings.Namespace) })
			defer opened.Stop()
		}
		err = s.receive(ctx, cancel, connection, limit+responseTimeout)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // The error only shows that the context ended.
	}
	return err
}

// open sends the request and waits for the response header.
func (s *Stream) open(ctx context.Context, cancel context.CancelCauseFunc, options *metav1.ListOptions) (io.ReadCloser, error) {
	timer := time.AfterFunc(responseTimeout, func() { cancel(errNoResponse) })
	defer timer.Stop()
	return s.request(s.settings.Namespace, options).Stream(ctx)
}

// receive reads messages until the stream ends.
func (s *Stream) receive(ctx context.Context, cancel context.CancelCauseFunc, body io.ReadCloser, idle time.Duration) error {
	timer := time.AfterFunc(idle, func() { cancel(errIdle) })
	defer timer.Stop()
	decoder := newDecoder(body)
	for {
		kind, object, err := decoder.decode()
		timer.Stop() // Only the time that the server takes counts, not the time that the Taker takes.
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isEnd(err):
			return nil
		case err != nil:
			return err
		}
		if err := s.take(ctx, kwatch.Event{Type: kind, Object: object}); err != nil {
			return err
		}
		timer.Reset(idle)
	}
}

// isEnd reports whether the error is the end of a stream: the server ended it, or the connection
// broke.
func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
}

// take passes on one message and sets where the stream resumes.
func (s *Stream) take(ctx context.Context, message kwatch.Event) error {
	if message.Type == kwatch.Error {
		return s.streamError(apierrors.FromObject(message.Object))
	}
	ev, ok := message.Object.(*corev1.Event)
	if !ok {
		return fmt.Errorf("the API server sent a %T in a stream of events", message.Object)
	}
	if s.hasMessage = true; s.failed {
		s.works()
	}
	change := Change{Kind: KindChanged, Event: ev, ResourceVersion: ev.ResourceVersion}
	switch message.Type {
	case kwatch.Bookmark:
		change.Kind, change.Event = KindBookmark, nil
	case kwatch.Deleted:
		change.Kind, change.ResourceVersion = KindDeleted, beforeDeletion(ev.ResourceVersion)
	}
	if err := s.put(ctx, change); err != nil {
		return err
	}
	s.setVersion(change.ResourceVersion)
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
		return apierrors.NewResourceExpired(err.Error())
	}
	s.internalErrorAt = s.resourceVersion
	return err
}

// beforeDeletion returns where a stream resumes after a deletion. An etcd lease deletes up to 1,000
// expired events at one version, and the connection may end among them. So the stream resumes just
// before that version, and gets some deletions again. A version that is not a number, or has no
// predecessor, stays as it is.
func beforeDeletion(version string) string {
	n := event.Version(version)
	if n < 2 {
		return version
	}
	return strconv.FormatUint(n-1, 10)
}
