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

// at returns a moment without lists in flight, when some objects of requests were needed.
func at(now time.Duration, needed int) moment {
	return moment{now: now, needed: needed, isListed: func(collection) bool { return false }}
}

// readPage notes a page with some objects, and how many are left.
func readPage(p *planner, of listing, objects int, left int64, when moment) (listing, bool) {
	page := &metav1.PartialObjectMetadataList{Items: make([]metav1.PartialObjectMetadata, objects)}
	if left > 0 {
		page.Continue, page.RemainingItemCount = "more", &left
	}
	return p.notePage(of, page, when)
}

func TestWhatIsListed(t *testing.T) {
	const minute = time.Minute
	shop := unknownPods(1, "shop")[0]
	sized := func(in collection, size int) func(*planner) {
		return func(p *planner) { readPage(p, listing{in: in, limit: pageSize}, size, 0, at(1, 0)) }
	}
	readShop := func(n int) func(*planner) {
		return func(p *planner) {
			for range n {
				p.noteRead(target{podsKind, shop}, "", 1)
			}
		}
	}
	tests := map[string]struct {
		cfg       Config
		permitted float32 // requests a second; 0: any number
		before    func(*planner)
		kind      *kinds.Kind
		unknown   []objectKey
		when      moment
		want      []listing
	}{
		"one object": {unknown: unknownPods(1, "shop")},
		"two objects of a namespace of unknown size": {unknown: unknownPods(2, "shop"), want: []listing{{in: ofShop, needed: 2, limit: 10}}},
		"with a rate limit, a list may be longer":    {permitted: 10, unknown: unknownPods(2, "shop"), want: []listing{{in: ofShop, needed: 2, limit: 100}}},
		"twenty in a cluster of unknown size":        {unknown: unknownPods(1, manyNamespaces(20)...), want: []listing{{in: ofAll, needed: 20, limit: 100}}},
		"nineteen in as many namespaces":             {unknown: unknownPods(1, manyNamespaces(19)...)},
		"only some namespaces are resolved":          {cfg: Config{Namespaces: []string{"shop"}}, unknown: unknownPods(40, "shop"), want: []listing{{in: ofShop, needed: 40, limit: 100}}},
		"the namespace is too large":                 {before: sized(ofShop, 400), unknown: unknownPods(2, "shop"), when: at(minute, 0)},
		"it is just small enough":                    {before: sized(ofShop, 10), unknown: unknownPods(2, "shop"), when: at(minute, 0), want: []listing{{in: ofShop, needed: 2, limit: pageSize, left: 10}}},
		"most of what was read was needed":           {before: sized(ofShop, 40), unknown: unknownPods(2, "shop"), when: at(minute, 100), want: []listing{{in: ofShop, needed: 2, limit: pageSize, left: 40}}},
		"its size was learned long ago":              {before: sized(ofShop, 400), unknown: unknownPods(2, "shop"), when: at(time.Hour, 0), want: []listing{{in: ofShop, needed: 2, limit: 10, left: 400}}},
		"one more of those that were read singly":    {before: readShop(3), unknown: unknownPods(1, "shop"), when: at(minute, 0), want: []listing{{in: ofShop, needed: 4, limit: 20}}},
		"those were read long ago":                   {before: readShop(3), unknown: unknownPods(1, "shop"), when: at(time.Hour, 0)},
		"the list is refused":                        {before: func(p *planner) { p.noteList(ofShop, false, Forbidden, 1) }, unknown: unknownPods(9, "shop"), when: at(59*time.Second, 0)},
		"the list was refused":                       {before: func(p *planner) { p.noteList(ofShop, false, Forbidden, 1) }, unknown: unknownPods(9, "shop"), when: at(61*time.Second, 0), want: []listing{{in: ofShop, needed: 9, limit: 45}}},
		"the list has just failed":                   {before: func(p *planner) { p.noteList(ofShop, false, Unavailable, 1) }, unknown: unknownPods(9, "shop"), when: at(4*time.Second, 0)},
		"a list is in flight":                        {unknown: unknownPods(9, "shop"), when: moment{isListed: func(in collection) bool { return in == ofShop }}},
		"the kind cannot be listed":                  {kind: &kinds.Kind{Name: corePod, Namespaced: true}, unknown: unknownPods(40, "shop")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.cfg.CacheTTL, test.cfg.Concurrency = 10*minute, 400
			p := newPlanner(test.cfg, test.permitted)
			if test.before != nil {
				test.before(p)
			}
			if test.when.isListed == nil {
				test.when = at(1, 0)
			}
			k := podsKind
			if test.kind != nil {
				k = test.kind
			}
			require.Equal(t, test.want, p.plan(k, test.unknown, test.when))
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
		"that was all":                 {20, 0, false},
		"five for each that is needed": {20, 50, true},
		"more than that":               {20, 500, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlanner(Config{CacheTTL: time.Minute, Concurrency: 400}, 0)
			read, goesOn := readPage(p, listing{in: ofShop, needed: test.needed, limit: 50}, 50, int64(test.left), at(1, 0))
			require.Equal(t, test.goesOn, goesOn)
			require.Equal(t, listing{in: ofShop, needed: test.needed, limit: pageSize, pages: 1, objects: 50, left: test.left}, read)
		})
	}
}

func TestAReadThatIsRefusedAgainAndAgain(t *testing.T) {
	p := newPlanner(Config{CacheTTL: time.Minute, Concurrency: 400}, 0)
	of := target{podsKind, unknownPods(1, "shop")[0]}
	for range refusalsInARow {
		require.False(t, p.refusesReads(ofShop, time.Second))
		p.noteRead(of, Forbidden, time.Second)
	}
	require.True(t, p.refusesReads(ofShop, time.Minute))
	require.False(t, p.refusesReads(ofShop, time.Second+stableFailureTTL))
	p.noteRead(of, "", time.Minute)
	require.False(t, p.refusesReads(ofShop, time.Minute), "an answer ends it")
}

func TestALongListIsNotWaitedFor(t *testing.T) {
	long, short := listing{left: 10 * pageSize}, listing{left: 10}
	tests := map[string]struct {
		permitted float32
		list      listing
		wanted    int
		want      bool
	}{
		"a long list for as many as are read at a time":   {list: long, wanted: 100, want: true},
		"a long list for many":                            {list: long, wanted: 1000},
		"a short list":                                    {list: short, wanted: 1},
		"with a rate limit, a long list for fewer":        {permitted: 10, list: long, wanted: 9, want: true},
		"with a rate limit, a list saves permits of them": {permitted: 10, list: long, wanted: 100},
		"with a high rate limit, a long list for many":    {permitted: 1000, list: long, wanted: 100, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlanner(Config{CacheTTL: time.Minute, Concurrency: 400}, test.permitted)
			require.Equal(t, test.want, p.isQuickerSingly(test.list, test.wanted))
		})
	}
}
