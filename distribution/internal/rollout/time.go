// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Anybody may write any time. Times count as the first or the last one of these years, so that their
// nanoseconds have 63 bits, with room for the durations that are added to them.
var (
	earliestTime = time.Unix(0, 0).UTC()
	latestTime   = time.Date(2261, 12, 31, 23, 59, 59, 0, time.UTC)
)

// TimeOf returns the time of a record.
func TimeOf(at pcommon.Timestamp) time.Time {
	return min(at, pcommon.NewTimestampFromTime(latestTime)).AsTime()
}

// Bounded returns a time from 1970 to 2261.
func Bounded(at time.Time) time.Time {
	switch {
	case at.Before(earliestTime):
		return earliestTime
	case at.After(latestTime):
		return latestTime
	}
	return at
}
