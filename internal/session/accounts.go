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
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
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
		reached.State("another cluster at the address answers late")
		a.leaveOut(b, 0) // It answered late which one it is.
	}
	b.observations = make([]observation.Observation, 0, len(b.changes))
	var received, filtered int64
	for i := range b.changes {
		c := &b.changes[i]
		if c.Kind == watch.Restored {
			forgetPlaces(b.changes[:i], c.Namespace)
			if !a.cluster.isSame(stop, c.Namespace) {
				a.leaveOut(b, i)
				break
			}
		}
		if c.Kind == watch.ListEnded {
			a.forgetsMore = true // Many may have been deleted.
		}
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

// leaveOut leaves out the changes from i on, and ends the session: they are of another cluster, or it
// is not known of which one. The next session lists what that one has.
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
	cluster *cluster.Identity
	memory  *memory.Memory
	sums    *metricsPipeline
	gate    gate
	// ask waits until the cluster answers which one it is. It reports false if the context ended
	// before.
	ask func(context.Context) bool
	// answered is when the cluster last answered because versions had gone back.
	answered time.Time
}

// isSame notes that the cluster's resource versions have gone back, for one stream after the other,
// and reports whether it is still the same cluster: etcd was restored, or another cluster answers at
// the address. It waits for an answer, because the records of another cluster would name this one,
// and come again with the right name. It also reports false if stop ended before.
func (d *clusterCheck) isSame(stop context.Context, stream string) bool {
	d.memory.ForgetVersions(stream)
	d.gate.WentBack()
	if d.memory.Cluster() == "" {
		reached.State("a restore of a cluster that never said which one it is")
		return true // No record names a cluster.
	}
	// All streams notice it at about the same time: one answer serves those of a second.
	if time.Since(d.answered) < retryCluster {
		reached.State("several streams notice a restore together")
		return true
	}
	if !d.ask(stop) {
		reached.State("a session ends before the cluster says which one it is after a restore")
		return false
	}
	d.answered = time.Now()
	d.learn()
	if d.isReplaced() {
		reached.State("another cluster at the address within a batch")
		return false
	}
	return true
}

// learn notes which cluster answers if none is remembered.
func (d *clusterCheck) learn() {
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
