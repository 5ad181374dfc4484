// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"reflect"
	"sync"
	"time"
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
func Join(elector Elector, config ElectorConfig) (l *Leadership, leave func()) {
	j := electors.join(elector, config)
	// The lock is not held: a call of the elector may wait for a receiver, and this for that call.
	j.register.Do(func() { elector.SetCallBackFuncs(j.Started, j.Stopped) })
	return j.Leadership, sync.OnceFunc(func() { electors.leave(elector, j) })
}

func (s *joinedElectors) join(elector Elector, config ElectorConfig) *joined {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byElector[elector] != nil {
		s.byElector[elector].users++
		return s.byElector[elector]
	}
	j := &joined{Leadership: newLeadership(config.LeaseDuration, config.RenewDeadline), users: 1}
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

// ElectorConfig is the part of the elector's configuration that the receiver needs.
type ElectorConfig struct {
	LeaseNamespace, LeaseName string
	// AuthType and Context say how the elector reaches the API server.
	AuthType, Context string
	// LeaseDuration is the time that others wait for a leader that no longer renews the lease.
	LeaseDuration time.Duration
	// RenewDeadline is the time that a leader tries to renew the lease before it stops leading.
	RenewDeadline time.Duration
}

// IsKnown reports whether the configuration could be read.
func (c ElectorConfig) IsKnown() bool {
	return c.LeaseNamespace != "" && c.LeaseName != "" && c.LeaseDuration > c.RenewDeadline && c.RenewDeadline > 0
}

// ElectorConfigOf reads the configuration of the extension k8s_leader_elector. The extension has no
// method for it, so the fields are read by reflection. A field that is not there is empty.
func ElectorConfigOf(extension any) ElectorConfig {
	config := reflect.Indirect(reflect.ValueOf(extension))
	if config.Kind() == reflect.Struct {
		config = reflect.Indirect(config.FieldByName("config"))
	}
	if config.Kind() != reflect.Struct {
		return ElectorConfig{}
	}
	return ElectorConfig{
		LeaseNamespace: text(config, "LeaseNamespace"),
		LeaseName:      text(config, "LeaseName"),
		AuthType:       text(config, "AuthType"),
		Context:        text(config, "Context"),
		LeaseDuration:  duration(config, "LeaseDuration"),
		RenewDeadline:  duration(config, "RenewDuration"),
	}
}

// duration returns the value of the field, or 0 if there is none.
func duration(config reflect.Value, name string) time.Duration {
	if field := config.FieldByName(name); field.Kind() == reflect.Int64 {
		return time.Duration(field.Int())
	}
	return 0
}

// text returns the value of the field, or the empty string if there is none.
func text(config reflect.Value, name string) string {
	if field := config.FieldByName(name); field.Kind() == reflect.String {
		return field.String()
	}
	return ""
}
