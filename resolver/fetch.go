// SPDX-License-Identifier: Apache-2.0

package resolver

import (
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

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

// requestTimeout is the maximum duration of one request. A request without callers continues in the
// background and keeps its slot.
const requestTimeout = 10 * time.Second

// errNotSent is the error of a request that could not be sent while callers needed it.
var errNotSent = errors.New("not sent: no longer needed")

// fetcher sends requests, as the limiter permits, tells the breakers how they end, and puts what they
// bring into the cache.
type fetcher struct {
	clients    *clients
	limiter    *limiter
	breakers   *breakers
	cache      *cache
	trimmer    *trimmer
	observer   Observer
	background *background
	now        func() time.Duration
}

// newFetcher returns a fetcher. It calls opened when it gives up a kind that hangs or fails.
func newFetcher(b *background, clients *clients, c *cache, limiter *limiter, settings Settings, now func() time.Duration,
	opened func(unique.Handle[schema.GroupKind], Resolution),
) *fetcher {
	f := &fetcher{
		clients: clients, cache: c, observer: settings.Observer, background: b, now: now, limiter: limiter,
		trimmer: &trimmer{trim: settings.Trim, sets: newStringSets()},
	}
	f.breakers = &breakers{
		background: b, timeout: settings.LookupTimeout, probe: f.probe, opened: opened,
		kinds: make(map[unique.Handle[schema.GroupKind]]*breaker),
	}
	return f
}

// need identifies who needs a request.
type need struct {
	ctx context.Context // the request is not sent after its end; once sent, it ends at its timeout or at Close
	// isThere is called when the request is about to be sent. It reports whether it is still needed.
	isThere func() bool
}

// send sends a request as soon as the limits permit, if it is still needed then.
func (f *fetcher) send(n need, t target, isConsistent bool, request func(context.Context) error) error {
	release, err := f.limiter.acquire(n.ctx, t)
	if err != nil {
		return errNotSent
	}
	defer release()
	if !n.isThere() {
		return errNotSent
	}
	return f.sendNow(t, isConsistent, request)
}

// sendNow sends a request and tells the breaker how it has ended. That the watch cache does not have
// an object shows nothing. Neither does a list that fails or hangs: single reads may work.
func (f *fetcher) sendNow(t target, isConsistent bool, request func(context.Context) error) error {
	if t.isList() {
		err := f.do(request)
		if err == nil {
			f.breakers.answered(t.kind.Name)
		}
		return err
	}
	ended := f.breakers.sent(t)
	err := f.do(request)
	switch failure := ResolutionOf(err); failure {
	case ResolutionTimeout, ResolutionUnavailable:
		ended(IsAnswer(err), failure)
	default:
		ended(failure != ResolutionNotFound || isConsistent, "")
	}
	return err
}

// do sends a request that no limit counts, as discovery does. client-go repeats it if the API server
// asks for this (Retry-After).
func (f *fetcher) do(request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(f.background.ctx, requestTimeout)
	defer cancel()
	sentAt := time.Now()
	err := request(ctx)
	// A request that Close ended shows nothing about the API server.
	if f.observer != nil && !f.background.isClosed() {
		f.observer.LookupDone(err, time.Since(sentAt))
	}
	return err
}

// readResult is the object that a read found, or the error of its last request.
type readResult struct {
	object *Object
	err    error
	// isConsistent is set if the watch cache could not answer.
	isConsistent bool
}

// read reads one object. If the UID is known, the API server's watch cache may have it: most objects
// are older than their events. If it does not, read sends a consistent request: only this proves that
// an object does not exist, or is another one.
func (f *fetcher) read(n need, t target, uid types.UID) readResult {
	if uid != "" {
		found := f.readOnce(n, t, metav1.GetOptions{ResourceVersion: "0"})
		if isAboutPath(found.err) || found.err != nil && ResolutionOf(found.err) != ResolutionNotFound ||
			found.object != nil && found.object.hasUID(uid) {
			return found
		}
	}
	return f.readOnce(n, t, metav1.GetOptions{})
}

func (f *fetcher) readOnce(n need, t target, options metav1.GetOptions) (result readResult) {
	result.isConsistent = options.ResourceVersion == ""
	result.err = f.send(n, t, result.isConsistent, func(ctx context.Context) error {
		requestedAt := f.now()
		meta, err := f.clients.resource(t.kind, t.key.collection).Get(ctx, t.key.name, options)
		if err == nil {
			result.object = f.store(t.kind, t.key.collection, meta, requestedAt)
		}
		return err
	})
	return result
}

// probe reads an object to see whether its kind is answered.
func (f *fetcher) probe(t target) {
	_ = f.sendNow(t, true, func(ctx context.Context) error {
		_, err := f.clients.resource(t.kind, t.key.collection).Get(ctx, t.key.name, metav1.GetOptions{})
		return err
	})
}

// page reads one page of a list.
func (f *fetcher) page(n need, k *kinds.Kind, in collection, options metav1.ListOptions) (
	page *metav1.PartialObjectMetadataList, requestedAt time.Duration, err error,
) {
	err = f.send(n, target{kind: k, key: objectKey{collection: in}}, true, func(ctx context.Context) (err error) {
		requestedAt = f.now()
		page, err = f.clients.resource(k, in).List(ctx, options)
		return err
	})
	return page, requestedAt, err
}

// store caches what was read and returns it.
func (f *fetcher) store(k *kinds.Kind, in collection, meta *metav1.PartialObjectMetadata, requestedAt time.Duration) *Object {
	object := f.trimmer.object(k, meta)
	return f.cache.store(objectKey{collection: in, name: object.Name}, object, requestedAt)
}

// trimmer converts metadata to objects and keeps only what the caller needs.
type trimmer struct {
	trim func(*metav1.PartialObjectMetadata) // nil: neither labels nor annotations are kept
	sets *stringSets
}

// object returns the object that meta describes. It retains nothing of meta.
func (t *trimmer) object(k *kinds.Kind, meta *metav1.PartialObjectMetadata) Object {
	mirrored := meta.Annotations[mirrorAnnotation]
	if t.trim == nil {
		meta.Labels, meta.Annotations = nil, nil
	} else {
		t.trim(meta)
	}
	object := Object{
		APIVersion:  k.APIVersion,
		Kind:        k.Name.Value().Kind,
		Namespace:   unique.Make(cut(meta.Namespace)).Value(),
		Name:        strings.Clone(cut(meta.Name)),
		UID:         types.UID(strings.Clone(cut(string(meta.UID)))),
		Created:     meta.CreationTimestamp.Unix(),
		Labels:      t.sets.shared(meta.Labels),
		Annotations: t.sets.shared(meta.Annotations),
		found:       true,
	}
	if k.Name == coreNode {
		return object // Its name is that of a machine, and what owns it is no workload.
	}
	object.owner = chooseOwner(meta.OwnerReferences)
	if object.owner == none || notWorkloads[object.owner.Value().groupKind()] {
		object.GenerateName = unique.Make(cut(meta.GenerateName)).Value()
	}
	if k.Name == corePod {
		object.mirrored = types.UID(strings.Clone(cut(mirrored)))
	}
	return object
}

// maxTextLength bounds what is kept of a text that the API server does not bound. A longer one names no
// object.
const maxTextLength = 1 << 10

// cut returns the part of a text that is kept.
func cut(s string) string { return s[:min(len(s), maxTextLength)] }

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
	return &stringSets{sets: newLRU[[sha256.Size]byte, map[string]string](maxSets, nil)}
}

// shared returns a set that is equal to the given one. Callers must not change either. It returns
// nil for an empty set.
func (s *stringSets) shared(set map[string]string) map[string]string {
	if len(set) == 0 {
		return nil
	}
	if largeSize(set) > 0 {
		return maps.Clone(set) // The original may have had more entries, and keeps the memory for them.
	}
	content := contentOf(set)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, found := s.sets.Get(content); found {
		return known
	}
	set = maps.Clone(set)
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
