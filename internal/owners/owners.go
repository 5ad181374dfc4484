// SPDX-License-Identifier: Apache-2.0

// Package owners adds the owners of the involved objects to the observations of a batch, and the
// labels and annotations that are extracted from the chain.
package owners

import (
	"context"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Owners adds chains to observations. Its methods must not be called concurrently.
type Owners struct {
	resolver  *resolver.Resolver // nil: owners are not looked up
	extractor *extract.Extractor
}

// New returns an Owners that uses the resolver. If it is nil, owners are not looked up: a chain has
// only the involved object as the event refers to it.
func New(r *resolver.Resolver, extractor *extract.Extractor) *Owners {
	return &Owners{resolver: r, extractor: extractor}
}

// Resolve adds to each observation the owners of its involved object, as far as they are known
// before the context ends.
func (o *Owners) Resolve(ctx context.Context, observations []observation.Observation) {
	if o.resolver == nil {
		o.NameInvolved(observations)
		return
	}
	o.add(observations, func(references []resolver.Reference) []resolver.Chain {
		return o.resolver.Resolve(ctx, references)
	})
}

// NameInvolved adds to each observation only the involved object as the event refers to it.
func (o *Owners) NameInvolved(observations []observation.Observation) {
	o.add(observations, func(references []resolver.Reference) []resolver.Chain {
		chains := make([]resolver.Chain, len(references))
		for i, ref := range references {
			chains[i].Objects = []*resolver.Object{ref.Object()}
		}
		return chains
	})
}

// Restore gives the resolver objects that were found before a restart.
func (o *Owners) Restore(objects []*resolver.Object) {
	if o.resolver != nil {
		o.resolver.Restore(objects)
	}
}

// Kept returns which labels and annotations the objects of chains have.
func (o *Owners) Kept() extract.Kept { return o.extractor.Kept() }

// Strain returns how long to wait before the next batch is resolved, so that lookups do not strain
// the API server.
func (o *Owners) Strain() time.Duration {
	if o.resolver == nil {
		return 0
	}
	return o.resolver.Strain()
}

// add adds the chains that find returns. find gets each distinct object once.
func (o *Owners) add(observations []observation.Observation, find func([]resolver.Reference) []resolver.Chain) {
	if len(observations) == 0 {
		return
	}
	references := make([]resolver.Reference, 0, len(observations))
	index := make(map[resolver.Reference]int, len(observations))
	indexes := make([]int, len(observations))
	for i := range observations {
		ref := event.Involved(observations[i].Event)
		n, ok := index[ref]
		if !ok {
			n = len(references)
			index[ref] = n
			references = append(references, ref)
		}
		indexes[i] = n
	}
	chains := find(references)
	tags := make([][]extract.Tag, len(chains))
	for i, chain := range chains {
		tags[i] = o.extractor.Tags(chain.Objects)
	}
	for i := range observations {
		n := indexes[i]
		observations[i].Chain, observations[i].Tags = chains[n], tags[n]
	}
}
