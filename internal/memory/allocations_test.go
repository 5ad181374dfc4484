// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/test/memorytest"
)

// A change of a known event takes no memory, with or without storage.
func TestAllocationsOfAccounting(t *testing.T) {
	for name, saved := range map[string]bool{"without storage": false, "with storage": true} {
		t.Run(name, func(t *testing.T) {
			config := configured("")
			config.Saved = saved
			m, count := New(config, start), int32(1)
			of := ev("team-1", "app-001-6f5c9d7b4-00010.18a2f1c3d4e5f607", count, 7)
			m.Change("", of)
			memorytest.Allocations(t, 0, func() {
				count++
				of.Count = count
				m.Forget(start)
				require.Equal(t, int64(1), m.Change("", of))
			})
		})
	}
}
