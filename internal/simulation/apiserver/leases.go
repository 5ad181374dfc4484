// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"maps"
	"slices"
	"time"
)

const (
	// longestReuse is how long one lease is given to new events at most, and mostOnLease to how
	// many.
	longestReuse = time.Minute
	mostOnLease  = 1000
)

// lease is an etcd lease: at its end, all keys that are still attached to it are deleted at one
// version.
type lease struct {
	ttl     time.Duration
	expires time.Time
	writes  int // that got the lease
	keys    map[string]bool
}

func (l *lease) clone() *lease {
	copied := *l
	copied.keys = maps.Clone(l.keys)
	return &copied
}

// attach gives the key of an event that is written a lease, as kube-apiserver's lease manager does.
func (s *Server) attach(key string) {
	for _, l := range s.leases {
		delete(l.keys, key)
	}
	ttl, now := s.options.EventTTL.Truncate(time.Second), time.Now()
	reuse := min((ttl / 20).Truncate(time.Second), longestReuse)
	if n := len(s.leases); n > 0 {
		last := s.leases[n-1]
		last.writes++
		// A lease that lasts longer than a new one was not granted with this TTL.
		valid := now.Add(ttl).Before(last.expires)
		similar := !now.Add(ttl + reuse).Before(last.expires)
		if valid && similar && last.writes <= mostOnLease {
			last.keys[key] = true
			return
		}
	}
	keys := map[string]bool{key: true}
	ttl += reuse
	s.leases = append(s.leases, &lease{ttl: ttl, expires: now.Add(ttl), writes: 1, keys: keys})
}

// expire ends the leases that are due and returns when it must be called again. A lease that is
// granted meanwhile lives for longer than one TTL.
func (s *Server) expire() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for len(s.leases) > 0 && !s.leases[0].expires.After(now) {
		s.revoke(s.leases[0])
		s.leases = s.leases[1:]
	}
	if len(s.leases) > 0 {
		return s.leases[0].expires
	}
	return now.Add(s.options.EventTTL)
}

func (s *Server) revoke(l *lease) {
	events := s.tables[eventsResource]
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(l.keys)),
		func(key string) bool { return events.current(key) == nil })
	if len(keys) == 0 {
		return
	}
	s.next()
	for _, key := range keys {
		s.remove(events, key)
	}
}
