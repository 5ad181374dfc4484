// SPDX-License-Identifier: Apache-2.0

// Package memory is what the receiver remembers: of each event its count (the ledger), the open
// windows of dedup_interval, the sums of the metric, where each stream resumes, and the objects of
// owner chains. It has no clock and no I/O.
//
// A checkpoint of the memory is a set of entries by key, and a small state. Package checkpoint
// saves those that change.
package memory
