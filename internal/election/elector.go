// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Elector has the methods of the extension k8s_leader_elector that the receiver uses.
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
	users    int
}

// Join returns the Leadership that the elector decides. Callers must call leave when they no longer
// use it.
func Join(elector Elector) (l *Leadership, leave func()) {
	j := electors.join(elector)
	// The lock is not held: a call of the elector may wait for a receiver, and this for that call.
	j.register.Do(func() { elector.SetCallBackFuncs(j.Started, j.Stopped) })
	return j.Leadership, sync.OnceFunc(func() { electors.leave(elector, j) })
}

func (s *joinedElectors) join(elector Elector) *joined {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byElector[elector] != nil {
		s.byElector[elector].users++
		return s.byElector[elector]
	}
	j := &joined{Leadership: newLeadership(), users: 1}
	s.byElector[elector] = j
	return j
}

func (s *joinedElectors) leave(elector Elector, j *joined) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.users--; j.users == 0 {
		delete(s.byElector, elector)
	}
}

// LeaseOf returns the Lease of the extension k8s_leader_elector; empty if it is not known. The extension
// has no method for it, so the two fields of its configuration are read by reflection.
func LeaseOf(extension any) types.NamespacedName {
	config := reflect.Indirect(reflect.ValueOf(extension))
	if config.Kind() == reflect.Struct {
		config = reflect.Indirect(config.FieldByName("config"))
	}
	if config.Kind() != reflect.Struct {
		return types.NamespacedName{}
	}
	namespace, name := config.FieldByName("LeaseNamespace"), config.FieldByName("LeaseName")
	if namespace.Kind() != reflect.String || name.Kind() != reflect.String {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: namespace.String(), Name: name.String()}
}
