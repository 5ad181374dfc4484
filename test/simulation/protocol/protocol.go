// SPDX-License-Identifier: Apache-2.0

// Package protocol is a model of the protocol between replicas with an elector and without storage:
// the lease, the published position, and what a standby holds. It has the rules of internal/leadership,
// internal/position and internal/session without time, connections and content, so that every order of its steps can
// be tried (Explore), and the steps of a simulated run compared with it (Follow). One event occurs once. The lease is assumed to be held by one process at a time, and a
// leader to know when it no longer holds it: leadership.Lease has tests of its own.
package protocol

import (
	"bytes"
	"fmt"
	"slices"
)

// State is the cluster and its replicas between two steps. Its zero value has no replica.
type State struct {
	Newest   int64   // the newest resource version of the cluster
	Restores int     // how often etcd was restored from a backup
	Events   []Event // that were ever written
	Lease    int     // who holds it: the number of a replica from 1; 0: nobody
	Position int64   // that is stored; 0: none
	History  int     // of the Position
	OfLost   bool    // the Position is of a lost history: who published it had not noticed the restore
	Replicas []Replica
	// Disturbed is set by the steps after which a record may be repeated.
	Disturbed bool
}

// Event is an event that was written.
type Event struct {
	Version   int64 // in the history in which it was written
	Exists    bool  // no restore has removed it
	Published int64 // the position that was stored when it was written
	Required  bool  // no start makes it a past event: that position is of its history
	Delivered int   // how often a pipeline accepted it
}

// Replica is a process, or the place of one that has crashed.
type Replica struct {
	Up       bool
	Restores int   // that it has noticed
	Seen     int64 // the version up to which it has accounted for the events
	Known    int64 // the highest version that it knows the cluster to have had
	// Holds has, for each event, what the process makes of it.
	Holds []Hold
	Read  int64 // the position that it read last; 0: none
	// Of is the history of Read, Latest the latest that it has read, and History its own.
	Of, Latest, History int
	// Perhaps is a position that the process may have read: a trace does not show it.
	Perhaps int64
	Lost    int64 // the highest position of a lost history that it takes for one of its own history
	Leads   bool  // its term has begun and not ended
	From    int64 // the position at the beginning of its term
	Reached int64 // the version up to which it has delivered
	Owes    bool  // Reached is to be published
}

// Hold is what a process makes of an event.
type Hold byte

// An event that was not seen; that is dealt with; that waits to be delivered.
const (
	Unseen Hold = iota
	Settled
	Waiting
)

// New returns a state in which replicas are down and nothing has happened.
func New(replicas int) *State { return &State{Replicas: make([]Replica, replicas)} }

// Clone returns a copy that shares nothing.
func (s *State) Clone() *State {
	c := &State{}
	c.become(s)
	return c
}

// become makes s a copy, in the memory that it has.
func (s *State) become(other *State) {
	events, replicas := s.Events[:0], slices.Grow(s.Replicas, 2)[:len(other.Replicas)]
	events = append(events, other.Events...)
	for i, r := range other.Replicas {
		r.Holds = append(replicas[i].Holds[:0], r.Holds...)
		replicas[i] = r
	}
	*s = *other
	s.Events, s.Replicas = events, replicas
}

// appendKey appends the same bytes for equal states only. All numbers are below 256. Two replicas
// have no order: no rule asks for their numbers, so that states in which they are exchanged have the
// same future.
func (s *State) appendKey(key []byte) []byte {
	key = append(key, byte(s.Restores), byte(s.History), bit(s.OfLost)<<1|bit(s.Disturbed), byte(s.Newest), byte(s.Position))
	for _, e := range s.Events {
		key = append(key, byte(e.Version), byte(e.Published), bit(e.Exists)<<1|bit(e.Required), byte(min(e.Delivered, 2)))
	}
	first := len(key)
	key = s.appendReplica(key, 0)
	second := len(key)
	key = s.appendReplica(key, 1)
	if bytes.Compare(key[first:second], key[second:]) > 0 {
		key = append(key[:first], slices.Concat(key[second:], key[first:second])...)
	}
	return key
}

func (s *State) appendReplica(key []byte, number int) []byte {
	r := &s.Replicas[number]
	flags := bit(s.Lease == number+1)<<3 | bit(r.Up)<<2 | bit(r.Leads)<<1 | bit(r.Owes)
	key = append(key, flags, byte(r.Restores), byte(r.Of), byte(r.Latest), byte(r.History),
		byte(r.Seen), byte(r.Read), byte(r.From), byte(r.Reached), byte(r.Lost), byte(r.Known))
	for i := range s.Events {
		key = append(key, byte(r.hold(i)))
	}
	return key
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func (r *Replica) hold(i int) Hold {
	if i < len(r.Holds) {
		return r.Holds[i]
	}
	return Unseen
}

func (r *Replica) set(i int, h Hold) {
	for len(r.Holds) <= i {
		r.Holds = append(r.Holds, Unseen)
	}
	r.Holds[i] = h
}

// lost is a broken promise: an event that nobody will deliver.
func lost(e Event, why string) error {
	return fmt.Errorf("the event of version %d is lost: %s", e.Version, why)
}
