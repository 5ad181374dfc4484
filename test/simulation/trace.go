// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
	"github.com/kubeevents/kubeeventsreceiver/test/simulation/protocol"
)

// traced is a step of the model in the package protocol, as the API server or a pipeline saw it.
type traced struct {
	protocol.Step
	position map[string]string // by stream
	records  []string          // log.record.uid
}

// tracer notes the steps of a run. The trace ends with a restore: when a process notices it cannot be
// seen.
type tracer struct {
	env *environment
	// repeatsParts is set when a term repeats a request of which a part was accepted in an earlier one.
	repeatsParts atomic.Bool

	mu      sync.Mutex // guards what follows
	steps   []traced
	started map[int]*process // that were seen last, by replica
	holder  *process         // of the lease; nil: nobody
	elected traced           // the step in which it got the lease
}

// served notes what the API server answers about the lease and the position.
func (e *environment) served(request apiserver.Request, version int64, object apiserver.Object) {
	p, now := e.process(request.Client), time.Now()
	step := protocol.Step{Kind: protocol.Elect, Version: version}
	switch isRead := request.Verb == "get"; {
	case p == nil:
	case isOfPosition(request):
		if step.Kind = protocol.Publish; isRead {
			step.Kind = protocol.Read
			step.Fails = e.disturbed(now, now.Add(promptly), (*Fault).reachesPosition)
		}
		var position map[string]string
		if stored, ok := object.(*corev1.ConfigMap); ok {
			_ = json.Unmarshal([]byte(stored.Data["streams"]), &position)
			step.History, _ = strconv.Atoi(stored.Data["history"])
		}
		p.replica.env.trace.add(p, traced{Step: step, position: position})
	case request.Resource == leases && !isRead:
		step.Fails = e.disturbed(now, now.Add(2*promptly), (*Fault).reachesTakeover)
		for _, receiver := range p.receivers() {
			receiver.replica.env.trace.elect(receiver, step)
		}
	}
}

// elect notes that a process writes the lease.
func (t *tracer) elect(p *process, step protocol.Step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder != p {
		t.holder, t.elected = p, traced{Step: step}
		t.append(p, t.elected)
	}
}

// holds reports whether the process has the lease.
func (t *tracer) holds(p *process) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holder == p
}

// add notes a step of a process. Its first one starts it.
func (t *tracer) add(p *process, step traced) {
	t.mu.Lock()
	defer t.mu.Unlock()
	isStart := t.started[p.replica.index] != p
	if isStart {
		t.started[p.replica.index] = p
		step.Kind, step.Fails = protocol.Start, step.Kind != protocol.Read
	}
	if isStart || step.Kind != protocol.Start {
		t.append(p, step)
	}
	if isStart && t.holder == p { // The elector was faster.
		t.append(p, t.elected)
	}
}

// append adds a step of a process that has started.
func (t *tracer) append(p *process, step traced) {
	step.Replica = p.replica.index
	if t.started[step.Replica] == p && t.env.lastRestore() == nil {
		t.steps = append(t.steps, step)
	}
}

// checkTrace checks that the model can take the steps of each stream. It knows nothing of filters
// that change, of records that are given up, of requests that are accepted in part, and of a receiver
// without logs.
func (e *environment) checkTrace() {
	if !e.plan.alone() || len(e.exporters) == 0 || len(e.plan.Later) > 0 || e.plan.Retry.MaxElapsed > 0 || e.trace.repeatsParts.Load() {
		return
	}
	for _, stream := range e.plan.streams() {
		if err := protocol.Follow(len(e.replicas), e.traceOf(stream)); err != nil {
			e.violate(traceFollowed, "", "of the stream %q, the model does not follow %v", stream, err)
		}
	}
}

// traceOf returns the trace of a stream. It has what is written after the first position: what exists
// before may be past events for a process that starts.
func (e *environment) traceOf(stream string) (trace protocol.Trace) {
	events, position := states{of: map[types.UID][]state{}}, int64(0)
	writes := e.traceable(stream)
	for _, step := range e.trace.steps {
		for ; len(writes) > 0 && writes[0].Version <= step.Version; writes = writes[1:] {
			if position > 0 {
				events.add(writes[0])
				trace = append(trace, protocol.Step{Kind: protocol.Write, Version: writes[0].Version})
			}
		}
		step.Position, _ = strconv.ParseInt(step.position[stream], 10, 64)
		switch {
		case step.Kind == protocol.Deliver:
			trace = append(trace, events.deliveries(step)...)
		case step.Kind != protocol.Publish:
			trace = append(trace, step.Step)
		case step.Position != position: // If not, another stream has advanced.
			trace, position = append(trace, step.Step), step.Position
		}
	}
	return trace
}

// traceable returns the writes with new occurrences in a stream, before versions go back. In the
// model, nobody deletes or edits an event: such events are left out.
func (e *environment) traceable(stream string) (writes []apiserver.Write) {
	counts, isOther := map[types.UID]int64{}, map[types.UID]bool{}
	for _, w := range e.server.History() {
		if w.Epoch > 0 || !e.plan.everWants(w.Event) || stream != "" && stream != w.Event.Namespace {
			continue
		}
		uid, count := w.Event.UID, countOf(w.Event)
		isOther[uid] = isOther[uid] || w.Type == watch.Deleted || count <= counts[uid]
		counts[uid] = count
		writes = append(writes, w)
	}
	return slices.DeleteFunc(writes, func(w apiserver.Write) bool { return isOther[w.Event.UID] })
}

// states are the events of the model: what was written of each event, with its count.
type states struct {
	n  int
	of map[types.UID][]state
}

type state struct {
	event int // in the model
	count int64
}

func (s *states) add(w apiserver.Write) {
	s.of[w.Event.UID] = append(s.of[w.Event.UID], state{s.n, countOf(w.Event)})
	s.n++
}

// deliveries returns a step for each record. A record reports all states of its event up to its own.
func (s *states) deliveries(of traced) (steps protocol.Trace) {
	for _, uid := range of.records {
		step, dash := of.Step, strings.LastIndexByte(uid, '-')
		count, _ := strconv.ParseInt(uid[dash+1:], 10, 64)
		for _, known := range s.of[types.UID(uid[:dash])] {
			if known.count <= count {
				step.Events = append(step.Events, known.event)
			}
		}
		if step.Events != nil {
			steps = append(steps, step)
		}
	}
	slices.SortFunc(steps, func(a, b protocol.Step) int { return cmp.Compare(len(a.Events), len(b.Events)) })
	return steps
}
