// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// mostSets is how many different sets of labels are shared at a time.
const mostSets = 4096

// stringSets lets objects with equal labels share one map. A map of a single
// entry takes more than 300 bytes, which is more than the rest of an object,
// and the pods of a workload mostly carry the same labels.
type stringSets struct {
	mu   sync.Mutex
	sets *simplelru.LRU[string, map[string]string] // guarded by mu; by what is in them
}

func newStringSets() *stringSets {
	return &stringSets{sets: newLRU[string, map[string]string](mostSets)}
}

// shared returns a set equal to the given one, which must not be written to any
// more. An empty set is returned as nil.
func (s *stringSets) shared(set map[string]string) map[string]string {
	if len(set) == 0 {
		return nil
	}
	content := contentOf(set)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, found := s.sets.Get(content); found {
		return known
	}
	s.sets.Add(content, set)
	return set
}

// contentOf writes a set as one string that no other set is written as.
func contentOf(set map[string]string) string {
	var content strings.Builder
	for _, key := range slices.Sorted(maps.Keys(set)) {
		content.WriteString(strconv.Quote(key))
		content.WriteString(strconv.Quote(set[key]))
	}
	return content.String()
}
