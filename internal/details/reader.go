// SPDX-License-Identifier: Apache-2.0

package details

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Observer observes how reads end. Its methods may be called concurrently.
type Observer interface {
	LookupDone(err error, took time.Duration)
	Forbidden(verb string, resource schema.GroupResource, namespace string)
}

const (
	// readsPerSecond bounds the reads over a long time, and burst those of a moment: a release that changes many
	// workloads takes three reads for each. One namespace has half of both: anyone who may write Events there
	// could otherwise take all.
	readsPerSecond = 20
	burst          = 600
	// failuresInARow is the number of consecutive failures from which reads of a resource are answered at
	// once. One timeout of most of a batch's time is enough. A read in the background, each retryAfter, closes
	// this breaker.
	failuresInARow = 3
	retryAfter     = 5 * time.Second
	// openFor is the time after which an open breaker of which nobody wanted anything says nothing any more.
	openFor      = time.Minute
	forbiddenFor = time.Minute
	// maxAnswer bounds the bytes of an answer, and maxItems the objects of a list.
	maxAnswer = 4 << 20
	maxItems  = "50"
)

// path is what is read: an object, or a list of those that a selector selects.
type path struct {
	group, version  string
	resource        string
	namespace, name string
	selector        string // of labels; with a selector, name is empty
	fields          string // selector of fields, for a list
	metadataOnly    bool
}

func (p path) gr() schema.GroupResource {
	return schema.GroupResource{Group: p.group, Resource: p.resource}
}

// failedRead is why a read failed, and until when it is not repeated.
type failedRead struct {
	failure resolver.Resolution
	until   time.Time
}

// breaker knows how the reads of one resource ended.
type breaker struct {
	failures int
	failure  resolver.Resolution // the last one
	retryAt  time.Time           // while it is open: when the next read in the background begins
}

// reader sends reads. It has limits and breakers of its own, so that reads of details take nothing
// from the lookups of owners.
type reader struct {
	client   *rest.RESTClient
	observer Observer
	all      *rate.Limiter
	timeout  time.Duration // of a batch

	ctx    context.Context // of reads in the background
	end    context.CancelFunc
	trials sync.WaitGroup

	namespaces *lru.Cache[string, *rate.Limiter]
	failed     *lru.Cache[path, failedRead] // those that are not repeated yet

	mu       sync.Mutex // guards the following
	breakers map[schema.GroupResource]*breaker
}

func newReader(config *rest.Config, observer Observer, timeout time.Duration) (*reader, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.RateLimiter = -1, nil
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	config.APIPath, config.GroupVersion = "/api", &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = event.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	return &reader{
		client: client, observer: observer, timeout: timeout, ctx: ctx, end: end,
		all:        rate.NewLimiter(readsPerSecond, burst),
		namespaces: newMemory[string, *rate.Limiter](), failed: newMemory[path, failedRead](),
		breakers: map[schema.GroupResource]*breaker{},
	}, nil
}

func (r *reader) close() {
	r.end()
	r.trials.Wait()
	utilnet.CloseIdleConnectionsFor(r.client.Client.Transport)
}

// read reads JSON into a value that has the fields to keep. The resolution is empty if there was an answer.
func (r *reader) read(ctx context.Context, p path, into any) resolver.Resolution {
	// Anyone who may write Events and references there can write any name, such as ../../NAMESPACE/pods/NAME.
	if p.selector == "" && len(validation.IsDNS1123Subdomain(p.name)) > 0 {
		return resolver.ResolutionNotFound
	}
	if failure := r.refuses(p); failure != "" {
		return failure
	}
	return r.send(ctx, p, into)
}

// refuses returns why a read is not worth sending; empty if it is.
func (r *reader) refuses(p path) resolver.Resolution {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range []path{p, p.permission()} {
		if failed, ok := r.failed.Get(known); ok && time.Now().Before(failed.until) {
			return failed.failure
		}
	}
	b, now := r.breakers[p.gr()], time.Now()
	if b != nil && b.failures >= failuresInARow && now.Sub(b.retryAt) < openFor {
		if now.After(b.retryAt) && r.ctx.Err() == nil {
			b.retryAt = now.Add(retryAfter)
			r.trials.Go(func() { r.try(p) })
		}
		return b.failure
	}
	limiter, ok := r.namespaces.Get(p.namespace)
	if !ok {
		limiter = rate.NewLimiter(readsPerSecond/2, burst/2)
		r.namespaces.Add(p.namespace, limiter)
	}
	if !limiter.Allow() || !r.all.Allow() {
		return resolver.ResolutionUnavailable
	}
	return ""
}

// permission is what a permission is for: a verb and the resource in the namespace.
func (p path) permission() path {
	return path{group: p.group, resource: p.resource, namespace: p.namespace, name: p.verb()}
}

func (p path) verb() string {
	if p.selector != "" {
		return "list"
	}
	return "get"
}

// try reads in the background, to see whether the resource is answered again.
func (r *reader) try(p path) {
	ctx, cancel := context.WithTimeout(r.ctx, 2*retryAfter)
	defer cancel()
	var nothing struct{}
	r.send(ctx, p, &nothing)
}

func (r *reader) send(ctx context.Context, p path, into any) resolver.Resolution {
	request := r.client.Get().AbsPath(p.absolute()...)
	if p.selector != "" {
		request = request.Param("labelSelector", p.selector).Param("limit", maxItems)
	}
	if p.fields != "" {
		request = request.Param("fieldSelector", p.fields)
	}
	if p.metadataOnly {
		request = request.SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	}
	sentAt := time.Now()
	isAnswered, err := decode(ctx, request, into)
	if errors.Is(ctx.Err(), context.Canceled) {
		return resolver.ResolutionUnavailable // The process or the term ends, which shows nothing.
	}
	r.observer.LookupDone(err, time.Since(sentAt))
	failure := resolver.ResolutionOf(err)
	if failure == resolver.ResolutionTimeout && time.Since(sentAt) < r.timeout/2 {
		return failure // It was sent late, which shows nothing.
	}
	r.note(p, failure, isAnswered)
	return failure
}

// decode sends a request and decodes its answer. isAnswered is true also for one that is too large, or rejects
// the request: it says nothing about other reads.
func decode(ctx context.Context, request *rest.Request, into any) (isAnswered bool, err error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return resolver.IsAnswer(err), err
	}
	defer func() { _ = body.Close() }()
	err = json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(into)
	if cut, ok := into.(interface{ isCut() bool }); ok && err == nil && cut.isCut() {
		err = errors.New("more objects than " + maxItems)
	}
	return true, err
}

func (p path) absolute() []string {
	segments := []string{"api"}
	if p.group != "" {
		segments = []string{"apis", p.group}
	}
	segments = append(segments, p.version, "namespaces", p.namespace, p.resource)
	if p.name != "" {
		segments = append(segments, p.name)
	}
	return segments
}

// note notes how a read ended.
func (r *reader) note(p path, failure resolver.Resolution, isAnswered bool) {
	if failure == resolver.ResolutionForbidden {
		r.observer.Forbidden(p.verb(), p.gr(), p.namespace)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.breakers[p.gr()]
	if b == nil {
		b = &breaker{}
		r.breakers[p.gr()] = b
	}
	r.failed.Add(p, failedRead{failure, time.Now().Add(sharedFor)})
	b.failure = failure
	switch {
	case failure == "":
		b.failures = 0
		r.failed.Remove(p)
	case failure == resolver.ResolutionTimeout:
		b.failures, b.retryAt = failuresInARow, time.Now().Add(retryAfter)
	case failure == resolver.ResolutionUnavailable && !isAnswered:
		b.failures, b.retryAt = b.failures+1, time.Now().Add(retryAfter)
	case failure == resolver.ResolutionForbidden:
		b.failures = 0
		r.failed.Add(p.permission(), failedRead{failure, time.Now().Add(forbiddenFor)})
	default:
		b.failures = 0
	}
}

// list is a list of objects.
type list[T any] struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []T `json:"items"`
}

// isCut reports whether there are more objects: the one that is looked for may be among them.
func (l *list[T]) isCut() bool { return l.Metadata.Continue != "" }

// metadata are the fields of an object's metadata that are kept.
type metadata struct {
	metav1.ObjectMeta `json:"metadata"`
}
