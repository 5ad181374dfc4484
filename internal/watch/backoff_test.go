// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDelaysDoubleUpTo15Seconds(t *testing.T) {
	for range 100 {
		delays := backoff
		for _, shortest := range []time.Duration{500, 1000, 2000, 4000, 8000, 15_000, 15_000} {
			shortest *= time.Millisecond
			delay := delays.Step()
			assert.GreaterOrEqual(t, delay, shortest-time.Microsecond)
			assert.LessOrEqual(t, delay, 2*shortest+time.Microsecond)
		}
	}
}
