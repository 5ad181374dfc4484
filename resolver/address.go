// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// place is where objects are listed: a kind, and a namespace unless the kind is
// cluster-scoped. Handles make it small and quick to compare.
type place struct {
	kind      unique.Handle[schema.GroupKind]
	namespace unique.Handle[string]
}

// address is where one object is read. Several objects may live at one address,
// one after another; their UIDs tell them apart.
type address struct {
	place
	name string
}

// coreNode is the one kind whose references carry a UID that means nothing:
// kubelet writes the node's name there.
var coreNode = unique.Make(schema.GroupKind{Kind: "Node"})
