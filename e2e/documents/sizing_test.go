// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// estimates are the rows of SIZING.md: section of PERFORMANCE.md, row, number, unit.
var estimates = regexp.MustCompile(`(?m)^\| ([\w ]+): (.+?) \| ([\d.]+)(?: (\S+))? \| .*\|$`)

// TestSizingEstimatesNoLessThanWasMeasured: each row that the page names is one of
// PERFORMANCE.md, in the same unit, and what was measured last is not above what the page estimates
// with.
func TestSizingEstimatesNoLessThanWasMeasured(t *testing.T) {
	t.Parallel()
	_, text, found := strings.Cut(harness.Read(t, "test", "SIZING.md"), "\n## What was measured\n")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "\n## ")
	rows := estimates.FindAllStringSubmatch(text, -1)
	require.Len(t, rows, strings.Count(text, "\n|")-2, "every row but the table's head is understood")
	for _, row := range rows {
		measured, unit := measuredIn(t, row[1], row[2])
		assert.Equal(t, unit, row[4], row[0])
		assert.LessOrEqual(t, measured, number(t, row[3]), row[0])
	}
}

// measuredIn is the value of this receiver in a row of PERFORMANCE.md.
func measuredIn(t *testing.T, section, name string) (value float64, unit string) {
	t.Helper()
	_, text, found := strings.Cut(harness.Read(t, "test", "PERFORMANCE.md"), "\n## "+section)
	require.True(t, found, section)
	text, _, _ = strings.Cut(text, "\n## ")
	row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(name) + ` \| (.*?) \| ([\d.]+)[ |]`).FindStringSubmatch(text)
	require.NotNil(t, row, "%s: %s", section, name)
	return number(t, row[2]), row[1]
}

// TestSizingAddsUp: the memory that the page asks for is the sum of what it lists.
func TestSizingAddsUp(t *testing.T) {
	t.Parallel()
	_, text, found := strings.Cut(harness.Read(t, "test", "SIZING.md"), "\n| base ")
	require.True(t, found)
	text, sums, found := strings.Cut(text, "\n| sum ")
	require.True(t, found)
	expected := columns(t, sums)
	added := make([]float64, len(expected))
	for row := range strings.Lines("| base " + text) {
		for i, value := range columns(t, row) {
			added[i] += value
		}
	}
	assert.Equal(t, expected, added)
}

// columns are the numbers of a table's row.
func columns(t *testing.T, row string) (values []float64) {
	t.Helper()
	row, _, _ = strings.Cut(row, "\n")
	cells := strings.Split(strings.Trim(row, "| "), " | ")
	for _, cell := range cells[len(cells)-3:] {
		values = append(values, number(t, cell))
	}
	return values
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	require.NoError(t, err)
	return value
}
