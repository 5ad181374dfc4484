// SPDX-License-Identifier: Apache-2.0

// Package replay simulates an API server at its HTTP edge, at speeds that etcd cannot reach. It
// streams Events that were encoded ahead of time, and answers the other requests of a receiver of
// events: listings of events that are alive, discovery, the metadata of owners, the namespace that
// names the cluster, and the Lease and ConfigMap of a leader. Both encodings are spoken, protobuf and JSON, over HTTP/2 and HTTP/1.1.
//
// A Server holds one history of changes. A listing shows what was there before its first change; a
// watch streams the changes after a resource version as they are released. Nothing is ever
// compacted, and a client that lists again begins the history again. So any number of watchers, one
// after the other, see the same.
//
//	recorder := replay.NewRecorder()
//	fleet := &replay.Fleet{Namespaces: 10, Deployments: 200, Pods: 2000}
//	frame := recorder.Frame(watch.Added, fleet.Started(7, time.Now()))
//
//	server, err := replay.Start(replay.Options{Fleet: fleet, Latency: 20 * time.Millisecond})
//	...
//	server.Release(frame)
//
// The objects of a Fleet are never held: whatever is asked for is computed from its name and the
// time.
package replay
