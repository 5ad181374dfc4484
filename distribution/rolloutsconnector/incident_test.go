// SPDX-License-Identifier: Apache-2.0

package rolloutsconnector

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// incident is an update whose pod crashes, as records of 15 seconds.
func incident(e *environment) (records []record) {
	d := e.newWorkload("Deployment", "shop")
	rs := d.owned("ReplicaSet", d.name+"-new", "uid-new")
	pod := rs.owned("Pod", rs.name+"-x", "uid-x")
	for i, h := range []happening{
		{0, d, "ScalingReplicaSet", "Scaled up replica set " + rs.name + " from 0 to 1", ""},
		{0, rs, "SuccessfulCreate", "Created pod: " + pod.name, ""},
		{0, pod, "Scheduled", "Successfully assigned shop/" + pod.name + " to worker-1", ""},
		{2 * time.Second, pod, "Created", "Container created", "app"}, {3 * time.Second, pod, "Started", "Container started", "app"},
		{6 * time.Second, pod, "BackOff", "Back-off restarting failed container app", "app"},
		{10 * time.Second, pod, "FailedMount", "the volume is gone", ""},
		{15 * time.Second, pod, "Unhealthy", "Readiness probe failed", "app"},
	} {
		records = append(records, record{h, fmt.Sprint("incident-", i), h.at, 1})
	}
	return records
}

// rolledBack is an update whose pod gets no node, and the way back. The Event of the last scale-up is the first one,
// repeated.
func rolledBack(e *environment) (records []record) {
	d := e.newWorkload("Deployment", "shop")
	before, after := d.owned("ReplicaSet", d.name+"-old", "uid-old"), d.owned("ReplicaSet", d.name+"-new", "uid-new")
	x, y, z := before.owned("Pod", before.name+"-x", "uid-x"), after.owned("Pod", after.name+"-y", "uid-y"), before.owned("Pod", before.name+"-z", "uid-z")
	for i, h := range []happening{
		{0, d, "ScalingReplicaSet", "Scaled up replica set " + before.name + " from 0 to 1", ""},
		{0, x, "Scheduled", "Successfully assigned shop/" + x.name + " to worker-1", ""},
		{2 * time.Second, x, "Started", "Container started", "app"},
		{5 * time.Second, d, "ScalingReplicaSet", "Scaled down replica set " + before.name + " from 1 to 0", ""},
		{5 * time.Second, x, "Killing", "Stopping container app", "app"},
		{6 * time.Second, d, "ScalingReplicaSet", "Scaled up replica set " + after.name + " from 0 to 1", ""},
		{6 * time.Second, y, "FailedScheduling", "no node", ""},
		{11 * time.Second, d, "ScalingReplicaSet", "Scaled down replica set " + after.name + " from 1 to 0", ""},
		{13 * time.Second, z, "Scheduled", "Successfully assigned shop/" + z.name + " to worker-1", ""},
		{14 * time.Second, z, "Started", "Container started", "app"},
	} {
		records = append(records, record{h, fmt.Sprint("rollback-", i), h.at, 1})
	}
	again := records[0]
	again.at, again.count = 12*time.Second, 2
	return append(records, again)
}

// others are a second of other rollouts: 200 pods of as many Deployments, with five events each.
func others(second int) (records []record) {
	for i := range 200 {
		at := time.Duration(second)*time.Second + time.Duration(i)*5*time.Millisecond
		name := fmt.Sprintf("other-%d-%d", second, i)
		d := subject{kind: "Deployment", name: name, uid: "uid-" + name}
		rs := d.owned("ReplicaSet", name+"-a", "uid-rs-"+name)
		pod := rs.owned("Pod", rs.name+"-x", "uid-pod-"+name)
		for _, reason := range []string{"Scheduled", "Pulling", "Pulled", "Created", "Started"} {
			records = append(records, record{happening{at, pod, reason, reason, "app"}, "event-" + name + reason, at, 1})
		}
	}
	return records
}

// underLoad is a connector that gets an incident and the rollouts of others, and is killed.
type underLoad struct {
	t     *testing.T
	epoch time.Time
	e     *environment
	story []record
	disk  *disk
	*process
	seen  int64 // revisions of others that this process got
	found map[pcommon.SpanID]pcommon.TraceID
}

// mostRollouts are filled by five seconds of others.
const mostRollouts = 1000

func (u *underLoad) begin() {
	u.process, u.seen = start(u.t, u.disk, func(c *Config) { c.MaxRollouts = mostRollouts }), 0
}

// second sends the records of a second, half-way between two looks of the loop.
func (u *underLoad) second(number int) {
	time.Sleep(time.Until(u.epoch.Add(time.Duration(number)*time.Second + interval/2)))
	all := others(number)
	for _, r := range u.story {
		if int(r.at/time.Second) == number {
			all = append(all, r)
		}
	}
	require.NoError(u.t, u.ConsumeLogs(u.t.Context(), u.e.logsOf(all, u.epoch)))
	u.seen += 200
}

// end keeps what was delivered, and checks that what was dropped is counted.
func (u *underLoad) end() {
	known, err := u.telemetry.GetMetric("otelcol_kube_rollouts_known")
	require.NoError(u.t, err)
	left := known.Data.(metricdata.Gauge[int64]).DataPoints[0].Value
	assert.LessOrEqual(u.t, left, int64(mostRollouts))
	if u.seen > mostRollouts {
		assert.GreaterOrEqual(u.t, left+sumOf(u.t, u.process, "otelcol_kube_rollouts_evicted"), u.seen)
	}
	u.stop(u.t)
	for _, request := range u.received() {
		for span := range allSpans(request) {
			u.found[span.SpanID()] = span.TraceID()
		}
	}
}

// kill ends the process with what it has saved until now, and starts another one.
func (u *underLoad) kill() {
	saved := u.disk.content()
	u.end()
	u.disk = &disk{values: saved}
	time.Sleep(interval / 4)
	u.begin()
}

// expected returns the ids of the incident's spans if nothing else happens.
func (u *underLoad) expected() map[pcommon.SpanID]pcommon.TraceID {
	ids := map[pcommon.SpanID]pcommon.TraceID{}
	read, _ := rollout.Read(u.e.logsOf(u.story, u.epoch))
	m := &rollout.Model{}
	m.Join(read)
	for _, w := range m.Workloads {
		for name := range w.Revisions {
			for _, part := range w.Spans(name, rollout.Options{Idle: 5 * time.Minute, Now: time.Now()}).Parts {
				for _, span := range part.Spans {
					ids[span.ID] = span.Trace
				}
			}
		}
	}
	return ids
}

// TestKilledInAnIncident: 1,000 events a second of other rollouts fill the connector, and it is killed
// in the middle of an incident. All spans of the incident arrive, with the ids that its records alone
// decide, and what the connector forgets is counted.
func TestKilledInAnIncident(t *testing.T) {
	for name, c := range map[string]struct {
		story  func(*environment) []record
		spans  int
		traces int
	}{
		"a crash":    {incident, 5, 1},    // rollout, pod, schedule, start, restart
		"a rollback": {rolledBack, 12, 3}, // three rollouts, three pods, the phases of two, and one end
	} {
		for _, killed := range []int{1, 7, 12} {
			t.Run(fmt.Sprintf("%s, killed after %d s", name, killed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					u := &underLoad{t: t, epoch: time.Now(), e: &environment{}, disk: &disk{values: map[string][]byte{}}, found: map[pcommon.SpanID]pcommon.TraceID{}}
					u.story = c.story(u.e)
					u.run(killed)
					assert.Len(t, u.expected(), c.spans)
					assert.Len(t, slices.Compact(slices.SortedFunc(maps.Values(u.expected()), compareTraces)), c.traces)
					for id, trace := range u.expected() {
						assert.Equal(t, trace, u.found[id])
					}
					for id, trace := range u.found {
						if u.isOfIncident(trace) {
							assert.Contains(t, u.expected(), id, "there are no others")
						}
					}
				})
			})
		}
	}
}

func compareTraces(a, b pcommon.TraceID) int { return bytes.Compare(a[:], b[:]) }

// run sends all records in 20 seconds, and kills the process once.
func (u *underLoad) run(killed int) {
	u.begin()
	for second := range 20 {
		if second == killed {
			u.kill()
		}
		u.second(second)
	}
	time.Sleep(time.Hour)
	u.end()
}

func (u *underLoad) isOfIncident(trace pcommon.TraceID) bool {
	return slices.Contains(slices.Collect(maps.Values(u.expected())), trace)
}
