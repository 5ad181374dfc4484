// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// writeBuffer is how much goes out at once while there is more to send.
const writeBuffer = 64 << 10

func (s *Server) live() int {
	if s.options.Live == nil {
		return 0
	}
	return s.options.Live.Len()
}

// liveEvent is nil for one of another namespace.
func (s *Server) liveEvent(i int, namespace string) *corev1.Event {
	ev := s.options.Live.Event(i)
	if namespace != "" && ev.Namespace != namespace {
		return nil
	}
	ev.TypeMeta = eventType
	ev.ResourceVersion = strconv.Itoa(i + 1)
	return ev
}

// listEvents answers with a page. The token to continue is how many events lie before the next one.
func (s *Server) listEvents(w http.ResponseWriter, r *http.Request, namespace string) {
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	page := &corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}, Items: []corev1.Event{}}
	if strings.HasPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=") {
		frames, _ := s.after(0)
		page.ResourceVersion = versionOf(len(frames)) // The cluster's newest. No event has the name.
		answer(w, accepted(r), page)
		return
	}
	page.ResourceVersion = versionOf(0)
	for i := from; i < s.live(); i++ {
		if limit > 0 && len(page.Items) == limit {
			page.Continue = strconv.Itoa(i)
			break
		}
		if ev := s.liveEvent(i, namespace); ev != nil {
			page.Items = append(page.Items, *ev)
		}
	}
	answer(w, accepted(r), page)
}

// streamEvents sends the listing as changes, a bookmark at its end, and then what changes.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request, namespace string) {
	stream := newStream(w, r)
	for i := range s.live() {
		if ev := s.liveEvent(i, namespace); ev != nil {
			stream.write(stream.encoding.frame(watch.Added, ev))
		}
		if r.Context().Err() != nil {
			return
		}
	}
	bookmark := &corev1.Event{TypeMeta: eventType}
	bookmark.ResourceVersion = versionOf(0)
	bookmark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	stream.write(stream.encoding.frame(watch.Bookmark, bookmark))
	stream.flush()
	s.streamed.Add(1)
	s.follow(stream, namespace, 0)
}

// Streamed returns how many streamed lists have ended.
func (s *Server) Streamed() int { return int(s.streamed.Load()) }

func (s *Server) watchEvents(w http.ResponseWriter, r *http.Request, namespace string) {
	s.follow(newStream(w, r), namespace, changesUntil(r.URL.Query().Get("resourceVersion")))
}

// follow sends the changes after the first n, until the client leaves or its time is over.
func (s *Server) follow(stream *stream, namespace string, seen int) {
	over := stream.timeout()
	defer over.Stop()
	for {
		frames, more := s.after(seen)
		seen += len(frames)
		for i := range frames {
			if namespace == "" || frames[i].namespace == namespace {
				stream.write(frames[i].encoded[stream.encoding])
			}
		}
		stream.flush()
		select {
		case <-more:
		case <-over.C:
			return
		case <-stream.request.Context().Done():
			return
		case <-s.closed:
			return
		}
	}
}

// stream is the answer to a watch. What cannot be written any more is noticed by the end of the
// request's context.
type stream struct {
	request  *http.Request
	encoding encoding
	buffer   *bufio.Writer
	response *http.ResponseController
}

func newStream(w http.ResponseWriter, r *http.Request) *stream {
	e := accepted(r)
	w.Header().Set("Content-Type", e.contentType(true))
	return &stream{request: r, encoding: e, buffer: bufio.NewWriterSize(w, writeBuffer), response: http.NewResponseController(w)}
}

func (s *stream) write(frame []byte) { _, _ = s.buffer.Write(frame) }

func (s *stream) flush() {
	_ = s.buffer.Flush()
	_ = s.response.Flush()
}

// timeout ends when the client wants the watch to.
func (s *stream) timeout() *time.Timer {
	seconds, err := strconv.Atoi(s.request.URL.Query().Get("timeoutSeconds"))
	if err != nil {
		seconds = 1800 // as an API server
	}
	return time.NewTimer(time.Duration(seconds) * time.Second)
}
