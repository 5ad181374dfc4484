// SPDX-License-Identifier: Apache-2.0

package ownersprocessor

import (
	"context"
	"strconv"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// answer is what is known of a subject. Answers are shared, so nobody changes them.
type answer struct {
	attributes pcommon.Map // to add; only if it was found
	outcome    outcome     // 0: it was never looked up
	// isPartial is set if a Namespace or a Node, which tags are taken from, could not be read, or an owner may not be
	// read, which isForbidden says.
	isPartial, isForbidden bool
	isLarge                bool
}

const (
	// maxShared is the maximum number of sets of attributes that answers share.
	maxShared = 4096
	// minLarge is the memory of attributes from which an answer is large.
	minLarge = 2 << 10
)

// lookups finds subjects.
type lookups struct {
	resolver  *resolver.Resolver
	extractor *extract.Extractor
	disabled  semconv.Disabled

	mu     sync.Mutex
	shared *simplelru.LRU[string, pcommon.Map] // by content; guarded by mu
}

func newLookups(r *resolver.Resolver, extractor *extract.Extractor, disabled semconv.Disabled) *lookups {
	return &lookups{resolver: r, extractor: extractor, disabled: disabled, shared: newLRU[string, pcommon.Map](maxShared, nil)}
}

// find looks up a subject. What the resolver collects from many calls, it requests together.
func (l *lookups) find(ctx context.Context, s subject) answer {
	var objects []*resolver.Object
	var others sync.WaitGroup
	named := l.named(s)
	if len(named) > 0 {
		others.Go(func() { objects = l.resolver.Objects(ctx, named) })
	}
	chain := l.resolver.Resolve(ctx, []resolver.Reference{s.reference()})[0]
	others.Wait()
	// Of an object that may not be read, the owners are not known: it need not be its own workload.
	if !chain.Objects[0].Found() || chain.End() == nil {
		return answer{outcome: outcomeOf(chain.Resolution)}
	}
	if s.kind == nodeKind && s.uid != "" && s.uid != string(chain.Objects[0].UID) {
		return answer{outcome: outcomeNotFound}
	}
	return l.answer(s, chain, objects)
}

func (s *subject) reference() resolver.Reference {
	k := kinds[s.kind]
	return resolver.Reference{APIVersion: k.apiVersion, Kind: k.kind, Namespace: s.namespace, Name: s.name, UID: types.UID(s.uid)}
}

// named returns the objects, in addition to the chain, that tags are taken from.
func (l *lookups) named(s subject) (references []resolver.Reference) {
	uses := l.extractor.Uses()
	if uses.Namespace && s.namespace != "" {
		references = append(references, resolver.Reference{APIVersion: "v1", Kind: "Namespace", Name: s.namespace})
	}
	if uses.Node && s.node != "" {
		references = append(references, resolver.Reference{APIVersion: "v1", Kind: "Node", Name: s.node})
	}
	return references
}

// answer returns what a chain, and the other objects, show of a subject.
func (l *lookups) answer(s subject, chain resolver.Chain, objects []*resolver.Object) answer {
	a := answer{attributes: pcommon.NewMap(), outcome: outcomeFound}
	from := extract.Sources{Chain: chain.Objects, Known: true, Container: s.container}
	for _, object := range objects {
		a.isPartial = a.isPartial || !object.Found()
		if object.GroupKind() == semconv.Namespace {
			from.Namespace = object
		} else {
			from.Node = object
		}
	}
	a.isForbidden = chain.Resolution == resolver.ResolutionForbidden
	a.isPartial = a.isPartial || a.isForbidden
	put := semconv.Writer(a.attributes)
	put.Owners(chain)
	l.disabled.RemoveFrom(a.attributes)
	for _, tag := range l.extractor.Tags(from).Resource {
		put.StringIfNew(tag.Name, tag.Value)
	}
	l.share(&a)
	return a
}

// share lets equal answers have the same attributes, unless they are large. The pods of a workload usually do.
func (l *lookups) share(a *answer) {
	var content []byte
	for name, value := range a.attributes.All() {
		content = strconv.AppendQuote(strconv.AppendQuote(content, name), value.AsString())
	}
	if a.isLarge = len(content) >= minLarge; a.isLarge {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.shared.Get(string(content)); ok {
		a.attributes = known
		return
	}
	l.shared.Add(string(content), a.attributes)
}
