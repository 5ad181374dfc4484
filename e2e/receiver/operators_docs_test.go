// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

var write = flag.Bool("write", false, "write the table of docs/owners.md")

const begin, end = "<!-- operators: begin -->\n", "<!-- operators: end -->"

// TestTheTableOfOwnersIsCurrent compares docs/owners.md with testdata/operators.
func TestTheTableOfOwnersIsCurrent(t *testing.T) {
	page := harness.Read(t, "docs", "owners.md")
	before, rest, found := strings.Cut(page, begin)
	require.True(t, found, "docs/owners.md has no %s", begin)
	old, after, found := strings.Cut(rest, end)
	require.True(t, found, "docs/owners.md has no %s", end)
	current := ownersTable(t, readOperators(t))
	if *write {
		page = before + begin + current + end + after
		require.NoError(t, os.WriteFile(harness.InRepository("docs", "owners.md"), []byte(page), 0o600))
		return
	}
	assert.Equal(t, current, old, "to write it: go test ./receiver -args -write")
}

// row is a chain of kinds, and the workloads of an event about its first object.
type row struct {
	chain             string
	chart, everyRight outcome
}

// ownersTable has the chains whose workload depends on the permissions: with every permission, it is their
// end. Below, the other operators, whose workloads need no permission.
func ownersTable(t *testing.T, operators []*operator) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("| Operator | Owners |\n| --- | --- |\n")
	slices.SortFunc(operators, func(a, b *operator) int {
		return strings.Compare(strings.ToLower(a.Operator), strings.ToLower(b.Operator))
	})
	var same []string
	for _, o := range operators {
		title := o.Operator
		if o.Integration != "" {
			title += ": `" + o.Integration + "`"
		}
		var workloads []string
		for _, r := range o.rows(t) {
			if cell := r.chart.cell(); cell == r.everyRight.cell() {
				if cell != r.chart.kind {
					workloads = append(workloads, cell)
				}
				continue
			}
			fmt.Fprintf(&text, "| %s | %s |\n", title, r.cell(t))
			title = ""
		}
		if title == "" {
			continue
		}
		name := o.Operator
		if len(workloads) > 0 {
			name += " (" + strings.Join(workloads, ", ") + ")"
		}
		same = append(same, name)
	}
	text.WriteString("\nThe default permissions are enough for the workload of all other kinds of these operators, and of:\n" + strings.Join(same, ";\n") + ".\n")
	return text.String()
}

// rows returns a row for each chain of kinds. It leaves out a chain that is the end of a longer one
// with the same workloads.
func (o *operator) rows(t *testing.T) (rows []row) {
	t.Helper()
	for _, e := range slices.SortedStableFunc(slices.Values(o.Events), func(a, b operatorEvent) int {
		return len(o.path(t, b.About, b.EveryRight)) - len(o.path(t, a.About, a.EveryRight))
	}) {
		var kinds []string
		for _, object := range o.path(t, e.About, e.EveryRight) {
			k, _, _ := strings.Cut(object, " ")
			kinds = append(kinds, k)
		}
		r := row{strings.Join(kinds, " → "), e.Chart, e.EveryRight}
		if !slices.ContainsFunc(rows, func(longer row) bool {
			return strings.HasSuffix(" "+longer.chain, " "+r.chain) && longer.chart.kind == e.Chart.kind && longer.everyRight.kind == e.EveryRight.kind
		}) {
			rows = append(rows, r)
		}
	}
	return rows
}

// cell is the chain with the workload by default in bold, and what is particular about its end.
func (r row) cell(t *testing.T) string {
	t.Helper()
	kinds := strings.Split(r.chain, " → ")
	require.Equal(t, kinds[len(kinds)-1], r.everyRight.kind, r.chain)
	i := slices.Index(kinds, r.chart.kind)
	require.GreaterOrEqual(t, i, 0, r.chain)
	kinds[i] = "**" + kinds[i] + "**"
	return strings.Join(kinds, " → ") + strings.TrimPrefix(r.everyRight.cell(), r.everyRight.kind)
}

// cell is the kind of a record's workload, and what is particular about it. That the metric has the
// prefix of a generated name is a rule, which the page has above the table.
func (o outcome) cell() string {
	switch {
	case o.resolution == "ambiguous":
		return o.kind + " (`ambiguous`)"
	case o.metric == "":
		return o.kind + ", in the metric without a name"
	default:
		return o.kind
	}
}
