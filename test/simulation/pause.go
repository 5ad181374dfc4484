// SPDX-License-Identifier: Apache-2.0

package simulation

import "time"

// addPauses lets processes pause, as SIGSTOP or a node without CPU time does, in one plan in eight.
// In a bubble, no goroutine can be stopped from outside. So the pause is at the edges: nothing goes
// out of the process and nothing comes in, while its timers run. A process that learns only at the
// end of the pause how long it was is not among these environments: e2e/faults stops real ones.
func (p *Plan) addPauses() {
	r := draw(p.Seed, "pause", 0)
	if p.Namespaces > fewNamespaces || !chance(r, 8) {
		return
	}
	for range 1 + r.IntN(2) {
		from := between(r, calm, p.Active)
		p.Faults = append(p.Faults, Fault{
			Kind: Paused, Replica: r.IntN(p.Replicas), From: from,
			To: from + oneOf(r, between(r, time.Second, 20*time.Second), between(r, 20*time.Second, 2*time.Minute)),
		})
	}
	p.EventTTL = max(p.EventTTL, 20*time.Minute)
}

// awaitPause waits while the process pauses, whatever its caller's context does. It reports whether
// it did.
func (p *process) awaitPause() (paused bool) {
	env := p.replica.env
	for {
		f := env.fault(p.replica.index, Paused)
		if f == nil || p.isDead() {
			return paused
		}
		paused = true
		time.Sleep(time.Until(env.began.Add(f.To)))
	}
}
