// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
func (t *trimmer) object(k *kind, meta *metav1.PartialObjectMetadata) Object {
	return Object{
		APIVersion:  k.apiVersion,
		Kind:        k.name.Value().Kind,
		Namespace:   unique.Make(meta.Namespace).Value(),
		Name:        strings.Clone(meta.Name),
		UID:         types.UID(strings.Clone(string(meta.UID))),
		Labels:      t.sets.shared(kept(meta.Labels, t.keepLabel)),
		Annotations: t.sets.shared(kept(meta.Annotations, t.keepAnnotation)),
		owner:       chooseOwner(meta.OwnerReferences),
		found:       true,
	}
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
