// SPDX-License-Identifier: Apache-2.0

// Package simulation runs the whole receiver, made by its factory, in simulated environments, and
// checks in each of them what the receiver promises.
//
// A run takes place in a testing/synctest bubble: time passes when nothing is left to do, so that
// minutes of it take milliseconds. The receiver is the real one, with the real client-go, behind
// one seam: the dialer of its client. Everything around it is simulated:
//
//	../apiserver   the API server with etcd behind it, as strict as the real one
//	connection.go  connections that are cut, stall and are slow
//	storage.go     a storage extension
//	pipeline.go    exporters behind a fan-out, and the metrics pipeline
//	topology.go    one signal only, retry_on_failure, an elector whose other users are slow
//	elector.go     the leader elector: client-go's own election
//	replica.go     Collector processes that are killed, restarted, and start again
//	collector.go   how a process is configured, starts and ends
//	workloads.go   workloads, their pods, and what owns them
//	producers.go   the programs that write events
//	detailed.go    workloads whose events call for details
//	crashes.go     pods whose containers crash, as kubelets report it
//	revisions.go   rollouts, rollbacks, and the objects that controllers write for them
//	hostile.go     hostile content of events and objects
//	act.go         the faults, as they act on all of these
//
// A seed decides what happens: plan.go makes a plan of it (the environment, the producers and the
// faults of fault.go), and configuration.go what the user configured. Each decision is a function of the seed,
// of who decides and of the number of its request (random.go), so that a plan can be cut down to
// what breaks a promise. Go's scheduler, its maps and the receiver's own jitter are random
// in go test. make simulate, make test and make generated-mutants run each seed in a process of its own, with the
// runtime of runtimeoverlay/: there, these are functions of the seed, too, and it replays exactly.
//
// promises.go lists the promises, each with the modes in which the contract makes it. The checks
// know nothing of how the receiver works: they compare what the exporters got with what the API
// server held.
//
//	truth.go       what the API server held, event by event
//	filters.go     which events count: the only filters in addition to the receiver's own
//	expected.go    what an ideal observer counts
//	records.go     the records of the exporters
//	groups.go      the events that dedup_interval sums
//	account.go     one exporter's records: none lost, invented, counted twice or out of order
//	repeats.go     what another process may deliver again
//	content.go     the fields of a record
//	timing.go      records in time, and a status that reports what is late
//	owners.go      owners, workloads and the default tag
//	details.go     ends of containers, changes of revisions, and values that must not leave
//	restore.go     what is new when the API server's versions have gone back
//	metric.go      the metric, against the records
//	bounds.go      leader, memory, requests, goroutines
//	bytes.go       the bytes of what comes out, and how texts are cut
//
// story.go has what happened in a run. scenarios.go has environments that once broke a promise, or that
// plans seldom have. swarm.go leaves features out.
//
//	make simulate SEEDS=10000    random environments
//	make simulate SEED=43        one of them twice, and its story: who did what when
package simulation
