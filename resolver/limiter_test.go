// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/flowcontrol"
)

// TestRequestsThatNobodyNeedsAnyMoreLeaveTheRateToOthers: after many events of pods that do not exist
// any more, the next request would otherwise wait for the permits of all requests that were given up.
func TestRequestsThatNobodyNeedsAnyMoreLeaveTheRateToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, l := time.Now(), newLimiter(4, flowcontrol.NewTokenBucketRateLimiter(1, 1))
		for range 100 {
			require.True(t, l.acquire(t.Context(), corePod, 0))
			l.release(corePod, false)
		}
		require.True(t, l.acquire(t.Context(), corePod, 0))
		assert.Zero(t, time.Since(began), "the one permit was not used")
		l.release(corePod, true)
		require.True(t, l.acquire(t.Context(), corePod, 0))
		assert.Equal(t, time.Second, time.Since(began), "the permit was used")
		l.release(corePod, true)
	})
}
