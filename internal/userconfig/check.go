// SPDX-License-Identifier: Apache-2.0

package userconfig

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// OneOf rejects a value that is not among those that are allowed.
func OneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	last := len(allowed) - 1
	return fmt.Errorf("%s: %q is not known; use %s or %s", key, value, strings.Join(allowed[:last], ", "), allowed[last])
}

// Within rejects numbers below 1 and above a limit that only typing errors exceed.
func Within(key string, value, limit int) error {
	if value >= 1 && value <= limit {
		return nil
	}
	return fmt.Errorf("%s: %d is not possible; set a number from 1 to %d", key, value, limit)
}

// Above0 rejects a duration that is not positive, or so short that its unit must be wrong.
func Above0(key string, value time.Duration, example string) error {
	if value >= time.Millisecond {
		return nil
	}
	return fmt.Errorf("%s: %v is below 1ms; set a duration such as %s", key, value, example)
}

// NotBelow rejects a duration that is shorter than another one.
func NotBelow(key string, value time.Duration, other string, least time.Duration) error {
	if value >= least {
		return Above0(key, value, "1h")
	}
	return fmt.Errorf("%s: %v is shorter than %s, which is %v; set at least %v", key, value, other, least, least)
}

// ZeroOrAbove is Above0 for a duration that may be 0.
func ZeroOrAbove(key string, value time.Duration, example string) error {
	if value == 0 {
		return nil
	}
	return Above0(key, value, example)
}
