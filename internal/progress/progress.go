// SPDX-License-Identifier: Apache-2.0

// Package progress notes what was delivered, after it was delivered: a resource version for each
// stream and, in a checkpoint, the counts of the events. A start, a restart and a failover are one case:
// load the progress, list or watch from there, and reconcile with the counts. So the ledger never knows
// more than the exporters have.
//
// There are three places for it: Nowhere, a Checkpoint in a storage extension, and a ConfigMap of the
// cluster, which the leaders of one election share.
package progress

import (
	"context"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/ledger"
)

// Progress stores what one session has delivered. Its methods must not be called concurrently.
type Progress interface {
	// Load fills the ledger that fresh returns with what earlier sessions noted. It retries until it
	// can be read: until then, nothing may be emitted and nothing overwritten. cluster is the UID of
	// the cluster; progress of another one is set aside. It returns nil if the context ends before.
	// superseded is called at most once, if another process has noted progress since.
	Load(ctx context.Context, cluster string, fresh func() *ledger.Ledger, superseded func()) *ledger.Ledger
	// Note notes what the ledger has now. Callers call it when nothing that the ledger knows is
	// undelivered. It does not wait: a goroutine writes it.
	Note()
	// End writes what was noted and is not written yet. It waits until the context ends at most.
	End(ctx context.Context)
}

// Observer reports how the notes get on. Its methods may be called concurrently.
type Observer interface {
	// Failed and Works report whether a part of the receiver works.
	Failed(part, cause, message string, err error)
	Works(part, message string)
	// Unsaved reports that something is not noted yet since then; Saved that everything is.
	Unsaved(since time.Time)
	Saved()
	// NotSaved counts a note that could not be written.
	NotSaved()
}

// Nowhere notes nothing: each start is a first start.
type Nowhere struct{}

// Load returns an empty ledger.
func (Nowhere) Load(_ context.Context, _ string, fresh func() *ledger.Ledger, _ func()) *ledger.Ledger {
	return fresh()
}

// Note does nothing.
func (Nowhere) Note() {}

// End does nothing.
func (Nowhere) End(context.Context) {}

const (
	// RetryRead is the pause between two attempts to read what a session starts with.
	RetryRead = time.Second
	// Slow is the time that such a read may take before the status reports it, and that a write may
	// take before it counts as failed. Storage that ignores the context only delays the next write.
	Slow = 10 * time.Second
)
