// SPDX-License-Identifier: Apache-2.0

//go:build reached

package reached

import (
	"maps"
	"slices"
	"sync"
)

var (
	mu     sync.Mutex // guards states
	states = map[string]bool{}
)

// Notes reports whether this build notes states.
const Notes = true

// State notes that this process reached the state.
func State(name string) {
	mu.Lock()
	defer mu.Unlock()
	states[name] = true
}

// Take returns the states since it was last called, in alphabetical order. They belong to one run
// only if no other run takes place in this process at the same time.
func Take() []string {
	mu.Lock()
	defer mu.Unlock()
	taken := slices.Sorted(maps.Keys(states))
	clear(states)
	return taken
}
