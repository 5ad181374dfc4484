// SPDX-License-Identifier: Apache-2.0

package main

// reasons say of generated mutants that nothing finds, by their names, why they are not faults.
var reasons = map[string]string{
	"internal/memory/objects/objects.go New: err != nil: is never so":                           "the configuration allows no negative size",
	"internal/memory/objects/objects.go Use: known: is never so":                                "only slower: the content is compared instead",
	"internal/memory/ledger/deletions.go pop: d.head > len(d.queue)/2: is always so":            "only slower: the queue is copied more often",
	"internal/memory/ledger/ledger.go EndList: s.live == s.seen: is never so":                   "only slower: it looks at all events",
	"internal/memory/ledger/ledger.go Delete: last.scope = l.scope(namespace).id: is left out":  "nothing reads the stream of a deleted event",
	"internal/memory/checkpoint/claim.go makeClaim: s.claim.isStored = err == nil: is left out": "the first write stores the claim once more",
	"internal/leadership/leadership.go Begin: cancelStop(): is left out":                        "only memory: a context that ends later",
	"internal/leadership/leadership.go Started: unfollow(): is left out":                        "only memory: the function does nothing after the term",
	"internal/leadership/leadership.go NoteBeat: gap > pausedAfter: also if equal":              "differs only for one nanosecond",
	"internal/queue/queue.go weightOf: change.Event == nil: is never so":                        "equivalent: no event has the size 0",
	"internal/leadership/elector.go field: !ok: is never so":                                    "equivalent: the value is then the configuration itself, which has another kind",
	"internal/memory/objects/objects.go forget: ok: is always so":                               "equivalent: there is nothing to remove",
	"internal/queue/queue.go fitsLocked: q.weight+e.weight <= q.bound: not if equal":            "a change that fills the queue exactly comes with the next batch",
	"internal/watch/connection.go isEnd: errors.Is(err, io.EOF): does not count":                "equivalent: IsProbableEOF reports it, too",
}

// reasonOf returns why a mutant is not a fault; empty: no reason is known.
func reasonOf(m mutant) string { return reasons[m.name] }
