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
	{"queues 64 KiB", "internal/queue/queue.go", "maxBytes = 4 << 20", "maxBytes = 64 << 10"},
	{"lists 100 events in a page", "internal/watch/connection.go", "pageSize = 2000", "pageSize = 100"},
	{"takes 7 changes at once", "internal/loop/batch.go", "batchChanges = 500", "batchChanges = 7"},
	{"delivers 4 KB in a request", "internal/loop/pipeline.go", "requestBytes = 1_000_000", "requestBytes = 4_000"},
	{"begins a snapshot after 2 KiB", "internal/journal/journal.go", "minSize = 4 << 20", "minSize = 2 << 10"},
	{"writes 2 KiB in a part of a snapshot", "internal/progress/checkpoint.go", "chunkBytes = 1 << 20", "chunkBytes = 2 << 10"},
	{"ends 3 windows at once", "internal/ledger/windows.go", "mostEnded = 2000", "mostEnded = 3"},
	{"emits 2 KB of points in a request", "internal/series/metrics.go", "requestBytes = 1_000_000", "requestBytes = 2_000"},
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
