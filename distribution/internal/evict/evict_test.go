// SPDX-License-Identifier: Apache-2.0

package evict_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/evict"
)

// TestLargest: a namespace that takes more than others loses what it has above them, then all lose
// in turn.
func TestLargest(t *testing.T) {
	t.Parallel()
	entries := []evict.Entry[string]{{"a", 10, "a1"}, {"b", 10, "b1"}, {"b", 10, "b2"}, {"b", 10, "b3"}, {"c", 5, "c1"}}
	for bytes, want := range map[int][]string{
		0: nil, 1: {"b1"}, 20: {"b1", "b2"}, 25: {"b1", "b2", "b3"}, 40: {"b1", "b2", "b3", "a1"}, 99: {"b1", "b2", "b3", "a1", "c1"},
	} {
		var dropped []string
		evict.Largest(entries, bytes, func(name string) int {
			dropped = append(dropped, name)
			return map[bool]int{true: 5, false: 10}[name == "c1"]
		})
		assert.Equal(t, want, dropped, bytes)
	}
}
