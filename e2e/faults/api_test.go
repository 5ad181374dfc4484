// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/fakeapi"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/load"
)

func apiServerKilled(t *testing.T) row {
	f := newFixture(t, ownCluster(t, controlplane.Options{}))
	f.watchedBy(t, f.cluster.Kubeconfig(), withStorage)
	f.begin(t)
	for range 2 {
		f.delivers(t, 50)
		require.NoError(t, f.cluster.KillAPIServer())
		require.NoError(t, f.cluster.StartAPIServer(t.Context()))
		f.load.Grows(t, 50)
	}
	f.delivers(t, 50)
	return f.conclude(t)
}

// connectionStalled has a Collector whose only way to the API server is a network that forwards
// nothing for a while.
func connectionStalled(t *testing.T) row {
	f := newFixture(t, sharedCluster(t))
	proxy := fakeapi.NewTCPProxy(t, f.cluster.Kubeconfig())
	c := f.watchedBy(t, proxy.Kubeconfig, withStorage)
	f.begin(t)
	for range 2 {
		f.delivers(t, 50)
		proxy.Set(fakeapi.Stalled)
		f.load.Grows(t, 1000)
		c.waitForLog(t, "Cannot watch events")
		proxy.Set(fakeapi.Open)
	}
	f.delivers(t, 50)
	return f.conclude(t)
}

// compactedWhileApart lets etcd forget, while no connection exists, what the Collector would resume
// from.
func compactedWhileApart(t *testing.T) row {
	f := newFixture(t, ownCluster(t, controlplane.Options{}))
	proxy := fakeapi.NewTCPProxy(t, f.cluster.Kubeconfig())
	f.watchedBy(t, proxy.Kubeconfig, withStorage)
	f.begin(t)
	for range 2 {
		f.delivers(t, 50)
		proxy.Set(fakeapi.Cut)
		f.load.Grows(t, 200)
		f.cluster.Compact(t)
		proxy.Set(fakeapi.Open)
	}
	f.delivers(t, 50)
	return f.conclude(t)
}

// killedInDelivery kills the Collector when the backend has accepted a batch and has not answered
// yet, several times. The states that the batch came from are gone when it starts again, and the
// events have moved on.
func killedInDelivery(t *testing.T) row {
	f := newFixture(t, ownCluster(t, controlplane.Options{}))
	f.regroups = true
	c := f.watchedBy(t, f.cluster.Kubeconfig(), withStorage)
	f.begin(t)
	for range 5 {
		f.delivers(t, 50)
		f.sink.answers(acceptWithoutAnswer)
		f.delivers(t, 1)
		c.kill()
		f.sink.answers(accept)
		f.load.Grows(t, 200)
		f.cluster.Compact(t)
		c.start(t)
	}
	f.delivers(t, 50)
	return f.conclude(t)
}

// expired is an API server that keeps events for less time than passes between their repeats, so
// that recorders make them again and again, with the count that they had reached.
func expired(t *testing.T) row {
	f := newFixture(t, ownCluster(t, controlplane.Options{EventTTL: 20 * time.Second}))
	proxy := fakeapi.NewTCPProxy(t, f.cluster.Kubeconfig())
	c := f.watchedBy(t, proxy.Kubeconfig, withStorage)
	f.begin(t, func(l *load.Load) { l.Pause, l.Keep = 600*time.Millisecond, 30 })
	for range 2 {
		f.load.Grows(t, 400)
		proxy.Set(fakeapi.Cut)
		f.load.Grows(t, 60)
		proxy.Set(fakeapi.Open)
		f.load.Grows(t, 200)
		c.kill()
		f.load.Grows(t, 60)
		c.start(t)
	}
	r := f.conclude(t)
	r.remark = fmt.Sprintf("%d events made again by their recorders", f.load.Remade())
	assert.Positive(t, f.load.Remade())
	return r
}
