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
// delivered can have more pods: then it neither displaces the others, nor do they displace it. Evict
// calls forgotten with each revision.
func (m *Model) Evict(maxRevisions, maxPods int, forgotten func(Key, *Revision)) {
	revisions, pods := m.Size()
	if largest := m.largest(); largest > maxPods {
		maxPods += largest
	}
	for revisions > maxRevisions || revisions > 1 && pods > maxPods {
		key, r := m.oldest()
		m.Forget(key)
		forgotten(key, r)
		revisions, pods = revisions-1, pods-len(r.Pods)
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
// than one that was not.
func (m *Model) oldest() (key Key, oldest *Revision) {
	for workload, w := range m.Workloads {
		for name, r := range w.Revisions {
			if oldest == nil || compareAge(r, oldest) < 0 {
				key, oldest = Key{Workload: workload, Revision: name}, r
			}
		}
	}
	return key, oldest
}

func compareAge(a, b *Revision) int {
	if a.Closed != b.Closed {
		if a.Closed {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.News, b.News)
}
