// SPDX-License-Identifier: Apache-2.0

// Package owners adds the owners of the involved objects to the observations of a batch, and the
// labels and annotations that are extracted: from the chain, the Namespace, the Node and the Event.
package owners

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Owners adds chains and tags to observations. Its methods must not be called concurrently.
type Owners struct {
	resolver  *resolver.Resolver // nil: owners are not looked up
	extractor *extract.Extractor
}

// New returns an Owners that uses the resolver. If it is nil, nothing is looked up: a chain has
// only the involved object as the event refers to it, and only the Event gives tags.
func New(r *resolver.Resolver, extractor *extract.Extractor) *Owners {
	return &Owners{resolver: r, extractor: extractor}
}

// Resolve adds to each observation the owners of its involved object, and its tags, as far as they
// are known before the context ends. Everything that the observations need is looked up at the same
// time.
func (o *Owners) Resolve(ctx context.Context, observations []observation.Observation) {
	if o.resolver == nil {
		o.nameInvolved(observations)
		return
	}
	if len(observations) == 0 {
		return
	}
	l := newLookups(observations, o.extractor.Uses())
	l.resolve(ctx, o.resolver)
	o.add(observations, l)
}

// nameInvolved adds to each observation only the involved object as the event refers to it, and the
// tags of the Event.
func (o *Owners) nameInvolved(observations []observation.Observation) {
	l := newLookups(observations, extract.Uses{Event: o.extractor.Uses().Event})
	l.chains = make([]resolver.Chain, len(l.references))
	for i, ref := range l.references {
		l.chains[i].Objects = []*resolver.Object{ref.Object()}
	}
	o.add(observations, l)
}

// Keep keeps only the labels and annotations of an event that are used.
func (o *Owners) Keep(ev *corev1.Event) {
	event.Keep(ev, o.extractor.KeepEventLabel, o.extractor.KeepEventAnnotation)
}

// add adds what was found. Observations that need the same objects share their tags, unless tags
// are taken from the Event, too.
func (o *Owners) add(observations []observation.Observation, l *lookups) {
	shared := make(map[needs]extract.Tags, len(l.chains))
	for i := range observations {
		one := &observations[i]
		chain, n := l.chain(l.needs[i], one.Event)
		tags, ok := shared[n]
		if !ok || l.uses.Event {
			tags = o.extractor.Tags(l.sources(n, chain.Objects, one.Event))
			shared[n] = tags
		}
		one.Chain, one.Tags = chain, tags
	}
}
