// SPDX-License-Identifier: Apache-2.0

package main

// reasons say of generated mutants that nothing finds, by their names, why they are not faults.
var reasons = map[string]string{
	"internal/loop/sums.go emit: m.next == nil: is never so":                                                        "equivalent: without a pipeline, there are no sums",
	"internal/loop/pipeline.go convert: half > 0: does not count":                                                   "differs only for one record of more than 1 MiB: its texts are cut",
	"internal/ledger/counts.go EndList: s.live == s.seen: is never so":                                              "only slower: it looks at all events",
	"internal/ledger/counts.go Delete: last.stream = l.streams.get(namespace).Number: is left out":                  "nothing reads the stream of a deleted event",
	"internal/election/election.go Begin: cancelStop(): is left out":                                                "only memory: a context that ends later",
	"internal/election/election.go NoteBeat: gap > pausedAfter: also if equal":                                      "differs only for one nanosecond",
	"internal/queue/queue.go weightOf: change.Event == nil: is never so":                                            "equivalent: no event has the size 0",
	"internal/election/election.go Begin: cancelDrain(): is left out":                                               "only memory: a context that ends later",
	"internal/election/election.go either: stop(): is left out":                                                     "only memory: a context that ends later",
	"internal/election/election.go either: cancel(): is left out":                                                   "only memory: a context that ends later",
	"internal/election/election.go end: t != l.last: does not count":                                                "differs only if a context ends within microseconds of the next term's beginning",
	"internal/election/lease.go NewLease: err != nil: is never so":                                                  "equivalent: the types are always known; without a client, the first read fails",
	"internal/election/lease.go look: !unchanged: does not count":                                                   "equivalent: it is read only if the lease has changed",
	"internal/election/lease.go Watch: l.looked = false: is left out":                                               "equivalent: a leader renews the lease, so that it has changed",
	"internal/delivery/delivery.go checkLocked: d.since.IsZero(): does not count":                                   "differs only if the timer fires within microseconds of an acceptance",
	"internal/watch/connection.go listPages: err != nil: is never so":                                               "equivalent: the context has ended, and the next request fails",
	"internal/watch/connection.go page: len(body) < maxPage/2: also if equal":                                       "differs only at one size: the next page may have more events",
	"internal/watch/connection.go page: len(body) > maxPage: also if equal":                                         "differs only at one size: the page is requested again",
	"internal/watch/stream.go Run: time.Since(opened) < minUptime: also if equal":                                   "differs only for one nanosecond",
	"internal/watch/stream.go Run: time.Since(opened) > minUptime: also if equal":                                   "differs only for one nanosecond",
	"internal/ledger/counts.go isNewerThan: version > other.resourceVersion.uint64(): also if equal":                "equivalent: two objects have no version in common",
	"internal/series/metrics.go request: size > requestBytes: also if equal":                                        "differs only at one size",
	"internal/series/metrics.go Metrics: !yield(request): is never so":                                              "equivalent: the receiver reads all requests",
	"internal/series/metrics.go write: attributes.EnsureCapacity(2 + len(names) + len(s.series.tags)): is left out": "only slower",
	"internal/series/series.go seriesLocked: id.tags = slices.Clone(id.tags): is left out":                          "only memory: the tags of an observation do not change",
	"internal/series/series.go startLocked: ended: is always so":                                                    "equivalent: the time is then zero, and not later",
	"internal/series/series.go Expire: last.Before(oldest): is never so":                                            "only memory: of series that have ended",
}

// reasonOf returns why a mutant is not a fault; empty: no reason is known.
func reasonOf(m mutant) string { return reasons[m.name] }
