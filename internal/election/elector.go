// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Elector is what the receiver uses of k8sleaderelector.LeaderElection, the interface of the extension
// k8s_leader_elector.
type Elector interface {
	// SetCallBackFuncs registers what is called whenever this process starts and stops leading. The
	// extension makes these calls one after the other, and waits for each. It keeps them as long as
	// it exists.
	SetCallBackFuncs(started func(context.Context), stopped func())
}

// electors lets all receivers of one elector share a Leadership, so that one call of the elector
// ends the terms of all: its next call waits until the work of the receiver before has ended.
var electors = joinedElectors{byElector: map[any]*joined{}}

type joinedElectors struct {
	mu        sync.Mutex // guards byElector, and the users
	byElector map[any]*joined
}

type joined struct {
	*Leadership
	register sync.Once
	users    map[types.NamespacedName]bool // by where they note their progress
}

// Join returns the Leadership that the elector decides, for a receiver that notes its progress there; ok
// is false if another one of this elector does. Callers must call leave when they no longer use it.
func Join(elector Elector, progress types.NamespacedName) (l *Leadership, leave func(), ok bool) {
	j := electors.join(elector, progress)
	if j == nil {
		return nil, nil, false
	}
	// The lock is not held: a call of the elector may wait for a receiver, and this for that call.
	j.register.Do(func() { elector.SetCallBackFuncs(j.Started, j.Stopped) })
	return j.Leadership, sync.OnceFunc(func() { electors.leave(elector, progress) }), true
}

// join returns nil if another receiver of the elector has the same progress.
func (s *joinedElectors) join(elector Elector, progress types.NamespacedName) *joined {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.byElector[elector]
	if j == nil {
		j = &joined{Leadership: newLeadership(), users: map[types.NamespacedName]bool{}}
		s.byElector[elector] = j
	}
	if j.users[progress] {
		return nil
	}
	j.users[progress] = true
	return j
}

func (s *joinedElectors) leave(elector Elector, progress types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	users := s.byElector[elector].users
	if delete(users, progress); len(users) == 0 {
		delete(s.byElector, elector)
	}
}
