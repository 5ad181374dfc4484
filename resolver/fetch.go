// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kubeevents/kubeeventsreceiver/internal/large"
	"github.com/kubeevents/kubeeventsreceiver/internal/text"
	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

const (
	// requestTimeout is the maximum duration of one request. A request without callers continues in
	// the background and keeps its slot.
	requestTimeout = 10 * time.Second
	// urgent is the level of requests that show whether a kind hangs. No climb has such a level.
	urgent = 1 << 30
)

// errNotSent is the error of a request that no caller needed any more before the resolver could
// send it.
var errNotSent = errors.New("not sent: no longer needed")

// target is an object that can be requested.
type target struct {
	kind *kinds.Kind
	key  objectKey
}

// fetcher sends requests, as the limiter and the circuits permit, and puts what they bring into
// the cache.
type fetcher struct {
	clients    *clients
	limiter    *limiter
	circuits   *circuits
	cache      *cache
	trimmer    *trimmer
	observer   Observer
	background *background
	now        func() time.Duration
	timeout    time.Duration // how long callers wait
}

// newFetcher returns a fetcher. It calls opened when it gives up a kind that hangs or fails.
func newFetcher(b *background, clients *clients, c *cache, rate flowcontrol.RateLimiter, cfg Config, now func() time.Duration,
	opened func(unique.Handle[schema.GroupKind], Resolution),
) *fetcher {
	f := &fetcher{
		clients: clients, cache: c, observer: cfg.Observer, background: b, now: now, timeout: cfg.LookupTimeout,
		limiter: newLimiter(cfg.Concurrency, rate),
		trimmer: &trimmer{keys: text.Keys{Label: cfg.KeepLabel, Annotation: cfg.KeepAnnotation, First: cfg.KeepFirst}, sets: newStringSets()},
	}
	f.circuits = &circuits{
		background: b, timeout: cfg.LookupTimeout, reread: f.reread, opened: opened,
		kinds: make(map[unique.Handle[schema.GroupKind]]*circuit),
	}
	return f
}

// request is a request for an object or a list. A list has a target without a name.
type request struct {
	target
	level    int
	isNeeded func() bool // when it is about to be sent; nil: it is
	send     func(context.Context) error
	// isConsistent is set if the watch cache may not answer.
	isConsistent bool
}

func (r *request) isList() bool { return r.key.name == "" }

// send sends a request as soon as the limits permit, if it is still needed then. Once sent, it ends
// at its timeout or at Close. If the API server asks to repeat it later (Retry-After), it waits
// without a slot.
func (f *fetcher) send(r *request) error {
	kind := r.kind.Name
	for waited := time.Duration(0); ; {
		if !f.limiter.acquire(f.background.context(), kind, r.level) {
			return errNotSent
		}
		if r.isNeeded != nil && !r.isNeeded() {
			f.limiter.release(kind, false)
			return errNotSent
		}
		after, err := f.sendNow(r, waited)
		f.limiter.release(kind, true)
		if after <= 0 || err == nil {
			return err
		}
		f.limiter.pause(kind, after)
		waited += after
	}
}

// sendNow sends a request and tells the circuit how it ended. A list shows nothing about single
// reads. If the API server wants it later than callers wait, it counts as one that fails.
func (f *fetcher) sendNow(r *request, waited time.Duration) (after time.Duration, err error) {
	if r.isList() {
		return f.do(r.send)
	}
	sentAt := f.circuits.begin(r.target)
	after, err = f.do(r.send)
	var o outcome
	switch failure := failureOf(err); {
	case after > 0 && err != nil:
		if waited+after >= f.timeout {
			o.failure = Unavailable
		}
	case failure == Timeout || failure == Unavailable:
		o.failure = failure
	default: // That the watch cache does not have an object shows nothing.
		o.works = failure != NotFound || r.isConsistent
	}
	f.circuits.end(r.target, sentAt, o)
	return after, err
}

// sendUnlimited sends a request for a discovery document. It needs no slot.
func (f *fetcher) sendUnlimited(request func(context.Context) error) error {
	for {
		after, err := f.do(request)
		if after <= 0 || err == nil {
			return err
		}
		select {
		case <-time.After(after):
		case <-f.background.context().Done():
			return err
		}
	}
}

// do sends a request. after is when the API server asks to repeat it; 0 if it does not.
func (f *fetcher) do(request func(context.Context) error) (after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(f.background.context(), requestTimeout)
	defer cancel()
	ctx, retryAfter := noteRetryAfter(ctx)
	sentAt := time.Now()
	err = request(ctx)
	// A request that Close ended says nothing about the API server.
	if f.observer != nil && !f.background.isClosed() {
		f.observer.LookupDone(string(cmp.Or(failureOf(err), "found")), time.Since(sentAt))
	}
	return *retryAfter, err
}

// refuses returns the failure of lookups that are not worth waiting for; empty if they are. A
// request that the API server does not want before the caller's time is up is not worth waiting
// for either.
func (f *fetcher) refuses(t target) Resolution {
	if failure := f.circuits.refuses(t); failure != "" {
		return failure
	}
	if f.limiter.pausedFor(t.kind.Name) > f.timeout {
		return Unavailable
	}
	return ""
}

// readResult is the object that a read found, or the error of its last request.
type readResult struct {
	object  *Object
	version string // the object's resource version
	err     error
	// isConsistent is set if the watch cache could not answer.
	isConsistent bool
}

// read reads one object. If an answer from the API server's watch cache is allowed and is not the
// object with the UID, it sends a consistent request: only this proves that an object does not
// exist, or is another one. isNeeded is called when a request is about to be sent.
func (f *fetcher) read(t target, uid types.UID, level int, fromCache bool, isNeeded func() bool) readResult {
	if fromCache {
		found := f.readOnce(t, level, metav1.GetOptions{ResourceVersion: "0"}, isNeeded)
		if isAboutPath(found.err) || found.err != nil && failureOf(found.err) != NotFound ||
			found.object != nil && found.object.hasUID(uid) {
			return found
		}
	}
	return f.readOnce(t, level, metav1.GetOptions{}, isNeeded)
}

func (f *fetcher) readOnce(t target, level int, options metav1.GetOptions, isNeeded func() bool) (result readResult) {
	result.isConsistent = options.ResourceVersion == ""
	result.err = f.send(&request{
		target: t, level: level, isConsistent: result.isConsistent, isNeeded: isNeeded,
		send: func(ctx context.Context) error {
			requestedAt := f.now()
			meta, err := f.clients.resource(t.kind, t.key.collection).Get(ctx, t.key.name, options)
			if err == nil {
				result.object = f.store(t.kind, t.key.collection, meta, requestedAt, false)
				result.version = meta.ResourceVersion
			}
			return err
		},
	})
	return result
}

// reread reads an object to see whether it is answered.
func (f *fetcher) reread(t target) {
	_ = f.send(&request{
		target: t, level: urgent, isConsistent: true,
		send: func(ctx context.Context) error {
			_, err := f.clients.resource(t.kind, t.key.collection).Get(ctx, t.key.name, metav1.GetOptions{})
			return err
		},
	})
}

// page reads one page of a list.
func (f *fetcher) page(k *kinds.Kind, in collection, level int, options metav1.ListOptions) (
	page *metav1.PartialObjectMetadataList, requestedAt time.Duration, err error,
) {
	err = f.send(&request{
		target: target{kind: k, key: objectKey{collection: in}}, level: level,
		send: func(ctx context.Context) (err error) {
			requestedAt = f.now()
			page, err = f.clients.resource(k, in).List(ctx, options)
			return err
		},
	})
	return page, requestedAt, err
}

// store caches what was read and returns it.
func (f *fetcher) store(k *kinds.Kind, in collection, meta *metav1.PartialObjectMetadata, requestedAt time.Duration, isListed bool) *Object {
	object := f.trimmer.object(k, meta)
	return f.cache.store(objectKey{collection: in, name: object.Name}, object, requestedAt, isListed)
}

// storeChange caches new objects, and deleted objects, whose last events come now.
func (f *fetcher) storeChange(k *kinds.Kind, change watch.EventType, meta *metav1.PartialObjectMetadata) {
	if change == watch.Added || change == watch.Deleted {
		f.store(k, collectionOf(k, meta.Namespace), meta, f.now(), true)
	}
}

// trimmer converts metadata to objects and keeps only the labels and annotations that the caller
// needs.
type trimmer struct {
	keys text.Keys
	sets *stringSets
}

// object returns the object that meta describes. It retains nothing of meta.
func (t *trimmer) object(k *kinds.Kind, meta *metav1.PartialObjectMetadata) Object {
	labels, annotations := t.keys.Entries(meta.Labels, meta.Annotations)
	object := Object{
		APIVersion:  k.APIVersion,
		Kind:        k.Name.Value().Kind,
		Namespace:   unique.Make(text.Value(meta.Namespace)).Value(),
		Name:        strings.Clone(text.Value(meta.Name)),
		UID:         types.UID(strings.Clone(text.Value(string(meta.UID)))),
		Labels:      t.sets.shared(labels),
		Annotations: t.sets.shared(annotations),
		found:       true,
	}
	if k.Name == coreNode {
		return object // Its name is that of a machine, and what owns it is no workload.
	}
	if object.owner = chooseOwner(meta.OwnerReferences); object.owner == none {
		object.GenerateName = unique.Make(text.Value(meta.GenerateName)).Value()
	}
	if k.Name == corePod {
		object.mirrored = types.UID(strings.Clone(text.Value(meta.Annotations[mirrorAnnotation])))
	}
	return object
}

// maxSets is the maximum number of shared sets of labels.
const maxSets = 4096

// stringSets lets objects with equal labels share one map. A map with a single entry takes more
// than 300 bytes, more than the rest of an object. The pods of a workload usually have the same
// labels. It does not keep large sets, which nobody else may need.
type stringSets struct {
	mu   sync.Mutex
	sets *simplelru.LRU[[sha256.Size]byte, map[string]string] // by content; guarded by mu
}

func newStringSets() *stringSets {
	return &stringSets{sets: newLRU[[sha256.Size]byte, map[string]string](maxSets)}
}

// shared returns a set that is equal to the given one. Callers must not change either. It returns
// nil for an empty set.
func (s *stringSets) shared(set map[string]string) map[string]string {
	if len(set) == 0 {
		return nil
	}
	if large.Size(set) > 0 {
		return set
	}
	content := contentOf(set)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, found := s.sets.Get(content); found {
		return known
	}
	s.sets.Add(content, set)
	return set
}

// contentOf returns a hash of the content of a set.
func contentOf(set map[string]string) [sha256.Size]byte {
	var content []byte
	for _, key := range slices.Sorted(maps.Keys(set)) {
		content = strconv.AppendQuote(content, key)
		content = strconv.AppendQuote(content, set[key])
	}
	return sha256.Sum256(content)
}
