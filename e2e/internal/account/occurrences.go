// SPDX-License-Identifier: Apache-2.0

package account

import corev1 "k8s.io/api/core/v1"

// Occurrences returns how often an event has occurred, in either style of the API.
func Occurrences(event *corev1.Event) int64 {
	count := max(1, event.Count)
	if event.Series != nil {
		count = max(count, event.Series.Count)
	}
	return int64(count)
}
