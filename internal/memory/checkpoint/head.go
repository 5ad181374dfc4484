// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
)

// version is the number of the format. A change of the format after a release increases it, and the
// package then also reads the version before.
const version = 1

// ErrCorrupt is returned for a checkpoint that is incomplete, or that this version cannot read.
var ErrCorrupt = errors.New("the checkpoint is corrupt")

const (
	termKey     = "term"
	claimKey    = "claim"
	setAsideKey = "set-aside"
)

// The kinds of keys that are written once, and of heads.
const (
	journalKind  = 'j'
	snapshotKind = 's'
	outboxKind   = 'o'
	headKind     = 'h' // The session is the term.
)

// span names the keys of one kind and session from a number up to, but without, another.
type span struct {
	Kind    byte   `json:"k"`
	Session uint64 `json:"s"`
	From    uint64 `json:"f"`
	To      uint64 `json:"n"`
}

func (s span) key(number uint64) string {
	if s.Kind == headKind {
		return headKey(s.Session)
	}
	// Numbers of one length sort in the order in which they are written, so that storages that
	// sort their keys append.
	return fmt.Sprintf("%c/%d/%016x", s.Kind, s.Session, number)
}

func headKey(term uint64) string { return fmt.Sprintf("head/%d", term) }

// extend returns the spans with one more key.
func extend(spans []span, kind byte, session, number uint64) []span {
	if last := len(spans) - 1; last >= 0 && spans[last].Session == session && spans[last].To == number {
		spans[last].To++
		return spans
	}
	return append(spans, span{kind, session, number, number + 1})
}

// head names the parts of a checkpoint. Numbers only grow.
type head struct {
	Version int    `json:"version"`
	Term    uint64 `json:"term"`
	// Next has the number of the next key of each kind.
	Next map[string]uint64 `json:"next"`

	// Snapshot is complete. Journal has what has changed since it began.
	Snapshot []span `json:"snapshot,omitempty"`
	Journal  []span `json:"journal,omitempty"`
	// Building is the part of the next snapshot that is written, and Since has what has changed
	// since that one began. While no snapshot is being written, both are empty and Journal grows.
	Building []span `json:"building,omitempty"`
	Since    []span `json:"since,omitempty"`

	// Outbox has the requests to deliver.
	Outbox []span `json:"outbox,omitempty"`
	// Starts is how often a session has begun with this outbox.
	Starts int `json:"starts,omitempty"`
	// Garbage is no longer needed, and not all of it is deleted.
	Garbage []span `json:"garbage,omitempty"`

	// The sizes of Snapshot, Journal, Since and Building, in bytes.
	SnapshotBytes int `json:"snapshotBytes,omitempty"`
	JournalBytes  int `json:"journalBytes,omitempty"`
	SinceBytes    int `json:"sinceBytes,omitempty"`
	BuildingBytes int `json:"buildingBytes,omitempty"`

	// Former has the numbers of terms whose heads still exist.
	Former []uint64 `json:"former,omitempty"`

	State json.RawMessage `json:"state,omitempty"` // the caller's
}

func (h *head) encode() []byte {
	written, _ := json.Marshal(h) // It has no type that cannot be encoded.
	return seal(written)
}

func decodeHead(stored []byte) (head, error) {
	body, err := unseal(stored)
	if err != nil {
		return head{}, err
	}
	var h head
	if err := json.Unmarshal(body, &h); err != nil {
		return head{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if h.Version != version {
		return head{}, fmt.Errorf("%w: its version is %d, this program reads %d", ErrCorrupt, h.Version, version)
	}
	if h.Next == nil {
		h.Next = map[string]uint64{}
	}
	return h, nil
}
