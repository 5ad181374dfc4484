// SPDX-License-Identifier: Apache-2.0

package resolver

import "context"

// ResolveLate resolves one reference while each reply comes right after the round that waited for
// it, when fromCache sees the search without the reply.
func (r *Resolver) ResolveLate(ctx context.Context, ref Reference) Chain {
	c := newClimb(ref, r.maxDepth)
	searches := []*search{&c.search}
	for climbs := r.advance([]*climb{&c}); len(climbs) > 0; climbs = r.advance(climbs) {
		r.lookup.request(searches)
		<-c.search.pending.done
		if climbs = r.advance(climbs); len(climbs) > 0 {
			r.lookup.fetch(ctx, searches)
		}
	}
	return c.chain()
}
