// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// collection is where objects are listed: a kind, and a namespace unless the kind is
// cluster-scoped. Handles make it small and fast to compare.
type collection struct {
	kind      unique.Handle[schema.GroupKind]
	namespace unique.Handle[string]
}

// objectKey is where one object is read. Several objects can have the same key, one after another.
// Their UIDs distinguish them.
type objectKey struct {
	collection
	name string
}

// coreNode is the only kind whose references have a meaningless UID: kubelet writes the node's name
// there.
var coreNode = unique.Make(schema.GroupKind{Kind: "Node"})
