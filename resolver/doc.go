// SPDX-License-Identifier: Apache-2.0

// Package resolver finds out what owns a Kubernetes object: from a reference, as
// an event carries one, up the owner references to the object that nothing owns.
// It knows the metadata of objects of any kind, and nothing of what is done with
// a chain.
//
// # What a chain says
//
// [Resolver.Resolve] always returns a [Chain]. Its first object is the one that
// was asked for, and its [Resolution] says whether its last is the end, or why
// the climb stopped there. The rules are those of Kubernetes:
//
//   - Of several owners the controller is followed, else the only one, else the
//     first, and then the chain is [Ambiguous].
//   - An owner is in its dependent's namespace, or in none if its kind is
//     cluster-scoped. Which it is, the API server says.
//   - UIDs decide. An object that bears the name of another is not the other.
//     Only for Nodes a reference's UID means nothing: kubelet writes the name there.
//   - A reference may name an API version that is not served any more, or none.
//   - What is known stays known for a while when it is deleted, because events
//     of an object often come after its end.
//
// # How it goes
//
// A chain is a climb, and each of its steps is a search for one object. A search
// goes as far as what is remembered takes it, and stops where something has to
// be asked. Then all searches of a call that have stopped ask together: kinds in
// small discovery documents, few objects of one place in single reads, many in
// one list. And so on, until all climbs are over or the time is up.
//
//	resolver.go   Resolve: all climbs of a call, until they are over
//	climb.go      one chain: what follows from an object that was found or not
//	search.go     one object: what is looked for, and how far the search is
//	look.go       taking a search as far as it goes without a request
//	ask.go        asking for what searches lack, and waiting for it
//
//	kinds.go      which kinds are served, by what references call them
//	documents.go  the discovery documents that were read
//	discovery.go  reading them
//	apiversion.go what an apiVersion field means, and where kinds moved on to
//
//	cache.go      objects and failures that are remembered
//	reader.go     reading one object
//	listing.go    reading a list
//	refusals.go   places where reading is not allowed
//
//	calls.go      one call for all who ask the same at the same time
//	gate.go       how many requests go out
//	background.go what goes on after its asker has left, until Close
package resolver
