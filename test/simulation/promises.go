// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
)

// Promise is something that the contract promises, in some modes or in all.
type Promise struct {
	Name    string
	Meaning string
	Modes   []Mode // nil: all
}

// Violation is a promise that a run broke.
type Violation struct {
	Promise *Promise
	Event   string // namespace/name of the event that it is about; empty: none in particular
	Text    string
}

var (
	nothingLost = &Promise{"nothing lost",
		"Every occurrence since the first start (without storage and elector: since the last " +
			"one) is in a record that every exporter accepted, or rejected permanently.", nil}
	nothingInvented = &Promise{"nothing invented",
		"Every record has a state that the API server held, of an event that the filters let " +
			"through and that start_at lets count.", nil}
	duplicates = &Promise{"duplicates recognisable",
		"Records of one event with different log.record.uid never count the same occurrence.", nil}
	fewRepeated = &Promise{"few repeated",
		"After a crash, a record is delivered again only if the process had delivered it after its last " +
			"note: within 2 s with storage, and within 5 s and dedup_interval with an elector.",
		[]Mode{storageAlone, electorAlone}}
	offeredOnce = &Promise{"offered until settled",
		"What every exporter accepted, or rejected with a permanent error, is not offered again by " +
			"the same process. With an elector, a later term repeats a request of which a part was " +
			"accepted.", nil}
	faithful = &Promise{"records faithful",
		"Body, reason, type, times and involved object are those of the record's state.", nil}
	inOrder = &Promise{"in order",
		"The first deliveries of one event's records are in the order of its counts.", nil}
	metricIsSum = &Promise{"metric = sum of records",
		"At the end, the metric of each workload, reason, type and kind is the sum of the " +
			"occurrences in the records of the last process (with an elector: if only one led, and " +
			"at most the sum if it led more than once).", nil}
	monotonic = &Promise{"metric monotonic",
		"The points of one series never fall, their times increase, and its start time is not before " +
			"the process, or its term, began.", nil}
	onlyLeaders = &Promise{"only leaders emit",
		"Only a process emits, and reads events, that its elector made a leader.", []Mode{electorAlone}}
	ownersRight = &Promise{"owners right",
		"No record names an owner, a workload or a tag that is not the involved object's.", nil}
	ownersComplete = &Promise{"owners complete",
		"The chain is complete with any number of namespaces, if no kind of the chain was slow, " +
			"failing or limited while the event was resolved.", nil}
	detailsRight = &Promise{"details right",
		"What a record says of an end is that of the run that its event is about, and what it says of changes " +
			"that of its revision. What is not certain, or must not be read, is absent.", nil}
	detailsSecret = &Promise{"no value leaves",
		"No value of an environment variable, an argument or an annotation is in a record.", nil}
	detailsOnce = &Promise{"few reads of details",
		"Where no read fails, a process reads a pod, a ReplicaSet, a StatefulSet and a DaemonSet for details once " +
			"in two seconds. It reads nothing if details are disabled.", nil}
	neverSilent = &Promise{"never silent",
		"If something has not been deliverable for 90 s, the component's status is an error, unless no " +
			"replica can be elected, which the elector logs. When all is well again, it is not.", nil}
	inTime = &Promise{"in time",
		"If nothing is wrong, each exporter has an occurrence after 8 s and dedup_interval.", nil}
	oneInInterval = &Promise{"one record in an interval",
		"Where nothing is wrong, an event has at most one record in dedup_interval.", nil}
	boundedMemory = &Promise{"bounded memory",
		"A process holds at most 16 MiB of events that it has not offered to a pipeline, and 4 MiB more " +
			"for each further entry of namespaces, up to three.", nil}
	boundedBytes = &Promise{"bounded bytes",
		"A request has at most 1,000,000 bytes of OTLP, or one record. A body has at most 64 KiB, any other " +
			"text 1 KiB, all of valid UTF-8.", nil}
	boundedRequests = &Promise{"bounded requests",
		"A stream makes at most 40 requests in a minute, and 120 if watches break or the API " +
			"server asks for an early retry, and as many for the store's version; a leader " +
			"makes 75 for its progress (120 if the API fails). What a pipeline " +
			"rejects comes again after half of retry_on_failure's interval.", nil}
	shutsDown = &Promise{"shuts down",
		"Shutdown takes at most 15 s and returns no error, whatever hangs, unless a pipeline ignores the end of its context.", nil}
	noGoroutine = &Promise{"no goroutine left",
		"After shutdown, no goroutine of the receiver is left.", nil}
	ends = &Promise{"it ends", "The process does not panic, deadlock or spin.", nil}
)

// Promises are all of them, in the order of tables.
var Promises = []*Promise{
	nothingLost, nothingInvented, duplicates, fewRepeated, offeredOnce,
	faithful, inOrder, metricIsSum, monotonic, onlyLeaders, ownersRight, ownersComplete, detailsRight,
	detailsSecret, detailsOnce, neverSilent,
	inTime, oneInInterval, boundedMemory, boundedBytes, boundedRequests,
	shutsDown, noGoroutine, ends,
}

// In reports whether the contract makes the promise in the mode.
func (p *Promise) In(m Mode) bool { return p.Modes == nil || slices.Contains(p.Modes, m) }

// maxViolations bounds what a run reports of one promise: one violation mostly brings others.
const maxViolations = 5

// violate notes that the run broke a promise, if the contract makes it in the plan's mode.
func (e *environment) violate(promise *Promise, event, format string, args ...any) {
	if !promise.In(e.plan.Mode) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	known := 0
	for _, v := range e.violations {
		if v.Promise == promise {
			known++
		}
	}
	if known < maxViolations {
		e.violations = append(e.violations, Violation{promise, event, fmt.Sprintf(format, args...)})
	}
}

// check evaluates the promises that are not evaluated during the run.
func (e *environment) check() {
	truth := newTruth(e)
	for _, x := range e.exporters {
		a := newAccount(e, truth, x)
		a.checkRecords()
		a.checkOrder()
		a.checkRepeats()
		a.checkTotals()
		a.checkTimes()
	}
	truth.checkOwners()
	e.checkDetails()
	e.checkMetric()
	e.checkMemory()
	e.checkRequests()
}
