// SPDX-License-Identifier: Apache-2.0

// Package checkpoint saves the receiver's memory through the Collector's storage API, as a journal
// with snapshots, together with the outbox.
//
// Each save is one write. It holds the entries that have changed (a part of the journal), the
// requests that are about to be delivered (the outbox), a part of the next snapshot, and the head,
// which names everything that belongs to the checkpoint. To load a checkpoint, read the entries of
// the complete snapshot and then those of the journal since that snapshot began: the last value of
// an entry is the present one. A snapshot may therefore be written over many saves while its
// entries change: the journal since its beginning has every change.
//
// Only the head is overwritten. Every other key is written once, and deleted one write after the
// head that no longer names it was acknowledged. So every prefix of a write leaves a complete
// checkpoint, the one before or the new one, and a write that arrives late destroys nothing that a
// newer head names.
//
// A write may arrive late, after others that were acknowledged. So each session has heads of its
// own, and after a write that was not acknowledged at once, it begins another head. The number of a
// head is its term. A late write then reaches a head that nobody reads. It may also name its term
// as the present one; so the present term is the last one whose head follows the named one, and
// each write looks whether its term is still named. Two sessions that loaded the same checkpoint
// begin the same term. Their other keys differ by a random number, so that a late write of the
// first session lasts only until the next write of the second.
//
// Two processes may use one storage. Each session claims the storage before it reads the
// checkpoint, and looks with each write whether its claim is still the last one: see claim. Claims
// grow with time, so that one which arrives late differs from that of a later session.
//
//	claim                  the number of the last session's claim
//	term                   the number of a term
//	head/<term>            the head
//	j/<session>/<number>   entries of the journal
//	s/<session>/<number>   entries of a snapshot
//	o/<session>/<number>   a request of the outbox
//	set-aside              the term of a checkpoint that was set aside
package checkpoint
