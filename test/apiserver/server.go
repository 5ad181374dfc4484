// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Options say what kind of server it is.
type Options struct {
	ClusterUID string
	// EventTTL is how long events are kept; 0 means one hour.
	EventTTL time.Duration
	// CompactAfter is the interval of compactions, each up to the version of the one before; 0
	// means five minutes.
	CompactAfter time.Duration
	// CacheLag is how far the watch caches are behind. Events have none.
	CacheLag time.Duration
	// EventBookmarks lets watches of events have bookmarks.
	EventBookmarks bool
	// KeepCreationTimes lets Create keep the creation time of an object that has one, such as a
	// recorded one.
	KeepCreationTimes bool
	// OldDiscovery serves version v2beta1 of aggregated discovery only, as servers before
	// Kubernetes 1.30 do.
	OldDiscovery bool

	// Decide is asked before each request is served; nil: all are served.
	Decide func(Request) Answer
	// Listed is called before a client gets the first part of a list of events, and again
	// before it gets the last; nil: never. It is not called for a list of a single name.
	Listed func(List)
	// Sent is called before an event is written to a client: in a list, as Added, or in a watch.
	// size is that of the encoded event or message.
	Sent func(client string, change watch.EventType, ev *corev1.Event, size int)
	// Served is called when an object is read or written, while the server is locked. version is the
	// newest one. object is nil if there is none to read, and must not be changed.
	Served func(request Request, version int64, object Object)
	// Read is called before a client gets the metadata of objects, one or a page of a list.
	Read func(client string, objects int)
}

// Request describes a request to Options.Decide.
type Request struct {
	Client          string // see ConnContext
	Verb            string // get, list, watch, create, update or discover
	Resource        schema.GroupResource
	Namespace, Name string
	Single          bool // a list or a watch of a single name
	JSON            bool // it reads JSON, as only the reads of details do
	Number          int  // of the requests before this one with the same Client, Verb and Resource
}

// Answer is what becomes of a request. The zero value serves it.
type Answer struct {
	Delay      time.Duration // before the server acts
	Hang       bool          // no answer until the client leaves
	Status     int           // refuses with this HTTP status
	RetryAfter time.Duration // header Retry-After of a refusal
	Err        error         // refuses with this error
	LoseAnswer bool          // act, and break the connection without an answer
	// break a watch's connection after this number of messages; 0: do not
	CutAfter  int
	SameToken bool // each page of a list has the token of its first page
}

// List describes a part of a list of events to Options.Listed.
type List struct {
	Client, Namespace string
	Version           int64 // of the part
	Exact             bool  // the client named the version
	Complete          bool  // it is the last part
}

// Write is one version of an event, as it was written or deleted.
type Write struct {
	Version int64
	Epoch   int // the number of calls of Restore and Replace before it
	At      time.Time
	Type    watch.EventType
	Event   *corev1.Event // must not be changed
}

// Server is an http.Handler. Its methods may be called concurrently.
type Server struct {
	options Options

	mu sync.Mutex // guards what follows; not held while anything waits or is written
	contents
	epoch   int
	created int // objects, ever
	history []Write
	counts  map[Request]int
	streams []*stream       // in the order in which they were opened: that of a map differs
	stale   map[string]bool // groups whose aggregated API server does not answer
}

// New makes a server with an empty cluster, in which only the namespace kube-system exists.
func New(options Options) *Server {
	if options.EventTTL == 0 {
		options.EventTTL = time.Hour
	}
	if options.CompactAfter == 0 {
		options.CompactAfter = 5 * time.Minute
	}
	s := &Server{options: options, counts: map[Request]int{},
		stale: map[string]bool{}}
	s.begin(newContents(builtIn), options.ClusterUID)
	return s
}

// begin begins a cluster.
func (s *Server) begin(empty contents, clusterUID string) {
	s.contents = empty
	system := &corev1.Namespace{}
	system.Name, system.UID = metav1.NamespaceSystem, types.UID(clusterUID)
	must(s.create(s.table(namespacesResource), system))
}

// Run lets time pass in the server, until the context ends: events expire, and versions are
// compacted.
func (s *Server) Run(ctx context.Context) {
	compactAt, reached := time.Now().Add(s.options.CompactAfter), s.Version()
	for {
		next := s.expire()
		if now := time.Now(); !now.Before(compactAt) {
			s.compact(reached)
			reached, compactAt = s.Version(), now.Add(s.options.CompactAfter)
		}
		if compactAt.Before(next) {
			next = compactAt
		}
		if !sleep(ctx, time.Until(next)) {
			return
		}
	}
}

// lock returns what unlocks the server.
func (s *Server) lock() (unlock func()) {
	s.mu.Lock()
	return s.mu.Unlock
}

type clientKey struct{}

// ConnContext is for http.Server. It takes the client's name from a connection that has a method
// ClientName.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	if named, ok := conn.(interface{ ClientName() string }); ok {
		ctx = context.WithValue(ctx, clientKey{}, named.ClientName())
	}
	return ctx
}

// Create stores a copy of a new object and returns another with the fields that the server sets.
func (s *Server) Create(gr schema.GroupResource, object Object) (Object, error) {
	return s.change(gr, object, s.create)
}

// Update stores a copy of a changed object. An error says that there is none, or that it has
// another resource version than the given one, if any is given.
func (s *Server) Update(gr schema.GroupResource, object Object) (Object, error) {
	return s.change(gr, object, s.update)
}

func (s *Server) change(
	gr schema.GroupResource, object Object, do func(*table, Object) (*record, error),
) (Object, error) {
	defer s.lock()()
	t := s.table(gr)
	if t == nil {
		return nil, apierrors.NewNotFound(gr, "")
	}
	r, err := do(t, object)
	if err != nil {
		return nil, err
	}
	return copyOf(r.object), nil
}

// Get returns a copy of an object.
func (s *Server) Get(gr schema.GroupResource, namespace, name string) (Object, error) {
	defer s.lock()()
	if t := s.table(gr); t != nil {
		if r := find(t.live, t.key(namespace, name)); r != nil {
			return copyOf(r.object), nil
		}
	}
	return nil, apierrors.NewNotFound(gr, name)
}

// Delete deletes objects of one namespace, all at one version.
func (s *Server) Delete(gr schema.GroupResource, namespace string, names ...string) error {
	defer s.lock()()
	var keys []string
	t := s.table(gr)
	for _, name := range names {
		if t == nil || find(t.live, t.key(namespace, name)) == nil {
			return apierrors.NewNotFound(gr, name)
		}
		keys = append(keys, t.key(namespace, name))
	}
	s.remove(t, keys)
	return nil
}

// Version returns the version of the newest write.
func (s *Server) Version() int64 {
	defer s.lock()()
	return s.version
}

// History returns every write of an event ever, also those before a compaction, Restore or Replace.
func (s *Server) History() []Write {
	defer s.lock()()
	return slices.Clip(s.history)
}

// Kinds returns the kinds that the server serves, in the order of discovery.
func (s *Server) Kinds() []Kind {
	defer s.lock()()
	return s.kinds()
}

// AddKind lets the server serve another kind, or one that it serves in another way, such as in more
// versions.
func (s *Server) AddKind(kind Kind) {
	defer s.lock()()
	if known := s.table(kind.groupResource()); known != nil {
		known.Kind = kind
		return
	}
	s.tables = append(s.tables, newContents([]Kind{kind}).tables...)
}

// RemoveKind removes a kind with its objects. Open watches of it end.
func (s *Server) RemoveKind(gr schema.GroupResource) {
	defer s.lock()()
	removed := s.table(gr)
	s.tables = slices.DeleteFunc(s.tables, func(t *table) bool { return t == removed })
	s.cut(func(open *stream) bool { return open.table == removed })
}

// SetStale lets a group be one of an aggregated API server that does not answer, or answers again.
func (s *Server) SetStale(group string, stale bool) {
	defer s.lock()()
	s.stale[group] = stale
}

// Compact forgets all versions before the newest.
func (s *Server) Compact() { s.compact(s.Version()) }

func (s *Server) compact(version int64) {
	defer s.lock()()
	if version <= s.version { // If not, a backup was restored since.
		s.compacted = max(s.compacted, version)
	}
}

// Backup is what a cluster held at a time.
type Backup struct{ contents contents }

// Version returns the version of the newest write in the backup.
func (b *Backup) Version() int64 { return b.contents.version }

// Events returns the events in the backup. They must not be changed.
func (b *Backup) Events() (all []*corev1.Event) {
	for _, r := range b.contents.table(eventsResource).live {
		all = append(all, r.object.(*corev1.Event))
	}
	return all
}

// Backup returns a backup of the cluster.
func (s *Server) Backup() *Backup {
	defer s.lock()()
	return &Backup{s.clone()}
}

// Restore lets versions and contents go back to a backup. Open watches break.
func (s *Server) Restore(backup *Backup) {
	defer s.lock()()
	s.restore(backup)
	s.cut(func(*stream) bool { return true })
}

// RestoreUnnoticed is Restore behind an API server that goes on. Open watches get nothing more.
func (s *Server) RestoreUnnoticed(backup *Backup) {
	defer s.lock()()
	s.restore(backup)
}

func (s *Server) restore(backup *Backup) {
	s.epoch++
	s.contents = backup.contents.clone()
	for _, l := range s.leases {
		l.expires = time.Now().Add(l.ttl) // As etcd extends all leases when it starts.
	}
}

// Replace puts a new, empty cluster at the same address, which serves the same kinds. Open watches
// break.
func (s *Server) Replace(clusterUID string) {
	defer s.lock()()
	s.epoch++
	s.begin(newContents(s.kinds()), clusterUID)
	s.cut(func(*stream) bool { return true })
}

// BreakConnections breaks the open watches of a client, or of all if the name is empty.
func (s *Server) BreakConnections(client string) {
	defer s.lock()()
	s.cut(func(open *stream) bool { return client == "" || open.Client == client })
}

// cut breaks the connections of open watches.
func (s *Server) cut(which func(*stream) bool) {
	for _, open := range s.streams {
		if which(open) {
			open.cut(http.ErrAbortHandler)
		}
	}
}
