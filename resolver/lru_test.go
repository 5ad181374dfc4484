// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRefusalsAreBoundedAndTheNewestStay(t *testing.T) {
	r := newRefusals(1, func() time.Duration { return 0 })
	namespace := func(n int) collection { return collectionOf(podKind, fmt.Sprint("namespace-", n)) }
	for n := range maxRefusals + 1 {
		r.note(namespace(n), Forbidden)
	}
	require.Equal(t, maxRefusals, r.entries.Len())
	require.False(t, r.has(namespace(0)))
	require.True(t, r.has(namespace(1)))
	require.True(t, r.has(namespace(maxRefusals)))
}
