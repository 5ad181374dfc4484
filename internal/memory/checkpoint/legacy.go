// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// This file reads the checkpoint of the version before. It may be removed with the version after
// the next.
//
//	head            names the runs, and holds the state
//	run/<id>/<n>    entries; those of a later run are newer
//	note            the records that were being delivered
//
// The note is not read: the version before delivered its records before it saved them, so they may
// be delivered again, with the same log.record.uid.
//
// The first write has a complete snapshot. From then on there is a term, so that the old keys are
// garbage. Before, they are not touched.
const (
	legacyVersion = 2

	legacyHeadKey = "head"

	legacyRun  = 'r' // Its id is the span's session.
	legacyNote = 'n'
)

// legacyKey returns the key of what the version before wrote; empty: it is this version's.
func (s span) legacyKey(number uint64) string {
	switch s.Kind {
	case legacyRun:
		return fmt.Sprintf("run/%d/%d", s.Session, number)
	case legacyNote:
		return "note"
	}
	return ""
}

func (s *Store) loadLegacy(ctx context.Context, restore func(Key, []byte) error) (*Loaded, error) {
	stored, err := s.get(ctx, legacyHeadKey)
	if err != nil || stored == nil {
		return nil, err
	}
	body, err := unsealLegacy(stored)
	if err != nil {
		return nil, err
	}
	runs, state, err := decodeLegacyHead(body)
	if err != nil {
		return nil, err
	}
	err = s.each(ctx, runs, func(stored []byte) error { return decodeLegacyChunk(stored, restore) })
	if err != nil {
		return nil, err
	}
	s.journal.converts = true
	s.journal.acknowledged.Snapshot = append([]span{{headKind, 0, 0, 1}, {legacyNote, 0, 0, 1}}, runs...)
	return &Loaded{State: state}, nil
}

// decodeLegacyHead returns the runs that a head names, and the state after them.
func decodeLegacyHead(body []byte) (runs []span, state []byte, err error) {
	number := func() (value uint64) {
		if err == nil {
			value, body, err = consumeVarint(body)
		}
		return value
	}
	number() // the next run's id
	for left := number(); left > 0 && err == nil; left-- {
		id := number()
		number() // its number of entries
		chunks := number()
		if chunks > math.MaxUint32 {
			return nil, nil, errCutShort()
		}
		runs = append(runs, span{legacyRun, id, 0, chunks})
	}
	return runs, body, err
}

// unsealLegacy checks the checksum and the version, and returns what is between them.
func unsealLegacy(stored []byte) ([]byte, error) {
	body, err := unseal(stored)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 || body[0] != legacyVersion {
		return nil, fmt.Errorf("%w: its version is not %d", ErrCorrupt, legacyVersion)
	}
	return body[1:], nil
}

func decodeLegacyChunk(stored []byte, restore func(Key, []byte) error) error {
	body, err := unsealLegacy(stored)
	if err != nil {
		return err
	}
	for len(body) > 0 {
		var key []byte
		if key, body, err = consume(body, uint64(len(Key{}))); err != nil {
			return err
		}
		value, n := protowire.ConsumeBytes(body)
		if n < 0 {
			return errCutShort()
		}
		body = body[n:]
		if len(value) == 0 {
			value = nil // The entry is gone.
		}
		if err := restore(Key(key), value); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
	return nil
}
