// SPDX-License-Identifier: Apache-2.0

package faults

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// promised is the page around the table.
//
//go:embed reliability.md.tmpl
var promised string

// writeReport puts the table into the page that the documentation shows.
func writeReport(t *testing.T, path string, rows []row) {
	t.Helper()
	var table strings.Builder
	table.WriteString("| Fault | Occurred | Delivered | Not delivered | of these rejected | of these unexplained | Records repeated | of these altered | Not recognisable | Metric | Remark |\n" +
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n")
	for _, r := range rows {
		if r.fault == "" {
			continue // The command line left it out.
		}
		metric := fmt.Sprint(r.metric)
		if r.ownSums {
			metric = "own sums"
		}
		altered := "–"
		if r.saves {
			altered = fmt.Sprint(r.Altered)
		}
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %d | %d | %d | %s | %d | %s | %s |\n",
			r.fault, r.Made, r.Delivered, r.Rejected+r.Lost, r.Rejected, r.Lost, r.Repeated, altered, r.Surplus, metric, r.remark)
	}
	collector, err := exec.Command(harness.OtelcolPath(), "--version").Output()
	require.NoError(t, err)
	page := strings.NewReplacer(
		"{{date}}", time.Now().UTC().Format(time.DateOnly),
		"{{kubernetes}}", version(sharedCluster(t).RESTConfig()),
		"{{collector}}", strings.TrimSpace(string(collector)),
		"{{table}}", strings.TrimSpace(table.String()),
		"{{mutants}}", sectionOf(t, path, "mutants"),
		"{{cluster}}", sectionOf(t, path, "cluster"),
		"{{soak}}", sectionOf(t, path, "soak"),
	).Replace(promised)
	require.NoError(t, os.WriteFile(path, []byte(page), 0o600))
}

// sectionOf is a part of the page that something else writes: make mutants, and the tests in
// e2e/cluster.
func sectionOf(t *testing.T, path, name string) string {
	t.Helper()
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "<!-- "+name+": begin -->")
	section, _, _ := strings.Cut(rest, "<!-- "+name+": end -->")
	return strings.TrimSpace(section)
}
