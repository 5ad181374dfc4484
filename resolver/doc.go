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
//     else the first one. In the last case the chain is [ResolutionAmbiguous].
//   - An owner is in its dependent's namespace, or in no namespace if its kind is cluster-scoped.
//     The API server reports which it is.
//   - UIDs decide. Another object with the same name is another object. Only for Nodes, the UID of
//     a reference means nothing: kubelets write the node's name there, or the UID of a Node that has
//     been created again since. A static pod has two UIDs: a kubelet's events have the hash of its
//     manifest, and the chain has that of its mirror pod.
//   - A reference may name an API version that is no longer served, or none.
//   - A deleted object stays in the cache for a while, because its events often arrive later.
//
// # How it works
//
// Each chain is a climb: straight-line code that finds one object after the other, in a goroutine of
// its own if it needs requests. A climb that needs an object waits. The loader collects for 2 ms what
// climbs (those of other calls, too) wait for, and requests each object once: by itself, or in a list
// of its namespace or of the whole cluster. A list is read if it has at most 20 objects for each
// one that is needed. A short first page shows its size. Each page answers the climbs that want its
// objects.
//
//	resolver.go   Resolve: climbs that need no request, and the goroutines of the others
//	climb.go      one chain, object by object
//	chain.go      references, objects and chains, as callers see them
//	settings.go   the limits, and what observes the requests
//
//	loader.go     what climbs wait for, and the requests that bring it
//	plan.go       which lists are worth being read
//
//	fetch.go      one request after the other, and what is kept of an object
//	limiter.go    how many requests are in flight
//	breaker.go    kinds whose requests hang or fail
//	clients.go    the API server's clients, and what their errors mean
//
//	cache.go      objects and failed lookups
//	large.go      the memory of objects with many labels and annotations
//	background.go requests that outlive their callers
//
//	internal/kinds    which kinds are served, by the names that references use
//
// Three types have a lock: loader, limiter and breakers, in addition to the cache. Each lock guards
// the fields of its own file. Files share only plain values: references, keys, objects and answers.
// The planner has no lock. It is used under that of the loader, sends nothing, and has no clock.
package resolver
