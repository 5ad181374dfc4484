// SPDX-License-Identifier: Apache-2.0

// Package apiserver simulates the part of a Kubernetes API server, with etcd behind it, that the receiver, its resolver
// and client-go's leader election use. It is made for testing/synctest: it waits for timers and channels only, and holds
// its lock neither while it waits nor while it writes to a connection.
//
// A simulation that forgives more than the real server would make each test on top of it worthless. So e2e/simulation
// sends the same random requests to this server and to a real one, and compares the answers.
package apiserver
