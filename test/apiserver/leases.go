// SPDX-License-Identifier: Apache-2.0

package apiserver

import "time"

const (
	// longestReuse is how long one lease is given to new events at most, and mostOnLease to how
	// many.
	longestReuse = time.Minute
	mostOnLease  = 1000
)

// lease is an etcd lease: at its end, all events that still have it are deleted at one version.
type lease struct {
	ttl     time.Duration
	expires time.Time
	writes  int // that got the lease
}

// grant returns the lease for an event that is written, as kube-apiserver's lease manager does.
func (s *Server) grant() *lease {
	ttl, now := s.options.EventTTL.Truncate(time.Second), time.Now()
	reuse := min((ttl / 20).Truncate(time.Second), longestReuse)
	if n := len(s.leases); n > 0 {
		last := s.leases[n-1]
		last.writes++
		// A lease that lasts longer than a new one was not granted with this TTL.
		valid := now.Add(ttl).Before(last.expires)
		similar := !now.Add(ttl + reuse).Before(last.expires)
		if valid && similar && last.writes <= mostOnLease {
			return last
		}
	}
	granted := &lease{ttl: ttl + reuse, expires: now.Add(ttl + reuse), writes: 1}
	s.leases = append(s.leases, granted)
	return granted
}

// expire ends the leases that are due and returns when it must be called again. A lease that is
// granted meanwhile lives for longer than one TTL.
func (s *Server) expire() time.Time {
	defer s.lock()()
	events, now := s.table(eventsResource), time.Now()
	for len(s.leases) > 0 && !s.leases[0].expires.After(now) {
		var keys []string
		for _, r := range events.live {
			if r.lease == s.leases[0] {
				keys = append(keys, r.key)
			}
		}
		s.remove(events, keys)
		s.leases = s.leases[1:]
	}
	if len(s.leases) > 0 {
		return s.leases[0].expires
	}
	return now.Add(s.options.EventTTL)
}
