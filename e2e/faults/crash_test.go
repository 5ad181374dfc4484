// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// killed kills the Collector at random moments, and starts it again.
func killed(settings ...setting) func(*testing.T) row {
	return func(t *testing.T) row {
		f := newFixture(t, sharedCluster(t))
		f.regroups = len(settings) > 0 // dedup_interval
		c := f.watchedBy(t, f.cluster.Kubeconfig(), append(settings, withStorage)...)
		f.begin(t)
		for range 2 {
			f.delivers(t, 30)
			time.Sleep(rand.N(1500 * time.Millisecond))
			c.kill()
			f.load.Grows(t, 30)
			c.start(t)
		}
		f.delivers(t, 30)
		return f.conclude(t)
	}
}

// terminated ends the Collector in an orderly way. Nothing is repeated.
func terminated(t *testing.T) row {
	f := newFixture(t, sharedCluster(t))
	c := f.watchedBy(t, f.cluster.Kubeconfig(), withStorage)
	f.begin(t)
	const times = 3
	for range times {
		f.delivers(t, 50)
		c.terminate(t)
		f.load.Grows(t, 50)
		c.start(t)
	}
	f.delivers(t, 50)
	f.remark = fmt.Sprintf("%d times", times)
	r := f.conclude(t)
	assert.Zero(t, r.Repeated, "repeated records")
	return r
}

// paused pauses the process for longer than its connections live.
func paused(t *testing.T) row {
	f := newFixture(t, sharedCluster(t))
	c := f.watchedBy(t, f.cluster.Kubeconfig(), withStorage)
	f.begin(t)
	f.delivers(t, 50)
	c.signal(t, syscall.SIGSTOP)
	time.Sleep(40 * time.Second)
	c.signal(t, syscall.SIGCONT)
	f.delivers(t, 50)
	c.kill()
	c.start(t)
	f.delivers(t, 50)
	return f.conclude(t)
}
