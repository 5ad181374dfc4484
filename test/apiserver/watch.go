// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/binary"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// defaultTimeout ends watches that set none. kube-apiserver draws it between 30 and 60 minutes.
	defaultTimeout = 45 * time.Minute
	// bookmarkEvery is the interval of bookmarks, and lastBookmark how long before the end the last
	// one comes.
	bookmarkEvery = time.Minute
	lastBookmark  = 2 * time.Second
	// cacheHolds is how many changes a watch cache holds at least.
	cacheHolds = 100
)

var errWatchExpired = apierrors.NewResourceExpired("The resourceVersion of the watch is too old.")

// stream is an open watch.
type stream struct {
	*call
	server *Server
	ctx    context.Context // ends with the watch; its cause is http.ErrAbortHandler if it breaks
	cut    context.CancelCauseFunc
	after  int64 // what was sent, or did not concern the client
	sent   int   // messages
}

// watch answers with a stream of changes.
func (s *Server) watch(c *call) error {
	version, err := s.readOptions(c)
	if err != nil {
		return err
	}
	timeout := defaultTimeout
	if seconds := c.options.TimeoutSeconds; seconds != nil && *seconds > 0 {
		timeout = time.Duration(*seconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(c.http.Context(), timeout)
	defer cancel()
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	open := &stream{call: c, server: s, ctx: ctx, cut: cut, after: version}
	if !s.register(open) {
		return errNoSuchPath
	}
	defer func() {
		defer s.lock()()
		s.streams = slices.DeleteFunc(s.streams, func(other *stream) bool { return other == open })
	}()
	open.run()
	return nil
}

// register lets BreakConnections and the like find a stream. A backup may have been restored.
func (s *Server) register(open *stream) bool {
	defer s.lock()()
	if open.table = s.table(open.Resource); open.table == nil {
		return false
	}
	s.streams = append(s.streams, open)
	return true
}

// run sends the head and what follows. An error behind the head is a message.
func (st *stream) run() {
	st.w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
	st.w.WriteHeader(http.StatusOK)
	st.flush()
	if err := st.begin(); err != nil {
		st.message(watch.Error, document(statusKind, encode(statusOf(err))))
		return
	}
	st.follow()
}

// begin sends what exists, if the watch has no version.
func (st *stream) begin() error {
	if st.after > 0 {
		return st.resume()
	}
	records, list, err := st.server.page(st.call, snapshot{cached: st.options.ResourceVersion != ""})
	if err != nil {
		return err
	}
	st.after = must(parseVersion(list.ResourceVersion))
	for _, r := range records {
		st.send(watch.Added, r)
	}
	st.flush()
	return nil
}

// resume checks the version that a watch begins at.
func (st *stream) resume() error {
	defer st.server.lock()()
	compacted := st.server.compacted
	log := st.table.log
	if !st.table.cached && st.after+1 < compacted {
		return errWatchExpired
	}
	if st.table.cached && len(log) > cacheHolds && st.after < min(log[len(log)-cacheHolds].version-1, compacted) {
		return errWatchExpired
	}
	return nil
}

// follow sends changes until the stream ends.
func (st *stream) follow() {
	bookmark := time.NewTimer(st.untilBookmark())
	defer bookmark.Stop()
	for start := st.after; ; {
		changes, changed, again := st.next()
		for _, r := range changes {
			st.send(st.derive(r), r)
		}
		if len(changes) > 0 {
			st.flush()
		}
		select {
		case <-changed:
		case <-again:
		case <-bookmark.C:
			isMarked := st.table.cached || st.server.options.EventBookmarks
			if st.options.AllowWatchBookmarks && isMarked && st.after > start {
				st.bookmark()
				st.flush()
			}
			bookmark.Reset(st.untilBookmark())
		case <-st.ctx.Done():
			if errors.Is(context.Cause(st.ctx), http.ErrAbortHandler) {
				panic(http.ErrAbortHandler)
			}
			return
		}
	}
}

func (st *stream) untilBookmark() time.Duration {
	end, _ := st.ctx.Deadline()
	if last := time.Until(end) - lastBookmark; last > 0 {
		return min(last, bookmarkEvery)
	}
	return bookmarkEvery
}

// next returns the changes that were not sent yet, and what to wait for: the next one, and that the
// cache sees it.
func (st *stream) next() (changes []*record, changed <-chan struct{}, again <-chan time.Time) {
	s := st.server
	defer s.lock()()
	if st.ctx.Err() != nil {
		return nil, nil, nil // A broken connection brings nothing more.
	}
	reached := s.cacheVersion(st.call)
	for _, r := range after(st.table.log, st.after) {
		if r.version > reached {
			again = time.After(time.Until(r.at.Add(s.options.CacheLag)))
			break
		}
		if st.isAbout(r) && st.derive(r) != "" {
			changes = append(changes, r)
		}
	}
	st.after = max(st.after, reached)
	return changes, st.table.changed, again
}

// derive returns what a change is for the client: an object that begins or ceases to match is added
// or deleted for it.
func (st *stream) derive(r *record) watch.EventType {
	now := r.change != watch.Deleted && st.matches(r.object)
	before := r.prev != nil && st.matches(r.prev.object)
	switch {
	case now && before:
		return watch.Modified
	case now:
		return watch.Added
	case before:
		return watch.Deleted
	}
	return ""
}

func (st *stream) send(change watch.EventType, r *record) {
	shown := r
	if change == watch.Deleted && r.change == watch.Modified {
		// What ceased to match is shown as it was, as for a deletion.
		shown = newRecord(r.version, watch.Deleted, r.key, copyOf(r.prev.object))
	}
	message := document(st.kind(), st.encoded(shown))
	st.server.reportSent(st.call, change, shown, len(message))
	st.message(change, message)
}

// bookmark sends the version that was reached. Only metadata matter, which are encoded the same in
// all kinds.
func (st *stream) bookmark() {
	object := &metav1.PartialObjectMetadata{}
	object.ResourceVersion = strconv.FormatInt(st.after, 10)
	st.message(watch.Bookmark, document(st.kind(), encode(object)))
}

// message writes a message, and breaks the connection after the number of messages that was
// decided.
func (st *stream) message(change watch.EventType, document []byte) {
	event := metav1.WatchEvent{Type: string(change), Object: runtime.RawExtension{Raw: document}}
	encoded := encode(&event)
	_, err := st.w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(encoded))), encoded...))
	if err != nil {
		panic(http.ErrAbortHandler) // The client has left, and gets nothing more.
	}
	if st.sent++; st.sent == st.answer.CutAfter {
		st.flush()
		panic(http.ErrAbortHandler)
	}
}

func (st *stream) flush() { _ = http.NewResponseController(st.w).Flush() }
