// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
)

// smallLimits make the environments reach limits of the receiver that they are too small for. None
// of them excuses a broken promise. (A small limit of what windows of dedup_interval hold would:
// they then end early.) The receiver has no setting for them: this costs it nothing.
var smallLimits = []change{
	{"queues 64 KiB", "internal/queue/queue.go", "openBytes = 4 << 20", "openBytes = 64 << 10"},
	{"queues 256 KiB as a standby", "internal/queue/queue.go", "closedBytes = 16 << 20", "closedBytes = 256 << 10"},
	{"takes 7 changes at once", "internal/session/batch.go", "batchChanges = 500", "batchChanges = 7"},
	{"takes 40 KiB of records at once", "internal/session/batch.go", "batchBytes = 4 << 20", "batchBytes = 40 << 10"},
	{"delivers 4 KiB in a request", "internal/session/pipeline.go", "requestBytes = 1_000_000", "requestBytes = 4 << 10"},
	{"saves 5 changes without a record", "internal/session/checkpoints.go", "unsavedChanges = 1000", "unsavedChanges = 5"},
	{"saves 20 KiB without a record", "internal/session/checkpoints.go", "unsavedBytes = 2 << 20", "unsavedBytes = 20 << 10"},
	{"has less of a snapshot in a write of 4 KiB", "internal/memory/checkpoint/journal.go", "writeBytes = 10 << 20", "writeBytes = 4 << 10"},
	{"begins a snapshot after 2 KiB", "internal/memory/checkpoint/journal.go", "minJournal = 96 << 10", "minJournal = 2 << 10"},
	{"deletes 2 keys in a write", "internal/memory/checkpoint/journal.go", "deletesPerWrite = 256", "deletesPerWrite = 2"},
	{"ends 3 windows at once", "internal/memory/dedup/dedup.go", "mostEnded = 2000", "mostEnded = 3"},
	{"emits 2 KiB of points in a request", "internal/memory/tally/metrics.go", "requestBytes = 1_000_000", "requestBytes = 2 << 10"},
	{"remembers 2 failed lookups", "resolver/cache.go", "maxFailures = 10_000", "maxFailures = 2"},
}

// runSmall runs environments with all small limits together. It returns an error if one of them
// breaks a promise.
func runSmall(ctx context.Context, seeds int) error {
	s, err := newSearch(ctx, map[string]string{}, seeds, 0)
	if err != nil {
		return err
	}
	defer s.close()
	r, err := s.receiver(map[string]string{}, smallLimits...)
	if err != nil {
		return err
	}
	v, err := r.breaks(ctx, 1, seeds)
	switch {
	case err != nil:
		return err
	case v.promise != "":
		return fmt.Errorf("with small limits, seed %d breaks %q: %s", v.seed, v.promise, v.how)
	}
	fmt.Fprintf(os.Stdout, "%d environments with small limits: all promises are kept\n", seeds)
	return nil
}
