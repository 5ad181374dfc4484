// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// outcomeDigest returns a digest of what the exporters got: the sorted set of exporter,
// log.record.uid, occurrences, body, and attributes without times. The digest of a story shifts with
// every change of the code, because the scheduler's random numbers do. This one does not: two commits
// can be compared with it, on seeds without a crash.
func (e *environment) outcomeDigest() string {
	set := map[string]bool{}
	for _, of := range e.all() {
		for _, x := range of.exporters {
			for _, r := range records(x.all()) {
				set[fmt.Sprintf("%d %s %d %q %s %s", x.number, r.uid, r.occurrences, r.log.Body().AsString(),
					timeless(r.resource), timeless(r.log.Attributes()))] = true
			}
		}
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(slices.Sorted(maps.Keys(set)), "\n"))))
}

// timeless writes attributes in a fixed order, without those that have a time.
func timeless(attributes pcommon.Map) string {
	var b strings.Builder
	raw := attributes.AsRaw()
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		if !strings.HasSuffix(name, "_time") {
			fmt.Fprintf(&b, " %s=%q", name, fmt.Sprint(raw[name]))
		}
	}
	return b.String()
}

// kindOfRun is what a comparison of two commits selects seeds by: nothing goes wrong, something does,
// or a process is ended.
func (p *Plan) kindOfRun() string {
	switch {
	case len(p.Later) > 0 || p.has(Killed, Restarted, Paused):
		return "crash"
	case len(p.Faults) > 0:
		return "faults"
	default:
		return "calm"
	}
}
