// SPDX-License-Identifier: Apache-2.0

// Package pageexporter is the Collector exporter `event_page`. It serves the events of the
// kube_events receiver as a web page that updates itself. The page has a card for each workload
// with its events and its chain of owners, and charts of occurrences over time. Workloads with
// warnings come first.
//
// A viewer can search by name and by the text of messages, see only warnings, and choose a namespace
// (or cluster-scoped objects), a reason and a Tilt manifest. Reasons, kinds, namespaces and names on
// the page are links that add or remove a filter. Two sliders, or a drag over the chart, zoom into a
// part of the time. All choices are in the page's address. Each object has kubectl commands to copy.
// Times are in the viewer's time zone.
//
// The page shows an hour, or the time since its oldest record if this is less. A search in messages
// finds what is in the newest state of an event, and looks at the 100 latest events of each workload.
// So with such a search, the chart counts these events only.
//
// Without JavaScript, the page does not update itself, a button applies the
// choices, and times are in UTC. All addresses are relative, so that the page works behind a proxy
// that serves it under a path: keep the slash at the end of that path.
//
// A card says what changed before the first warning of its workload: a rollout, a scaling, a
// rescaling by an autoscaler, a condition of a node, the preemption or eviction of a pod, or the
// creation of a pod. The functions in answer.go and changes.go compute this from records, and
// state nothing without one. The page of a single workload has its rollouts as a timeline, from the
// model that makes the traces of kube_rollouts. `api/workloads` and `api/workloads/UID` have the same
// as JSON.
//
// Use it to look at a cluster without a backend. It keeps the last hour in memory, within fixed
// bounds, and nothing on disk. After a restart of the Collector, the page is empty.
//
// With leader election, only the leader's page has new events. With `k8s_leader_elector`, the page of
// a standby says so.
//
// With `lines: true`, it also writes each record to standard output, as one line for people: when
// the event last occurred, its type and reason, the namespace, the involved object, its owners, the
// Tilt manifest, the number of occurrences so far, and the message.
package pageexporter
