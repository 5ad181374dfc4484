// SPDX-License-Identifier: Apache-2.0

package rollout

import "cmp"

// What Events mean that have the same reason. Other kinds are reasons.
const (
	KindPresent    = kindPresent
	KindStopping   = kindStopping
	KindPullFailed = kindPullFailed
	KindRestarted  = kindRestarted
	KindCrashed    = kindCrashed
)

// KindOf returns what an Event means by its reason and, if several share it, its message.
func KindOf(reason, message string) string { return cmp.Or(kindOf(reason, message), reason) }

// IsHarmless reports whether objects run in spite of a warning with this reason.
func IsHarmless(reason string) bool { return harmless[reason] }
