// SPDX-License-Identifier: Apache-2.0

// Package watch streams the changes of Events: list, watch, resume, relist, back off. It knows
// nothing of how callers use the changes, and keeps no copy of an event.
//
// The package does not use client-go's Reflector. It passes on a list as one slice or one temporary
// store, and there are clusters with a million live events.
package watch

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// Kind is the kind of a Change.
type Kind int

// A list is KindListBegan, a KindListed for each existing event, and KindListEnded. In a list at an
// exact resource version (Settings.ExactAt), the events are KindExisting. A list that fails has no
// KindListEnded: the next list starts from scratch. Changes from a watch come outside lists, in the
// API server's order.
const (
	KindListBegan Kind = iota
	KindListed
	KindListEnded
	KindChanged
	KindDeleted
	// KindExisting is an event as it was at Settings.ExactAt.
	KindExisting
	// KindWentBack means that the resource versions of the cluster went back: those that came before
	// mean nothing any more. A list follows.
	KindWentBack
	// KindBookmark means that all changes up to its ResourceVersion have come, also if there were
	// none.
	KindBookmark
)

// Change is one message of the stream.
type Change struct {
	Kind      Kind
	Namespace string        // the namespace of the stream; empty for the whole cluster's
	Event     *corev1.Event // nil for KindListBegan, KindListEnded, KindWentBack and KindBookmark
	SeenAt    time.Time     // when the receiver read it
	// ResourceVersion is the version from which a stream can resume once the receiver has processed
	// this change and those before it. It is empty within a list, which must start from scratch.
	ResourceVersion string
}

// Cause is why a watch restarted.
type Cause string

const (
	CauseEnded        Cause = "ended"        // the server closed it, as it does every few minutes
	CauseExpired      Cause = "expired"      // 410 Gone: the resource version is gone; a list follows
	CauseUnauthorized Cause = "unauthorized" // 401: a token that is no longer, or not yet, valid
	CauseForbidden    Cause = "forbidden"    // 403: a permission is missing
	CauseUnavailable  Cause = "unavailable"  // the connection failed, or the server answered 429 or 5xx
	CauseSilent       Cause = "silent"       // the server did not answer a request
	CauseIdle         Cause = "idle"         // nothing came over an open watch, not even its end
)

// IsFailure reports whether the stream could not just resume, or list.
func (c Cause) IsFailure() bool { return c != CauseEnded && c != CauseExpired }

// Observer observes the streams. Each stream calls it from its own goroutine. Its methods must not
// block.
type Observer interface {
	// Arrived is called for each event before the stream passes it on.
	Arrived()
	// Withdrawn is called for each event that the Taker did not take before the stream ended. The next
	// stream reads it again.
	Withdrawn()
	// Answered is called when a watch of the namespace is open. It is also called when the API server
	// has answered a list, unless the stream has failed: it may fail again before the list is complete.
	Answered(namespace string)
	// Restarting is called when a stream has ended. err is nil if the server ended it normally.
	Restarting(namespace string, cause Cause, err error)
	// WentBack is called when the store's version is below one that the stream knows.
	WentBack(namespace string, known, now uint64)
}

// Taker takes the changes of the streams. Its methods are called concurrently. Each stream calls
// Put from its own goroutine.
type Taker interface {
	// Put takes a change. It may wait until the context ends. If it returns an error, it has not
	// taken the change.
	Put(context.Context, Change) error
}

// Settings select what to stream, and have the Taker of the changes.
type Settings struct {
	Client rest.Interface
	// Watches is the client for watches, of a Paced configuration; nil: Client.
	Watches       rest.Interface
	Namespace     string // empty: the whole cluster
	FieldSelector string // empty: everything
	// ResourceVersion is the version from which to resume. If it is empty, or the server no longer
	// has it, the stream starts with a list.
	ResourceVersion string
	// ExactAt is the resource version up to which an earlier leader has delivered. It is used if ResourceVersion is
	// empty: the stream lists the events as of that version and watches from it. If the server does
	// not have the version, the stream lists as usual. Empty: not used.
	ExactAt  string
	Taker    Taker
	Observer Observer
	// Pages bounds how many pages of lists are in memory. Several streams may share it.
	Pages *semaphore.Weighted
	// Keep drops unused fields from an event; nil: nothing is dropped.
	Keep func(*corev1.Event)
}
