// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"strings"
)

// Size returns how many revisions and pods the model has.
func (m *Model) Size() (revisions, pods int) {
	for _, w := range m.Workloads {
		revisions += len(w.Revisions)
		for _, r := range w.Revisions {
			pods += len(r.Pods)
		}
	}
	return revisions, pods
}

// Evict forgets revisions while there are too many of them, or of their pods. One revision that is
// not delivered can have more pods: then it neither displaces the others, nor do they displace it.
// A CI system or a CronJob makes thousands of objects that live once, which would displace the
// others: Evict forgets those of a crowd first. It calls forgotten with each revision.
func (m *Model) Evict(maxRevisions, maxPods int, forgotten func(Key, *Revision)) {
	m.forgetNames(maxRevisions)
	revisions, pods := m.Size()
	if pods > maxPods {
		if largest := m.largest(); largest > maxPods {
			maxPods += largest
		}
	}
	for revisions > maxRevisions || revisions > 1 && pods > maxPods {
		key, r := m.oldest(m.crowd(maxRevisions, maxPods))
		m.Forget(key)
		forgotten(key, r)
		revisions, pods = revisions-1, pods-len(r.Pods)
	}
}

// Lasts reports whether objects of a kind, such as deployment.apps, live on while what they run
// changes. Objects of other kinds, such as Jobs, can be made for a single run.
func Lasts(kind string) bool {
	switch kind {
	case "deployment.apps", "replicaset.apps", "statefulset.apps", "daemonset.apps", "replicationcontroller",
		"cronjob.batch", "node", "rollout.argoproj.io":
		return true
	}
	return false
}

// CanLiveOnce reports whether the revision is an object that can be made for a single run.
func CanLiveOnce(revision string) bool {
	kind, _, isObject := strings.Cut(revision, "/") // Else it is a hash.
	return isObject && !Lasts(kind)
}

// Group has the objects of one kind in a namespace.
type Group struct{ Cluster, Namespace, Kind string }

func (g Group) compare(other Group) int {
	return cmp.Or(cmp.Compare(g.Cluster, other.Cluster), cmp.Compare(g.Namespace, other.Namespace), cmp.Compare(g.Kind, other.Kind))
}

// Crowd returns the largest of some groups if all together take more than half of the room; an
// empty one: they do not.
func Crowd(groups map[Group]int, room int) (crowd Group) {
	total := 0
	for g, size := range groups {
		total += size
		if size > groups[crowd] || size == groups[crowd] && g.compare(crowd) < 0 {
			crowd = g
		}
	}
	if total <= room/2 {
		return Group{}
	}
	return crowd
}

// crowd returns the crowd of the revisions that can live once. One with many pods takes the room of
// several.
func (m *Model) crowd(maxRevisions, maxPods int) Group {
	groups := map[Group]int{}
	for _, w := range m.Workloads {
		for name, r := range w.Revisions {
			if CanLiveOnce(name) {
				groups[w.groupOf(name, r)] += max(maxPods, maxRevisions*len(r.Pods))
			}
		}
	}
	return Crowd(groups, maxRevisions*maxPods)
}

func (w *Workload) groupOf(name string, r *Revision) Group {
	kind, _, _ := strings.Cut(name, "/")
	return Group{w.Cluster, r.Attributes["k8s.namespace.name"], kind}
}

// forgetNames forgets workloads without a revision, of which only the names of pods are known,
// while there are more than most of them. Those with the oldest names are the first.
func (m *Model) forgetNames(most int) {
	var without []string
	for key, w := range m.Workloads {
		if len(w.Revisions) == 0 {
			without = append(without, key)
		}
	}
	if len(without) <= most {
		return
	}
	slices.SortFunc(without, func(a, b string) int {
		return cmp.Or(cmp.Compare(m.Workloads[a].Names.Last(), m.Workloads[b].Names.Last()), cmp.Compare(a, b))
	})
	for _, key := range without[:len(without)-most] {
		delete(m.Workloads, key)
	}
}

// largest returns how many pods the revision with the most pods has, of those that are not delivered.
func (m *Model) largest() (pods int) {
	for _, w := range m.Workloads {
		for _, r := range w.Revisions {
			if !r.Closed {
				pods = max(pods, len(r.Pods))
			}
		}
	}
	return pods
}

// oldest returns the revision that had no news for the longest time. One that was delivered is older
// than one that was not, and of both, those of the crowd are older than the others.
func (m *Model) oldest(crowd Group) (key Key, oldest *Revision) {
	least := 0
	for workload, w := range m.Workloads {
		for name, r := range w.Revisions {
			rank := 0
			if !r.Closed {
				rank = 2
			}
			if w.groupOf(name, r) != crowd {
				rank++
			}
			if oldest == nil || cmp.Or(cmp.Compare(rank, least), cmp.Compare(r.News, oldest.News)) < 0 {
				key, oldest, least = Key{Workload: workload, Revision: name}, r, rank
			}
		}
	}
	return key, oldest
}
