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

// maxSets is the maximum number of shared sets of labels.
const maxSets = 4096

// stringSets lets objects with equal labels share one map. A map with a single entry takes more
// than 300 bytes, more than the rest of an object. The pods of a workload usually have the same
// labels.
type stringSets struct {
	mu   sync.Mutex
	sets *simplelru.LRU[string, map[string]string] // by content; guarded by mu
}

func newStringSets() *stringSets {
	return &stringSets{sets: newLRU[string, map[string]string](maxSets)}
}

// shared returns a set that is equal to the given one. Callers must not change either. It returns
// nil for an empty set.
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

// contentOf returns a unique string for the content of a set.
func contentOf(set map[string]string) string {
	var content strings.Builder
	for _, key := range slices.Sorted(maps.Keys(set)) {
		content.WriteString(strconv.Quote(key))
		content.WriteString(strconv.Quote(set[key]))
	}
	return content.String()
}
