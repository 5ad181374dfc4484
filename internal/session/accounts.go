// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/internal/cluster"
	"github.com/kubeevents/kubeeventsreceiver/internal/filter"
	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// accounts passes changes to the memory, which decides what is new in them.
type accounts struct {
	memory  *memory.Memory
	filter  filter.Filter
	health  *health.Health
	cluster *clusterCheck
	// forgetsMore is set if the memory may have more to forget, without more changes.
	forgetsMore bool
}

// account adds to the batch what is new in its changes and passes the filters. The memory has all
// observations, so that a filter that is widened later counts nothing of the past. If another
// cluster answers, the batch is the last one of the session. Before, the memory forgets what it has
// remembered for long enough: there may have been no batch for a day.
func (a *accounts) account(stop context.Context, b *batch) {
	a.forgetsMore = a.memory.Forget(time.Now())
	a.cluster.learn()
	if a.cluster.isReplaced() {
		a.leaveOut(b, 0) // It answered late which one it is.
	}
	b.observations = make([]observation.Observation, 0, len(b.changes))
	var received, filtered int64
	for i := range b.changes {
		c := &b.changes[i]
		if c.Kind == watch.Restored {
			forgetPlaces(b.changes[:i], c.Namespace)
			a.cluster.restored(stop, c.Namespace)
			if a.cluster.isReplaced() {
				a.leaveOut(b, i)
				break
			}
		}
		a.forgetsMore = a.forgetsMore || c.Kind == watch.ListEnded // Many may have been deleted.
		occurrences := a.occurrences(c)
		if c.Event == nil {
			continue
		}
		received++
		if !a.filter.Wants(c.Event) {
			filtered++
		} else if occurrences > 0 {
			b.observations = append(b.observations, a.observation(c, occurrences))
		}
	}
	a.health.Accounted(received, filtered)
	b.last = b.last || a.cluster.isReplaced()
}

// leaveOut leaves out the changes from i on, and ends the session: they are of another cluster, and
// the next session lists what that one has.
func (a *accounts) leaveOut(b *batch, i int) {
	a.health.DealtWith(b.changes[i:])
	b.changes, b.last = b.changes[:i], true
}

// forgetPlaces takes out of changes of before a restore where their stream resumes.
func forgetPlaces(changes []watch.Change, stream string) {
	for i := range changes {
		if changes[i].Namespace == stream {
			changes[i].ResourceVersion = ""
		}
	}
}

func (a *accounts) observation(c *watch.Change, occurrences int64) observation.Observation {
	o := observation.Observation{Event: c.Event, Occurrences: occurrences, SeenAt: c.SeenAt, Restores: c.Restores}
	if c.Kind == watch.Listed {
		o.LowestVersion = a.memory.Reached(c.Namespace) + 1
	}
	return o
}

// occurrences returns the number of new occurrences in one change.
func (a *accounts) occurrences(c *watch.Change) int64 {
	switch c.Kind {
	case watch.ListBegan:
		a.memory.BeginList(c.Namespace)
	case watch.ListEnded:
		a.memory.EndList(c.Namespace, c.SeenAt)
	case watch.Deleted:
		a.memory.Delete(c.Namespace, c.Event, c.SeenAt)
	case watch.Existing:
		a.memory.Existing(c.Namespace, c.Event)
	case watch.Listed:
		return a.memory.List(c.Namespace, c.Event)
	case watch.Changed:
		return a.memory.Change(c.Namespace, c.Event)
	}
	return 0
}

// advance notes where the streams resume, once the batch is dealt with or saved.
func advance(m *memory.Memory, b *batch) {
	for i := range b.changes {
		if c := &b.changes[i]; c.ResourceVersion != "" {
			m.Advance(c.Namespace, c.ResourceVersion)
		}
	}
}

// clusterCheck compares the cluster that answers with the one that is remembered.
type clusterCheck struct {
	cluster  *cluster.Identity
	memory   *memory.Memory
	sums     sums
	versions *watch.Versions
	gate     gate
	// refreshed is when the cluster was last asked for its UID because versions had gone back.
	refreshed time.Time
	// answer is closed when the cluster has answered since; nil: it has, or was not asked.
	answer <-chan struct{}
}

// restored notes, for one stream after the other, that the cluster's resource versions have gone
// back: etcd was restored, or another cluster answers at the address.
func (d *clusterCheck) restored(stop context.Context, stream string) {
	d.memory.ForgetVersions(stream)
	// A position that was published since is not above the highest version.
	d.gate.WentBack(d.versions.Highest())
	// All streams notice it at about the same time: one answer serves those of a second.
	if d.answer != nil || time.Since(d.refreshed) < retryCluster {
		return
	}
	if d.cluster.Refresh(stop) == nil {
		d.refreshed = time.Now()
		d.learn()
	} else {
		d.answer = d.cluster.Ask(stop)
	}
}

// learn notes whether the cluster has answered, and which one it is if none is remembered.
func (d *clusterCheck) learn() {
	select {
	case <-d.answer:
		d.answer = nil
	default:
	}
	if uid := d.cluster.UID(); d.memory.Cluster() == "" && uid != "" {
		d.set(uid)
	}
}

// isReplaced reports whether another cluster answers than the one that is remembered.
func (d *clusterCheck) isReplaced() bool {
	known := d.memory.Cluster()
	return known != "" && known != cmp.Or(d.cluster.UID(), known)
}

// set sets the UID that records and points name.
func (d *clusterCheck) set(uid string) {
	d.memory.SetCluster(uid)
	d.sums.setCluster(uid)
}
