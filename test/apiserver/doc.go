// SPDX-License-Identifier: Apache-2.0

// Package apiserver simulates the part of a Kubernetes API server, with etcd behind it, that the
// receiver, its resolver and client-go's leader election use. It is made for testing/synctest: it
// waits for timers and channels only, and holds its lock neither while it waits nor while it writes
// to a connection.
//
// A simulation that forgives more than the real server makes each test on top of it worthless. So
// e2e/simulation sends the same random requests to this server and to a real one, and compares the
// answers.
//
// These simplifications are deliberate:
//   - Objects are answered in protobuf only, whole or as metadata. A client must ask for it in the
//     first clause of its Accept header; other clauses and qualities (q=) are not read. Errors are
//     JSON where the client prefers metadata. A client that asks for JSON gets the newest objects whole,
//     without pages.
//   - Discovery is JSON only and aggregated only, and has only the fields that clients need to read
//     objects.
//   - Writes are not validated, defaulted, admitted or given managedFields. Namespaces need not
//     exist. Objects are deleted only in process. There is no PATCH, no generateName, and no group
//     events.k8s.io.
//   - Field selectors name only some fields of events. Other fields, and label selectors, are
//     refused. GET takes no resource version other than 0.
//   - Lists are not streamed: the feature gate WatchList is off.
//   - A list at a compacted version comes without a token to continue as it is now.
//   - Nobody needs a permission: Options.Decide refuses requests.
//   - A write is seen by all watches at once. etcd needs up to 100 ms for a watch from an old
//     version, within which a compaction makes the version too old. Leases expire at once, too;
//     etcd looks for expired ones every 500 ms.
//   - All watch caches are behind by Options.CacheLag, and read "progress" from etcd at once: an
//     idle kind's bookmarks and lists have the newest version. Consistent reads do not wait for
//     the cache.
//   - Lists at an exact version never come from the snapshots of a watch cache. The real server
//     notices a compaction there up to 15 seconds late.
//   - A watch cache holds the last 100 changes of a kind, and all that were not compacted.
//   - The default timeout of watches is fixed.
//   - Requests have no time limit of 60 seconds, and no rate limit.
package apiserver
