// SPDX-License-Identifier: Apache-2.0

package resolver

import "context"

// ResolveLate resolves one reference while each answer comes right after the round in which it was waited for, when the
// search is looked at without it.
func (r *Resolver) ResolveLate(ctx context.Context, ref Reference) Chain {
	c := newClimb(ref, r.maxDepth)
	searches := []*search{&c.search}
	for climbs := r.advance([]*climb{&c}); len(climbs) > 0; climbs = r.advance(climbs) {
		r.lookup.request(searches)
		<-c.search.ticket.done
		if climbs = r.advance(climbs); len(climbs) > 0 {
			r.lookup.ask(ctx, searches)
		}
	}
	return c.chain()
}
