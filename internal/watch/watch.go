// SPDX-License-Identifier: Apache-2.0

// Package watch is the stream of changes to Events: list, watch, resume, relist, back off. It knows
// nothing of what is done with them and keeps no copy of any.
//
// client-go's Reflector is not used because it passes on a listing as one slice (or one temporary
// store), and clusters with a million live events exist.
package watch

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// Kind is what a Change tells.
type Kind int

// A listing is ListBegan, a Listed for each event that exists, and ListEnded. In a listing at an
// exact resource version (Config.ExactAt), the events are Existing. A listing that fails is not
// ended: the next one starts from scratch. Changes that the watch sees come outside listings, in
// the API server's order.
const (
	ListBegan Kind = iota
	Listed
	ListEnded
	Changed
	Deleted
	// Existing is an event as it was at Config.ExactAt.
	Existing
	// Restored means that the resource versions of the cluster went back (etcd was restored from a
	// backup): they cannot be compared with those of former changes. A listing follows.
	Restored
)

// Change is one message of the stream.
type Change struct {
	Kind      Kind
	Namespace string        // the namespace of the stream; empty for the whole cluster's
	Event     *corev1.Event // nil for ListBegan, ListEnded and Restored
	SeenAt    time.Time     // when it arrived
	// ResourceVersion is where a stream can resume once this change and those before it are dealt
	// with. It is empty within a listing, which has to begin again.
	ResourceVersion string
	// Restores is how often the resource versions of the cluster had gone back when the stream
	// connected. Versions of changes that differ in it must not be compared.
	Restores int
}

// Cause is why a watch began again.
type Cause string

const (
	Ended        Cause = "ended"        // the server closed it, as it does every few minutes
	Expired      Cause = "expired"      // 410 Gone: the server does not have the resource version; a relist follows
	Unauthorized Cause = "unauthorized" // 401: a token that is no longer, or not yet, valid
	Forbidden    Cause = "forbidden"    // 403: a permission is missing
	Unavailable  Cause = "unavailable"  // the connection failed, or the server said 429 or 5xx
	Silent       Cause = "silent"       // the connection stands but nothing comes
	Stalled      Cause = "stalled"      // the receiver closed it, because it cannot take more events
)

// Observer is told how a stream fares. Its methods are called by each stream's own goroutine and
// must not block.
type Observer interface {
	// Arrived is called for each event before it is passed on.
	Arrived()
	// Healthy is called when a stream of the namespace is open.
	Healthy(namespace string)
	// Restarting is called when a stream has ended. err is nil if the server ended it in good
	// order.
	Restarting(namespace string, cause Cause, err error)
	// WentBack is called when the cluster's resource version is below a known one, once for all
	// streams that share a Versions. It names the namespace of the stream that detected it.
	WentBack(namespace string, known, now uint64)
}

// Taker takes what the streams bring. Its methods are called concurrently, Put by each stream's own
// goroutine.
type Taker interface {
	// Put takes a change. It may wait until the context ends. If it returns an error, it has not
	// taken the change.
	Put(context.Context, Change) error
	// Flush is called when a stream waits for more, so that what was put need not wait. It must not
	// block.
	Flush()
	// Connected returns a context that ends when nothing has been taken for too long: the streams
	// then close their connections.
	Connected() context.Context
	// Await waits until streams may connect. It returns the context's error if that ends first.
	Await(context.Context) error
}

// Bursts lets a stream that has been read to its end wait until a burst has come, instead of being
// woken for each of its parts.
type Bursts interface {
	// Count is how many there were.
	Count() uint64
	// Await waits until there were more than so many, or for a while.
	Await(count uint64)
}

// Config says what to stream and where to.
type Config struct {
	Client        rest.Interface
	Namespace     string // empty: the whole cluster
	FieldSelector string // empty: everything
	// ResourceVersion is where to resume; empty begins with a listing, as does one that the server
	// no longer keeps.
	ResourceVersion string
	// ExactAt is the resource version of a published position, used if ResourceVersion is empty:
	// the stream lists the events as of that version and watches from it. If the server no longer
	// has the version, or does not have it yet, the stream lists as usual. Empty: not used.
	ExactAt  string
	Versions *Versions // shared by all streams of a cluster; nil: versions that go back are not detected
	Taker    Taker
	Bursts   Bursts // nil: the stream is read as it comes
	Observer Observer
}
