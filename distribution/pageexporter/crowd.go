// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"slices"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// group returns which workloads the page counts together.
func (w *workload) group() rollout.Group {
	return rollout.Group{Cluster: w.cluster, Namespace: w.namespace, Kind: w.top.kind()}
}

// crowdIn returns the largest group of workloads that can live once, such as the runs of a CI
// system, if such workloads take more than half of the room. Thousands of runs must not displace
// the others.
func crowdIn(all []*workload, room int) rollout.Group {
	groups := map[rollout.Group]int{}
	for _, w := range all {
		if !rollout.Lasts(w.top.kind()) {
			groups[w.group()]++
		}
	}
	return rollout.Crowd(groups, room)
}

// rank is lower for the workloads of the crowd, which leave the page first.
func (w *workload) rank(crowd rollout.Group) int {
	if w.group() == crowd {
		return 0
	}
	return 1
}

// fitting returns the selections that have room on the page. The last ones leave it, those of the
// crowd first.
func fitting(shown []selection) []selection {
	shown = slices.Clone(shown)
	for len(shown) > cardsShown {
		var all []*workload
		for _, s := range shown {
			all = append(all, s.workload)
		}
		crowd := crowdIn(all, cardsShown)
		if crowd == (rollout.Group{}) {
			return shown[:cardsShown]
		}
		last := len(shown) - 1
		for shown[last].group() != crowd {
			last--
		}
		shown = slices.Delete(shown, last, last+1)
	}
	return shown
}
