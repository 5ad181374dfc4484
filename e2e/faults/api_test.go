// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// connectionBreaks is a Collector whose only way to the API server is a network in a bad state.
func connectionBreaks(state fakeapi.State, logLine string) func(*testing.T) row {
	return func(t *testing.T) row {
		f := newFixture(t, sharedCluster(t))
		proxy := fakeapi.NewTCPProxy(t, f.cluster.Kubeconfig())
		c := f.watchedBy(t, proxy.Kubeconfig, withStorage)
		f.begin(t)
		for range 2 {
			f.delivers(t, 50)
			proxy.Set(state)
			if state == fakeapi.Slow {
				f.delivers(t, 300)
			} else {
				f.load.Grows(t, 1000)
			}
			if logLine != "" {
				c.waitForLog(t, logLine)
			}
			proxy.Set(fakeapi.Open)
		}
		f.delivers(t, 50)
		return f.conclude(t)
	}
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

// compactedWhileDown does the same while the Collector is down.
func compactedWhileDown(t *testing.T) row {
	return compacted(t, func(c *collector) { c.terminate(t) })
}

// compactedAfterCrash does it after a crash, so that neither the last moment before the crash is
// remembered, nor can the API server send it again step by step.
func compactedAfterCrash(t *testing.T) row {
	return compacted(t, (*collector).kill)
}

// killedInDelivery kills the Collector when the backend has accepted a batch and has not answered
// yet, several times. The states that the batch came from are gone when it starts again, and the
// events have moved on.
func killedInDelivery(settings ...setting) func(*testing.T) row {
	return func(t *testing.T) row {
		f := newFixture(t, ownCluster(t, controlplane.Options{}))
		f.regroups = true
		c := f.watchedBy(t, f.cluster.Kubeconfig(), append(settings, withStorage)...)
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
}

func compacted(t *testing.T, end func(*collector)) row {
	f := newFixture(t, ownCluster(t, controlplane.Options{}))
	c := f.watchedBy(t, f.cluster.Kubeconfig(), withStorage)
	f.begin(t)
	for range 2 {
		f.delivers(t, 200)
		end(c)
		f.regroups = c.kills > 0
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

var eventsRule = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"get", "list", "watch"}}

// permissionRevoked takes the permission to watch events away, and gives it back.
func permissionRevoked(t *testing.T) row {
	f := newFixture(t, sharedCluster(t))
	account := f.namespace + "-revoked"
	kubeconfig, err := f.cluster.RestrictedKubeconfig(t.Context(), account, eventsRule)
	require.NoError(t, err)
	proxy := fakeapi.NewTCPProxy(t, kubeconfig)
	c := f.watchedBy(t, proxy.Kubeconfig, withStorage)
	f.begin(t)
	f.delivers(t, 50)

	roles := f.cluster.RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), account, metav1.GetOptions{})
	require.NoError(t, err)
	role.Rules = nil
	role, err = roles.Update(t.Context(), role, metav1.UpdateOptions{})
	require.NoError(t, err)
	// An API server asks for permissions when a watch begins, so this one has to begin again.
	proxy.Set(fakeapi.Cut)
	proxy.Set(fakeapi.Open)
	c.waitForLog(t, "no permission to list and watch events")
	f.load.Grows(t, 200)
	role.Rules = []rbacv1.PolicyRule{eventsRule}
	_, err = roles.Update(t.Context(), role, metav1.UpdateOptions{})
	require.NoError(t, err)
	f.delivers(t, 50)
	return f.conclude(t)
}

// ownersForbidden is an account that may see events and nothing else.
func ownersForbidden(t *testing.T) row {
	f := newFixture(t, sharedCluster(t))
	kubeconfig, err := f.cluster.RestrictedKubeconfig(t.Context(), f.namespace+"-events-only", eventsRule)
	require.NoError(t, err)
	c := f.watchedBy(t, kubeconfig, withStorage)
	f.begin(t)
	f.delivers(t, 100)
	c.waitForLog(t, "Missing permission to read this kind of owner")
	c.kill()
	c.start(t)
	f.delivers(t, 50)
	return f.conclude(t)
}

// clocksOff are producers whose clocks are off, while the Collector is killed and started again.
func clocksOff(by time.Duration) func(*testing.T) row {
	return func(t *testing.T) row {
		f := newFixture(t, sharedCluster(t))
		c := f.watchedBy(t, f.cluster.Kubeconfig(), withStorage)
		f.begin(t, func(l *load.Load) { l.ClockOff = by })
		f.delivers(t, 100)
		c.kill()
		f.load.Grows(t, 100)
		c.start(t)
		f.delivers(t, 100)
		return f.conclude(t)
	}
}
