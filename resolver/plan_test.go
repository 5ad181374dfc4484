// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

var (
	podsKind = &kinds.Kind{Name: corePod, Namespaced: true, Listable: true}
	ofAll    = collectionOf(podsKind, "")
	ofShop   = collectionOf(podsKind, "shop")
)

func unknownPods(n int, namespaces ...string) (keys []objectKey) {
	for _, namespace := range namespaces {
		for i := range n {
			keys = append(keys, objectKey{collectionOf(podsKind, namespace), fmt.Sprint("p", i)})
		}
	}
	return keys
}

// readPage notes a page with some objects, and how many are left.
func readPage(p *planner, list listing, objects int, left int64) (listing, bool) {
	page := &metav1.PartialObjectMetadataList{Items: make([]metav1.PartialObjectMetadata, objects)}
	if left > 0 {
		page.Continue, page.RemainingItemCount = "more", &left
	}
	return p.notePage(list, page, limitAfter(page), 1)
}

func TestWhatIsListed(t *testing.T) {
	const minute = time.Minute
	shop := unknownPods(1, "shop")[0]
	sized := func(in collection, size int) func(*planner) {
		return func(p *planner) { readPage(p, listing{in: in, limit: pageSize}, size, 0) }
	}
	readShop := func(n int) func(*planner) {
		return func(p *planner) {
			for range n {
				p.noteRead(target{podsKind, shop}, "", 1)
			}
		}
	}
	tests := map[string]struct {
		settings Settings
		before   func(*planner)
		kind     *kinds.Kind
		unknown  []objectKey
		now      time.Duration
		want     []listing
	}{
		"one object": {unknown: unknownPods(1, "shop")},
		"two objects of a namespace of unknown size": {unknown: unknownPods(2, "shop"), want: []listing{{in: ofShop, needed: 2, limit: 40}}},
		"twenty in a cluster of unknown size":        {unknown: unknownPods(1, manyNamespaces(20)...), want: []listing{{in: ofAll, needed: 20, limit: 100}}},
		"nineteen in as many namespaces":             {unknown: unknownPods(1, manyNamespaces(19)...)},
		"only namespaces are listed":                 {settings: Settings{ListNamespacesOnly: true}, unknown: unknownPods(40, "shop"), want: []listing{{in: ofShop, needed: 40, limit: 100}}},
		"the namespace is too large":                 {before: sized(ofShop, 41), unknown: unknownPods(2, "shop"), now: minute},
		"it is just small enough":                    {before: sized(ofShop, 40), unknown: unknownPods(2, "shop"), now: minute, want: []listing{{in: ofShop, needed: 2, limit: pageSize}}},
		"its size was learned long ago":              {before: sized(ofShop, 400), unknown: unknownPods(2, "shop"), now: time.Hour, want: []listing{{in: ofShop, needed: 2, limit: 40}}},
		"one more of those that were read alone":     {before: readShop(3), unknown: unknownPods(1, "shop"), now: minute, want: []listing{{in: ofShop, needed: 4, limit: 80}}},
		"those were read long ago":                   {before: readShop(3), unknown: unknownPods(1, "shop"), now: time.Hour},
		"a list was read since":                      {before: func(p *planner) { readShop(3)(p); p.noteList(ofShop, true, "", 1) }, unknown: unknownPods(1, "shop"), now: minute},
		"the list is refused":                        {before: func(p *planner) { p.noteList(ofShop, false, ResolutionForbidden, 1) }, unknown: unknownPods(9, "shop"), now: 59 * time.Second},
		"the list was refused":                       {before: func(p *planner) { p.noteList(ofShop, false, ResolutionForbidden, 1) }, unknown: unknownPods(9, "shop"), now: 61 * time.Second, want: []listing{{in: ofShop, needed: 9, limit: 100}}},
		"the list has just failed":                   {before: func(p *planner) { p.noteList(ofShop, false, ResolutionUnavailable, 1) }, unknown: unknownPods(9, "shop"), now: 59 * time.Second},
		"the kind cannot be listed":                  {kind: &kinds.Kind{Name: corePod, Namespaced: true}, unknown: unknownPods(40, "shop")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.settings.CacheTTL = 10 * minute
			p := newPlanner(test.settings)
			if test.before != nil {
				test.before(p)
			}
			k := podsKind
			if test.kind != nil {
				k = test.kind
			}
			require.Equal(t, test.want, p.plan(k, test.unknown, max(test.now, 1)))
		})
	}
}

func manyNamespaces(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("n", i))
	}
	return names
}

func TestAListEndsWhenItIsNotWorthIt(t *testing.T) {
	tests := map[string]struct {
		needed, left int
		goesOn       bool
	}{
		"that was all":               {20, 0, false},
		"20 for each that is needed": {20, 350, true},
		"more than that":             {20, 351, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlanner(Settings{CacheTTL: time.Minute})
			read, goesOn := readPage(p, listing{in: ofShop, needed: test.needed, limit: 50}, 50, int64(test.left))
			require.Equal(t, test.goesOn, goesOn)
			require.Equal(t, listing{in: ofShop, needed: test.needed, limit: pageSize, read: 50}, read)
		})
	}
}

func TestAReadThatIsRefusedAgainAndAgain(t *testing.T) {
	p := newPlanner(Settings{CacheTTL: time.Minute})
	of := target{podsKind, unknownPods(1, "shop")[0]}
	for range refusalsInARow {
		require.False(t, p.refusesReads(ofShop, time.Second))
		p.noteRead(of, ResolutionForbidden, time.Second)
	}
	require.True(t, p.refusesReads(ofShop, time.Minute))
	require.False(t, p.refusesReads(ofShop, time.Second+stableFailureTTL))
	p.noteRead(of, "", time.Minute)
	require.False(t, p.refusesReads(ofShop, time.Minute), "an answer ends it")
}
