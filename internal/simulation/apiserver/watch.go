// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	server    *Server
	sel       *selection
	initial   bool // sends what exists
	bookmarks bool
	start     int64 // the version that changes are sent from
	after     int64 // what was sent, or did not concern the client
	sent      int   // messages
	deadline  time.Time
	cut       chan struct{} // closed to break the connection
}

// watch answers with a stream of changes.
func (s *Server) watch(c *call) error {
	o, sel, err := s.listOptions(c)
	if err != nil {
		return err
	}
	version, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return err
	}
	timeout := defaultTimeout
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	open := &stream{
		call: c, server: s, sel: sel, after: version,
		initial:   o.SendInitialEvents != nil && *o.SendInitialEvents,
		bookmarks: o.AllowWatchBookmarks && c.table.cached,
		deadline:  time.Now().Add(timeout),
		cut:       make(chan struct{}),
	}
	if err := s.open(open); err != nil {
		return err
	}
	defer s.close(open)
	var late error
	if open.initial {
		late = s.await(c, version)
	}
	open.run(o, late)
	return nil
}

func (s *Server) open(open *stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.findTable(open.call); err != nil {
		return err
	}
	s.streams[open] = true
	return nil
}

func (s *Server) close(open *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, open)
}

// run sends the head and what follows. An error behind the head is a message.
func (st *stream) run(o *internalversion.ListOptions, err error) {
	contentType := st.as.contentType()
	if !st.as.isJSON() {
		contentType += ";stream=watch"
	}
	st.w.Header().Set("Content-Type", contentType)
	st.w.WriteHeader(http.StatusOK)
	st.flush()
	if err == nil {
		err = st.begin(o)
	}
	if err != nil {
		status := statusOf(err)
		st.message(watch.Error, document(statusKind, body(status, st.as.format), st.as.format))
		return
	}
	st.follow()
}

// begin sends what exists, if the client wants it.
func (st *stream) begin(o *internalversion.ListOptions) error {
	legacy := o.SendInitialEvents == nil && st.after == 0
	if !st.initial && !legacy {
		return st.resume(o)
	}
	cached := o.ResourceVersion != ""
	records, list, err := st.server.page(st.call, st.sel, snapshot{cached: cached})
	if err != nil {
		return err
	}
	st.after = must(parseVersion(list.ResourceVersion))
	ends := st.initial && o.AllowWatchBookmarks && !st.answer.NoEndBookmark
	if st.initial {
		st.server.reportList(st.call, st.after, false)
	}
	for _, r := range records {
		st.send(watch.Added, r)
	}
	if ends {
		st.server.reportList(st.call, st.after, true)
		st.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	st.flush()
	return nil
}

// resume checks the version that a watch begins at.
func (st *stream) resume(o *internalversion.ListOptions) error {
	s := st.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.after == 0 { // No initial events, but from the newest version on.
		st.after = s.version
		if o.ResourceVersion == "0" {
			st.after = s.cacheVersion(st.table)
		}
	}
	if !st.table.cached {
		return st.checkHistory(s.compacted)
	}
	if log := st.table.log; st.table.cached && len(log) > cacheHolds {
		if oldest := log[len(log)-cacheHolds].version - 1; st.after < min(oldest, s.compacted) {
			return errWatchExpired
		}
	}
	return nil
}

// checkHistory returns an error if etcd does not have all that the watch is to show. Of the
// compacted version itself, etcd has the changes, but not the objects before them.
func (st *stream) checkHistory(compacted int64) error {
	if st.after+1 < compacted {
		return errWatchExpired
	}
	for _, r := range after(st.table.log, st.after) {
		if r.version > compacted {
			break
		}
		if r.version == compacted && r.prev != nil && st.sel.inScope(r.key) {
			return apierrors.NewInternalError(errors.New("etcd event received with PrevKv=nil"))
		}
	}
	return nil
}

// follow sends changes until the stream ends.
func (st *stream) follow() {
	end := time.NewTimer(time.Until(st.deadline))
	defer end.Stop()
	bookmark := time.NewTimer(st.untilBookmark())
	defer bookmark.Stop()
	for st.start = st.after; ; {
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
			if st.bookmarks && st.after > st.start {
				st.bookmark(nil)
				st.flush()
			}
			bookmark.Reset(st.untilBookmark())
		case <-end.C:
			return
		case <-st.http.Context().Done():
			return
		case <-st.cut:
			panic(http.ErrAbortHandler)
		}
	}
}

func (st *stream) untilBookmark() time.Duration {
	if last := time.Until(st.deadline) - lastBookmark; last > 0 {
		return min(last, bookmarkEvery)
	}
	return bookmarkEvery
}

// next returns the changes that were not sent yet, and what to wait for: the next one, and that the
// cache sees it.
func (st *stream) next() (changes []*record, changed <-chan struct{}, again <-chan time.Time) {
	s := st.server
	s.mu.Lock()
	defer s.mu.Unlock()
	reached := s.cacheVersion(st.table)
	for _, r := range after(st.table.log, st.after) {
		if r.version > reached {
			again = time.After(time.Until(r.at.Add(s.options.CacheLag)))
			break
		}
		if st.sel.inScope(r.key) && st.derive(r) != "" {
			changes = append(changes, r)
		}
	}
	st.after = max(st.after, reached)
	return changes, st.table.changed, again
}

// derive returns what a change is for the client: an object that begins or ceases to match is added
// or deleted for it.
func (st *stream) derive(r *record) watch.EventType {
	if r.change != watch.Modified {
		if st.sel.matches(r.object) {
			return r.change
		}
		return ""
	}
	now, before := st.sel.matches(r.object), st.sel.matches(r.prev.object)
	switch {
	case now && before:
		return watch.Modified
	case now:
		return watch.Added
	case before:
		return watch.Deleted
	default:
		return ""
	}
}

func (st *stream) send(change watch.EventType, r *record) {
	shown := r
	if change == watch.Deleted && r.change == watch.Modified {
		shown = r.ceased()
	}
	message := document(st.kind(), shown.body(st.as.format), st.as.format)
	st.server.reportSent(st.call, change, shown, len(message))
	st.message(change, message)
}

// ceased returns the object before a change at the version of the change, as for a deletion.
func (r *record) ceased() *record {
	object := shallow(r.prev.object)
	object.SetResourceVersion(r.object.GetResourceVersion())
	return &record{version: r.version, change: watch.Deleted, key: r.key, object: object}
}

// bookmark sends the version that was reached.
func (st *stream) bookmark(annotations map[string]string) {
	object := empty(st.gvk())
	if st.as.isMetadata() {
		object = &metav1.PartialObjectMetadata{}
	}
	object.SetResourceVersion(fmt.Sprint(st.after))
	object.SetAnnotations(annotations)
	st.message(watch.Bookmark, document(st.kind(), body(object, st.as.format), st.as.format))
}

// message writes a message, and breaks the connection after the number of messages that was
// decided.
func (st *stream) message(change watch.EventType, document []byte) {
	_, _ = st.w.Write(frame(string(change), document, st.as.format))
	if st.sent++; st.sent == st.answer.CutAfter {
		st.flush()
		panic(http.ErrAbortHandler)
	}
}

func (st *stream) flush() {
	if flusher, ok := st.w.(http.Flusher); ok {
		flusher.Flush()
	}
}
