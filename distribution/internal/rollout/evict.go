// SPDX-License-Identifier: Apache-2.0

package rollout

import "cmp"

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

// Evict forgets revisions while there are too many of them, or of their pods. One revision that is not
// delivered can have more pods: then it neither displaces the others, nor do they displace it. CronJobs
// make hundreds of Jobs an hour, which would displace the others: if more than half are Jobs, it forgets them
// first. Evict calls forgotten with each revision.
func (m *Model) Evict(maxRevisions, maxPods int, forgotten func(Key, *Revision)) {
	revisions, pods := m.Size()
	jobs := m.jobs()
	if largest := m.largest(); largest > maxPods {
		maxPods += largest
	}
	for revisions > maxRevisions || revisions > 1 && pods > maxPods {
		key, r := m.oldest(jobs > maxRevisions/2)
		m.Forget(key)
		forgotten(key, r)
		revisions, pods = revisions-1, pods-len(r.Pods)
		if IsJob(key.Revision) {
			jobs--
		}
	}
}

// jobs returns how many revisions are Jobs.
func (m *Model) jobs() (count int) {
	for _, w := range m.Workloads {
		for name := range w.Revisions {
			if IsJob(name) {
				count++
			}
		}
	}
	return count
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
// than one that was not. With jobsFirst, delivered Jobs are older than all others.
func (m *Model) oldest(jobsFirst bool) (key Key, oldest *Revision) {
	rank := func(name string, r *Revision) int {
		switch {
		case !r.Closed:
			return 2
		case jobsFirst && IsJob(name):
			return 0
		}
		return 1
	}
	for workload, w := range m.Workloads {
		for name, r := range w.Revisions {
			if oldest == nil || cmp.Or(cmp.Compare(rank(name, r), rank(key.Revision, oldest)), cmp.Compare(r.News, oldest.News)) < 0 {
				key, oldest = Key{Workload: workload, Revision: name}, r
			}
		}
	}
	return key, oldest
}
