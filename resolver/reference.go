// SPDX-License-Identifier: Apache-2.0

package resolver

import "k8s.io/apimachinery/pkg/types"

// Reference names one object the way an event's involved object or an owner
// reference does. Any field but Kind and Name may be empty; an empty UID means
// whatever object bears the name now.
type Reference struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	UID        types.UID
}
