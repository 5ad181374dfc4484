// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unique"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/large"
	"github.com/kubeevents/kubeeventsreceiver/internal/text"
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
	// The API server limits none of these.
	return unique.Make(owner{
		apiVersion: text.Value(chosen.APIVersion),
		kind:       text.Value(chosen.Kind),
		name:       text.Value(chosen.Name),
		uid:        types.UID(text.Value(string(chosen.UID))),
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
		Namespace:   unique.Make(text.Value(meta.Namespace)).Value(),
		Name:        strings.Clone(text.Value(meta.Name)),
		UID:         types.UID(strings.Clone(text.Value(string(meta.UID)))),
		Labels:      t.sets.shared(text.Entries(meta.Labels, t.keepLabel)),
		Annotations: t.sets.shared(text.Entries(meta.Annotations, t.keepAnnotation)),
		owner:       chooseOwner(meta.OwnerReferences),
		found:       true,
	}
	if k.Name == corePod {
		object.mirrored = types.UID(strings.Clone(text.Value(meta.Annotations[mirrorAnnotation])))
	}
	return object
}

// maxSets is the maximum number of shared sets of labels.
const maxSets = 4096

// stringSets lets objects with equal labels share one map. A map with a single entry takes more
// than 300 bytes, more than the rest of an object. The pods of a workload usually have the same
// labels. It does not keep large sets, which nobody else may need.
type stringSets struct {
	mu   sync.Mutex
	sets *simplelru.LRU[[sha256.Size]byte, map[string]string] // by content; guarded by mu
}

func newStringSets() *stringSets {
	return &stringSets{sets: newLRU[[sha256.Size]byte, map[string]string](maxSets)}
}

// shared returns a set that is equal to the given one. Callers must not change either. It returns
// nil for an empty set.
func (s *stringSets) shared(set map[string]string) map[string]string {
	if len(set) == 0 {
		return nil
	}
	if large.Size(set) > 0 {
		return set
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

// contentOf returns a hash of the content of a set.
func contentOf(set map[string]string) [sha256.Size]byte {
	var content []byte
	for _, key := range slices.Sorted(maps.Keys(set)) {
		content = strconv.AppendQuote(content, key)
		content = strconv.AppendQuote(content, set[key])
	}
	return sha256.Sum256(content)
}
