// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// process is one of several that use the same storage.
type process struct {
	store *Store
	now   entries
}

// processes knows what the storage may have: the last acknowledged write, and those after it.
type processes struct {
	random   *rand.Rand
	disk     *disk
	all      []*process
	newest   *process
	possible map[string]entries
	number   int
}

func (p *processes) start(t *testing.T, i int) {
	p.disk.fails, p.disk.tear = 0, nil
	if p.random.IntN(2) == 0 {
		p.disk.before = func() {
			if other := p.all[p.random.IntN(len(p.all))]; other != nil && p.random.IntN(3) == 0 {
				p.save(t, other)
			}
		}
	}
	store, loaded, restored := load(t, p.disk)
	p.disk.before = nil
	state := ""
	if loaded != nil {
		state = string(loaded.State)
	}
	require.Contains(t, p.possible, state)
	require.True(t, maps.EqualFunc(p.possible[state], restored, bytes.Equal), "the checkpoint is complete")
	if before := p.all[i]; before != nil {
		before.store.Close()
	}
	p.all[i] = &process{store, restored.clone()}
	p.newest = p.all[i]
}

func (p *processes) save(t *testing.T, by *process) {
	var err error
	left := maps.Clone(p.disk.values)
	wasTakenOver := by.store.claim.isLost
	if by.store.IsSettled() {
		p.number++
		k, state := key(p.random.IntN(50)), fmt.Sprint(p.number)
		by.now[k] = fmt.Append(nil, "value ", p.number)
		if !wasTakenOver {
			p.possible[state] = by.now.clone()
		}
		err = by.store.Save(context.Background(), Content{
			State: []byte(state), Changed: []Key{k}, Source: by.now, Outbox: [][]byte{[]byte("request")},
		})
	} else {
		err = by.store.Settle(context.Background())
	}
	switch {
	case err == nil:
		require.Same(t, p.newest, by, "only the newest session's writes are acknowledged")
		state := string(by.store.journal.acknowledged.State)
		p.possible = map[string]entries{state: by.now.clone()}
	case errors.Is(err, ErrTakenOver):
		require.True(t, by.store.claim.isLost)
	default:
		require.ErrorIs(t, err, errDisk)
	}
	if wasTakenOver {
		require.ErrorIs(t, err, ErrTakenOver)
		require.Equal(t, left, p.disk.values, "a session that was taken over changes nothing")
	}
}

// TestTheNewestOfSeveralProcessesKeepsItsCheckpoint lets three processes start, save and crash in
// any order, with one storage, which tears writes and loses answers. They also write while another
// one loads.
func TestTheNewestOfSeveralProcessesKeepsItsCheckpoint(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 2))
		p := &processes{random: random, disk: newDisk(), all: make([]*process, 3), possible: map[string]entries{"": {}}}
		p.start(t, 0)
		for range 200 {
			switch random.IntN(12) {
			case 0:
				p.start(t, random.IntN(len(p.all)))
			case 1:
				p.disk.fails, p.disk.tear = 1+random.IntN(3), random.IntN
			case 2:
				p.disk.fails, p.disk.tear = 1+random.IntN(3), nil
			default:
				if by := p.all[random.IntN(len(p.all))]; by != nil {
					p.save(t, by)
				}
			}
		}
		p.start(t, 0)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func saveOne(t *testing.T, s *Store, n int) error {
	return s.Save(t.Context(), Content{State: fmt.Append(nil, n), Changed: []Key{key(n)}, Source: entries{key(n): {1}}})
}

func TestAClaimThatArrivesLateTakesNothingOver(t *testing.T) {
	d := newDisk()
	d.fails, d.tear = 1, func(int) int { return 0 }
	earlier, _, _ := load(t, d)
	require.Len(t, d.failed, 1)
	earlier.Close()

	s, _, _ := load(t, d)
	require.NoError(t, saveOne(t, s, 1))
	d.apply(d.failed[0])
	require.NoError(t, saveOne(t, s, 2))
	require.NoError(t, saveOne(t, s, 3))
	assert.Equal(t, encodeTerm(s.claim.number), d.values[claimKey])
	_, loaded, _ := load(t, d)
	assert.Equal(t, "3", string(loaded.State))
}

func TestTwoProcessesThatClaimAtTheSameTimeNoticeIt(t *testing.T) {
	d := newDisk()
	calls := 0
	d.before = func() {
		if calls++; calls == 2 { // between the look at the claim and the claim
			load(t, d)
		}
	}
	s := New(d)
	_, err := s.Load(t.Context(), func(Key, []byte) error { return nil })
	require.ErrorIs(t, err, errContended)
	_, err = s.Load(t.Context(), func(Key, []byte) error { return nil })
	require.NoError(t, err)
}

// An elector decides between them.
func TestALeaderThatClaimsAtTheSameTimeAsAnotherOneLoads(t *testing.T) {
	d := newDisk()
	calls := 0
	d.before = func() {
		if calls++; calls == 2 {
			load(t, d)
		}
	}
	_, err := NewElected(d).Load(t.Context(), func(Key, []byte) error { return nil })
	require.NoError(t, err)
}

// The clock of the earlier process was ahead.
func TestALaterProcessTakesOverWhateverItsClockShows(t *testing.T) {
	d := newDisk()
	ahead := uint64(time.Now().Add(time.Hour).UnixNano())
	d.values[claimKey] = encodeTerm(ahead)
	earlier, _, _ := load(t, d)
	assert.Greater(t, earlier.claim.number, ahead)
	_, _, _ = load(t, d)
	require.ErrorIs(t, saveOne(t, earlier, 1), ErrTakenOver)
}

func TestALostKeyIsNoticed(t *testing.T) {
	d := newDisk()
	s, _, _ := load(t, d)
	require.NoError(t, saveOne(t, s, 1))
	assert.False(t, s.HasLostKeys())
	delete(d.values, claimKey)
	require.NoError(t, saveOne(t, s, 2))
	assert.True(t, s.HasLostKeys())
	require.NoError(t, saveOne(t, s, 3))
	assert.False(t, s.HasLostKeys(), "the claim is renewed")
}

func TestALeaderYieldsToNoClaim(t *testing.T) {
	d := newDisk()
	leader := NewElected(d)
	_, err := leader.Load(t.Context(), func(Key, []byte) error { return nil })
	require.NoError(t, err)
	deposed := NewElected(d)
	require.NoError(t, deposed.makeClaim(t.Context()))
	require.NoError(t, saveOne(t, leader, 1))
	require.NoError(t, saveOne(t, leader, 2))
	_, loaded, _ := load(t, d)
	assert.Equal(t, "2", string(loaded.State))
}
