// SPDX-License-Identifier: Apache-2.0

// Package resolver finds the owners of a Kubernetes object. It starts at a reference, as an event
// has one, and follows the owner references up to the object that has no owner. It knows the
// metadata of objects of any kind. It knows nothing of how callers use a chain.
//
// # What a chain contains
//
// [Resolver.Resolve] always returns a [Chain]. Its first object is the requested one. Its
// [Resolution] reports whether the last object is the end of the chain, or why the climb stopped
// there. The rules are those of Kubernetes:
//
//   - If an object has several owners, the resolver follows the controller, else the only owner,
//     else the first one. In the last case the chain is [Ambiguous].
//   - An owner is in its dependent's namespace, or in no namespace if its kind is cluster-scoped.
//     The API server reports which it is.
//   - UIDs decide. Another object with the same name is another object. Only for Nodes, the UID of
//     a reference means nothing: kubelet writes the node's name there.
//   - A reference may name an API version that is no longer served, or none.
//   - A deleted object stays in the cache for a while, because its events often arrive later.
//
// # How it works
//
// A chain is a climb. Each step of the climb is a search for one object. A search first uses the
// cache, and stops when it needs a request. Then all stopped searches of a call send their requests
// together: small discovery documents for kinds, single GETs for a few objects of one collection,
// one list for many. This repeats until all climbs are done or the time is up.
//
//	resolver.go   Resolve: all climbs of a call
//	climb.go      one chain: what follows when an object is found or not found
//	search.go     one object: what the search needs, and how far it is
//	fromcache.go  continue a search without a request
//	fetch.go      send the missing requests, and wait for them
//
//	kinds.go      which kinds are served, by the names that references use
//	documents.go  the discovery documents that were read
//	discovery.go  read discovery documents
//	apiversion.go parse apiVersion fields; kinds that moved to another group
//
//	cache.go      objects and failed lookups
//	stored.go     objects that outlive the process
//	lru.go        bounded maps for everything else that is remembered
//	reader.go     read one object
//	listing.go    read a list
//	watcher.go    watch a kind while many new objects appear
//	refusals.go   collections that the resolver may not read
//
//	flight.go     one call for all callers that need the same
//	limiter.go    how many requests are sent
//	background.go requests that outlive their callers, until Close
package resolver
