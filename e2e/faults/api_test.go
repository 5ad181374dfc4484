// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
)

func apiServerKilled(t *testing.T) row {
	s := newScene(t, ownCluster(t, controlplane.Options{}))
	s.watchedBy(t, s.cluster.Kubeconfig(), withStorage)
	s.begin(t)
	for range 2 {
		s.delivers(t, 50)
		require.NoError(t, s.cluster.KillAPIServer())
		require.NoError(t, s.cluster.StartAPIServer(t.Context()))
		s.load.grows(t, 50)
	}
	s.delivers(t, 50)
	return s.conclude(t)
}

// wireBreaks is a Collector whose only way to the API server is a wire in a bad state.
func wireBreaks(state wireState, says string) func(*testing.T) row {
	return func(t *testing.T) row {
		s := newScene(t, sharedCluster(t))
		w := newWire(t, s.cluster.Kubeconfig())
		c := s.watchedBy(t, w.kubeconfig, withStorage)
		s.begin(t)
		for range 2 {
			s.delivers(t, 50)
			w.becomes(state)
			if says == "" {
				s.delivers(t, 300)
			} else {
				c.says(t, says)
				s.load.grows(t, 200)
			}
			w.becomes(sound)
		}
		s.delivers(t, 50)
		return s.conclude(t)
	}
}

// compactedWhileApart lets etcd forget, while no connection exists, what the Collector would resume from.
func compactedWhileApart(t *testing.T) row {
	s := newScene(t, ownCluster(t, controlplane.Options{}))
	w := newWire(t, s.cluster.Kubeconfig())
	s.watchedBy(t, w.kubeconfig, withStorage)
	s.begin(t)
	for range 2 {
		s.delivers(t, 50)
		w.becomes(cut)
		s.load.grows(t, 200)
		s.cluster.compact(t)
		w.becomes(sound)
	}
	s.delivers(t, 50)
	return s.conclude(t)
}

// compactedWhileDown does the same while the Collector is down, after an orderly end and after a crash.
func compactedWhileDown(t *testing.T) row {
	s := newScene(t, ownCluster(t, controlplane.Options{}))
	c := s.watchedBy(t, s.cluster.Kubeconfig(), withStorage)
	s.begin(t)
	for _, end := range []func(){func() { c.terminate(t) }, c.kill} {
		s.delivers(t, 50)
		end()
		s.load.grows(t, 200)
		s.cluster.compact(t)
		c.start(t)
	}
	s.delivers(t, 50)
	return s.conclude(t)
}
