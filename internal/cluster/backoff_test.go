// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDelaysDoubleUpTo15Seconds(t *testing.T) {
	delays := newBackoff()
	for range 100 {
		for _, shortest := range []time.Duration{250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000} {
			shortest *= time.Millisecond
			delay := delays.NextBackOff()
			assert.GreaterOrEqual(t, delay, shortest-time.Microsecond)
			assert.LessOrEqual(t, delay, shortest*3/2+time.Microsecond)
		}
		delays.Reset()
	}
}
