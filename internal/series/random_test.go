// SPDX-License-Identifier: Apache-2.0

package series

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// lastPoint is what was emitted last of a series.
type lastPoint struct {
	start, at time.Time
	value     int64
}

// Whatever happens, in one term or in several: the points of a series are in order, and its values only
// grow.
func TestPointsAreInOrderWhateverHappens(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		settings := Settings{Max: 1 + r.IntN(4), TTL: 20 * time.Second, InitialZero: r.IntN(4) > 0}
		if r.IntN(2) == 0 {
			settings.Disabled = semconv.Disabled{"k8s.workload.name": true, "k8s.workload.uid": true}
		}
		now, last := start, map[string]lastPoint{}
		s, newest := New(settings, now), now
		for range 60 {
			now = now.Add(time.Duration(r.IntN(4000)) * time.Millisecond)
			if r.IntN(20) == 0 { // The clock is set.
				now = now.Add(time.Duration(r.IntN(60_000)-30_000) * time.Millisecond)
			}
			switch r.IntN(8) {
			case 0, 1, 2:
				o := seen(fmt.Sprint("R", r.IntN(3)), int64(1+r.IntN(3)), resolver.ResolutionComplete, deployment(fmt.Sprint(r.IntN(3))))
				o.SeenAt = now.Add(-time.Duration(r.IntN(3000)) * time.Millisecond)
				s.Add([]observation.Observation{o}, now)
			case 3, 4, 5:
				s.Expire(now)
				requireInOrder(t, seed, last, s, now)
				if r.IntN(3) > 0 {
					s.Accepted()
				}
			case 6:
				s.Expire(now)
			case 7: // The next term.
				s.End()
				requireInOrder(t, seed, last, s, now)
				newest = later(newest, s.LastPoint())
				s = New(settings, later(now, newest.Add(time.Millisecond)))
			}
		}
	}
}

func requireInOrder(t *testing.T, seed uint64, last map[string]lastPoint, s *Series, now time.Time) {
	t.Helper()
	each(s.Metrics(Scope{}, semconv.Cluster{}, now), func(dp pmetric.NumberDataPoint) {
		id := fmt.Sprint(dp.Attributes().AsRaw())
		point, before := lastPoint{dp.StartTimestamp().AsTime(), dp.Timestamp().AsTime(), dp.IntValue()}, last[id]
		last[id] = point
		require.False(t, point.at.Before(point.start), "seed %d: %s", seed, id)
		if before.at.IsZero() {
			return
		}
		if point.start.Equal(before.start) {
			require.GreaterOrEqual(t, point.value, before.value, "seed %d: %s", seed, id)
			require.False(t, point.at.Before(before.at.Add(time.Millisecond)), "seed %d: %s", seed, id)
		} else {
			require.False(t, point.start.Before(before.at), "seed %d: %s starts again before its last point", seed, id)
		}
	})
}
