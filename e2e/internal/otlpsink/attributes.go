// SPDX-License-Identifier: Apache-2.0

package otlpsink

import "go.opentelemetry.io/collector/pdata/pcommon"

// Text returns the value of an attribute as a text; empty if there is none.
func Text(attributes pcommon.Map, key string) string {
	if value, ok := attributes.Get(key); ok {
		return value.AsString()
	}
	return ""
}

// Number returns the value of an attribute; 0 if there is none.
func Number(attributes pcommon.Map, key string) int64 {
	if value, ok := attributes.Get(key); ok {
		return value.Int()
	}
	return 0
}
