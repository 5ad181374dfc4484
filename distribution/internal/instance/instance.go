// SPDX-License-Identifier: Apache-2.0

// Package instance lets the pipelines of a configuration share an instance of a component: the Collector calls a factory
// once for each pipeline and signal, with the same configuration.
package instance

import "sync"

// Registry has instances by their configuration. The zero value has none. It may be used concurrently.
type Registry[C comparable, I any] struct {
	mu  sync.Mutex // guards the following
	all map[C]*shared[I]
}

type shared[I any] struct {
	instance I
	users    int
}

// Get returns the instance of a configuration. If there is none, it creates one; the error is that of create. Each caller
// must release it.
func (r *Registry[C, I]) Get(config C, create func() (I, error)) (I, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.all[config]; s != nil {
		s.users++
		return s.instance, nil
	}
	created, err := create()
	if err != nil {
		return created, err
	}
	if r.all == nil {
		r.all = map[C]*shared[I]{}
	}
	r.all[config] = &shared[I]{created, 1}
	return created, nil
}

// Release reports whether the caller was the last one to use the instance of a configuration. The next Get creates another
// one then.
func (r *Registry[C, I]) Release(config C) (isLast bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.all[config]
	if s.users--; s.users > 0 {
		return false
	}
	delete(r.all, config)
	return true
}
