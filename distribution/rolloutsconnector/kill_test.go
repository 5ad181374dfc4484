// SPDX-License-Identifier: Apache-2.0

package rolloutsconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestKilledAtAnyTime: a container crashes and recovers, and the connector is killed. The trace is complete, and each span
// is delivered once. Only a kill between a delivery and the moment that it is saved repeats it.
func TestKilledAtAnyTime(t *testing.T) {
	for at := time.Duration(0); at < 3*time.Minute; at += 1700 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			d := &disk{values: map[string][]byte{}}
			settings := func(c *Config) { c.IdleTimeout, c.SettleTime = 90*time.Second, 3*time.Second }
			p, began := start(t, d, settings), time.Now()
			var requests []ptrace.Traces
			sleepUntil := func(until time.Duration) {
				if now := time.Since(began); now <= at && at < until {
					time.Sleep(at - now)
					synctest.Wait()
					killed := &disk{values: d.content()}
					p.stop(t)
					requests, d = append(requests, p.received()...), killed
					p = start(t, killed, settings)
				}
				time.Sleep(until - time.Since(began))
			}
			for i, reason := range []string{"Scheduled", "Started", "BackOff", "Started", "BackOff", "Started"} {
				sleepUntil(time.Duration(i*i) * time.Second)
				p.consume(t, records("shop-a-1", time.Now().Truncate(time.Second), reason))
			}
			sleepUntil(10 * time.Minute)
			p.stop(t)
			names := (&sink{requests: append(requests, p.received()...)}).spans()
			assert.ElementsMatch(t, []string{"rollout deployment/shop complete", "pod shop-a-1", "schedule", "start app", "restart app"}, names, "killed after %v", at)
		})
	}
}
