// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"
)

// checkLeads checks that the elector of the process made it a leader, now or just before: what was
// under way at the end of a term may still get through.
func (p *process) checkLeads(what string) {
	e := p.replica.env
	if !e.plan.Elector || p.isDead() {
		return
	}
	terms := p.allTerms()
	if n := len(terms); n == 0 || !terms[n-1].ended.IsZero() && time.Since(terms[n-1].ended) > shutdownPromptly+e.plan.SlowStop {
		e.violate(onlyLeaders, "", "%s %s at %v, and does not lead", p.name, what, time.Since(e.began))
	}
}

// mostPages is how many pages of lists a process has in memory, at most one for each stream.
func (p *process) mostPages() int { return min(4, len(p.replica.env.plan.streams())) }

// mostHeld is how many bytes of events a process may hold: a batch, the queue, and each page of a list
// have at most 4 MiB each, and then there are the buffers of connections. Of a page of large events, the
// server may have sent 16 MiB more, which the process does not read.
func (p *process) mostHeld() int { return (7 + p.mostPages()) * 4 << 20 }

// checkMemory checks how much the processes held.
func (e *environment) checkMemory() {
	for _, p := range e.allProcesses() {
		if p.most > p.mostHeld() && e.plan.Dedup == 0 {
			e.violate(boundedMemory, "", "%s held %d bytes of events", p.name, p.most)
		}
		if p.mostEvents > p.mostHeldEvents() && e.plan.Dedup == 0 {
			e.violate(boundedMemory, "", "%s held %d events", p.name, p.mostEvents)
		}
	}
}

// mostHeldEvents is how many events a process may hold: a batch, 4 MiB of small events in the queue,
// pages of lists, and what a connection's buffers have.
func (p *process) mostHeldEvents() int { return 5500 + 2000*p.mostPages() }

// checkRequests checks how many requests the processes made.
func (e *environment) checkRequests() {
	for _, p := range e.allProcesses() {
		for minute, n := range p.requests {
			// Before a watch resumes, the receiver may ask for the store's version.
			most := e.mostRequests() * len(e.plan.streams())
			if n.events > most || n.versions > most {
				e.violate(boundedRequests, "", "%s made %d requests for events, and %d for the "+
					"store's version, in minute %d", p.name, n.events, n.versions, minute)
			}
			if n.progressRequests > e.mostProgressRequests() {
				e.violate(boundedRequests, "", "%s made %d requests for the leader's progress in "+
					"minute %d", p.name, n.progressRequests, minute)
			}
		}
	}
}

// mostProgressRequests is how many requests for the leader's progress a process may make in a minute: a
// leader reads and writes it every two seconds. No other process needs it.
func (e *environment) mostProgressRequests() int {
	switch {
	case !e.plan.Elector:
		return 0
	case slices.ContainsFunc(e.plan.Faults, func(f Fault) bool { return f.reachesProgress() }):
		return 120 // What failed is repeated.
	}
	return 75
}

// mostRequests is how many requests a stream may make in a minute.
func (e *environment) mostRequests() int {
	// A page of large events is requested again with fewer events, and some are as large as a page.
	isLarge := func(p ProducerPlan) bool { return p.Odd == LongTexts || p.Size >= largeText }
	throttles := func(f Fault) bool { return f.Status == http.StatusTooManyRequests }
	if slices.ContainsFunc(e.plan.Producers, isLarge) || e.plan.has(WatchBreaks) || slices.ContainsFunc(e.plan.Faults, throttles) {
		return 120
	}
	return 40
}

const receiverPackage = "github.com/kubeevents/kubeeventsreceiver"

// isOfReceiver reports whether a goroutine runs code of the receiver, and none of the simulation.
func isOfReceiver(stack string) bool {
	return strings.Contains(stack, receiverPackage) && !strings.Contains(stack, receiverPackage+"/test/")
}

// isOfRun reports whether a goroutine is not one of the testing package's own.
func isOfRun(stack string) bool { return !strings.Contains(stack, "testing/synctest.Test") }

// checkGoroutines checks that no goroutine of this bubble is left for which the condition holds.
func (e *environment) checkGoroutines(isLeft func(stack string) bool) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	all := strings.Split(string(stacks), "\n\n")
	_, bubble, inBubble := strings.Cut(strings.SplitN(all[0], "\n", 2)[0], "synctest bubble ")
	if !inBubble {
		return
	}
	for _, stack := range all[1:] {
		head, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(head, "synctest bubble "+bubble) && isLeft(stack) {
			e.violate(noGoroutine, "", "a goroutine is left: %s", stack)
		}
	}
}
