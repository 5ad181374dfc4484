// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unique"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
)

// owner is the one owner reference of an object that the resolver follows.
type owner struct {
	apiVersion string
	kind       string
	name       string
	uid        types.UID

	// ambiguous is set if this is the first of several references and none is the controller.
	ambiguous bool
}

// none is the owner of an object without owners.
var none unique.Handle[owner]

// chooseOwner returns the reference to follow: the controller, else the only reference, else the
// first.
func chooseOwner(references []metav1.OwnerReference) unique.Handle[owner] {
	if len(references) == 0 {
		return none
	}
	chosen := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: references})
	ambiguous := chosen == nil && len(references) > 1
	if chosen == nil {
		chosen = &references[0]
	}
	return unique.Make(owner{
		apiVersion: chosen.APIVersion,
		kind:       chosen.Kind,
		name:       chosen.Name,
		uid:        chosen.UID,
		ambiguous:  ambiguous,
	})
}

// trimmer converts metadata to objects and keeps only the labels and annotations that the caller
// needs.
type trimmer struct {
	keepLabel      func(string) bool
	keepAnnotation func(string) bool
	sets           *stringSets
}

// object returns the object that meta describes. It retains nothing of meta.
func (t *trimmer) object(k *kinds.Kind, meta *metav1.PartialObjectMetadata) Object {
	object := Object{
		APIVersion:  k.APIVersion,
		Kind:        k.Name.Value().Kind,
		Namespace:   unique.Make(meta.Namespace).Value(),
		Name:        strings.Clone(meta.Name),
		UID:         types.UID(strings.Clone(string(meta.UID))),
		Labels:      t.sets.shared(kept(meta.Labels, t.keepLabel)),
		Annotations: t.sets.shared(kept(meta.Annotations, t.keepAnnotation)),
		owner:       chooseOwner(meta.OwnerReferences),
		found:       true,
	}
	if k.Name == corePod {
		object.mirrored = types.UID(strings.Clone(meta.Annotations[mirrorAnnotation]))
	}
	return object
}

// kept returns the entries whose keys are kept; nil if there are none.
func kept(all map[string]string, keep func(string) bool) map[string]string {
	if keep == nil {
		return nil
	}
	var chosen map[string]string
	for key, value := range all {
		if !keep(key) {
			continue
		}
		if chosen == nil {
			chosen = make(map[string]string)
		}
		chosen[strings.Clone(key)] = strings.Clone(value)
	}
	return chosen
}

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
