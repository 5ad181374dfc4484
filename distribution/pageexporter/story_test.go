// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
	"github.com/kubeevents/kubeeventsreceiver/distribution/statusextension"
)

// imageChange is a Deployment whose new image does not exist, five minutes after it began to run with the old one.
const imageChange = `0:00 Deployment/checkout ScalingReplicaSet event=1: Scaled up replica set checkout-aaa from 0 to 1
0:00 ReplicaSet/checkout-aaa SuccessfulCreate event=2: Created pod: checkout-aaa-1
0:00 Pod/checkout-aaa-1 Scheduled event=3: Successfully assigned shop/checkout-aaa-1 to node-0
0:01 Pod/checkout-aaa-1 Pulling{app} event=4 node=node-0: Pulling image "app:1.0"
0:03 Pod/checkout-aaa-1 Pulled{app} event=5 node=node-0: Successfully pulled image "app:1.0" in 2s (2s including waiting)
0:04 Pod/checkout-aaa-1 Started{app} event=6 node=node-0: Container started
5:00 Deployment/checkout ScalingReplicaSet event=7: Scaled up replica set checkout-bbb from 0 to 1
5:00 ReplicaSet/checkout-bbb SuccessfulCreate event=8: Created pod: checkout-bbb-1
5:00 Pod/checkout-bbb-1 Scheduled event=9: Successfully assigned shop/checkout-bbb-1 to node-0
5:01 Pod/checkout-bbb-1 Pulling{app} event=10 node=node-0: Pulling image "app:1.1-typo"
5:03 Pod/checkout-bbb-1 !Failed{app} event=11 node=node-0: Failed to pull image "app:1.1-typo": not found
5:10 Pod/quiet-ccc-1 Started{app} event=12 node=node-0: Container started
`

const unschedulable = `0:00 Pod/stuck-5d9f-abc !FailedScheduling: 0/3 nodes are available`

// clock is a board's clock. A test sets it.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

// boardOf returns a board that has the records, a minute after the last one.
func boardOf(lines string) *board {
	records := story.Records(lines)
	c := &clock{story.Epoch.Add(time.Minute)}
	if len(records) > 0 {
		c.Time = c.Add(records[len(records)-1].At)
	}
	b := newBoard(c.now)
	b.maxLook = time.Hour // A busy machine gives the same answers.
	b.delivery = func() statusextension.Delivery { return statusextension.Delivery{Since: story.Epoch} }
	for _, r := range records {
		b.add(r.Logs(story.Epoch))
	}
	return b
}

// viewOf returns what a viewer sees with a filter, without the lock.
func viewOf(b *board, f filter) *view {
	var model *incident.Model
	b.own.Load().Use(func(m *incident.Model) { model = m })
	return &view{model: model, now: b.clock().UTC(), filter: f, delivery: b.delivery(), ctx: context.Background()}
}

// everything is the filter of an address without parameters.
func everything(t testing.TB) filter {
	t.Helper()
	f, err := filterFrom(nil)
	require.NoError(t, err)
	return f
}
