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

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// promised is the page around the table.
//
//go:embed results.md.tmpl
var promised string

// writeReport puts the table into test/RESULTS.md: that with etcd into the
// whole page, another one into its part of the page.
func writeReport(t *testing.T, path, store string, rows []row) {
	t.Helper()
	if store != controlplane.Etcd {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		begin, end := "<!-- "+store+": begin -->", "<!-- "+store+": end -->"
		before, rest, _ := strings.Cut(string(page), begin)
		old, after, found := strings.Cut(rest, end)
		require.True(t, found, "%s has no part for %s", path, store)
		require.NoError(t, os.WriteFile(path, []byte(before+begin+"\n"+tableOf(store, rows, old)+"\n"+end+after), 0o600))
		return
	}
	collector, err := exec.Command(harness.OtelcolPath(), "--version").Output()
	require.NoError(t, err)
	kubernetes, err := sharedCluster(t).Discovery().ServerVersion()
	require.NoError(t, err)
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	old, _, _ := strings.Cut(string(written), "<!-- "+controlplane.Kine+": begin -->")
	page := strings.NewReplacer(
		"{{date}}", time.Now().UTC().Format(time.DateOnly),
		"{{commit}}", harness.Commit(t),
		"{{kubernetes}}", kubernetes.GitVersion,
		"{{collector}}", strings.TrimSpace(string(collector)),
		"{{table}}", tableOf(store, rows, old),
		"{{kine}}", sectionOf(t, path, "kine"),
		"{{cluster}}", sectionOf(t, path, "cluster"),
		"{{soak}}", sectionOf(t, path, "soak"),
	).Replace(promised)
	require.NoError(t, os.WriteFile(path, []byte(page), 0o600))
}

// tableOf has the rows that were run. What the command line left out keeps its row in the old page.
func tableOf(store string, rows []row, old string) string {
	var table strings.Builder
	table.WriteString("| Fault | Occurred | Delivered | Not delivered | of these rejected | of these unexplained | Records repeated | Not recognisable | Metric | Remark |\n" +
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n")
	for i, r := range rows {
		if r.fault == "" {
			if _, rest, found := strings.Cut(old, "\n| "+faults[store][i].name+" |"); found {
				line, _, _ := strings.Cut(rest, "\n")
				table.WriteString("| " + faults[store][i].name + " |" + line + "\n")
			}
			continue
		}
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %d | %d | %d | %d | %d | %s |\n",
			r.fault, r.Made, r.Delivered, r.Rejected+r.Lost, r.Rejected, r.Lost, r.Repeated, r.Surplus, r.metric, r.remark)
	}
	return strings.TrimSpace(table.String())
}

// sectionOf is a part of the page that the tests in e2e/node write.
func sectionOf(t *testing.T, path, name string) string {
	t.Helper()
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "<!-- "+name+": begin -->")
	section, _, _ := strings.Cut(rest, "<!-- "+name+": end -->")
	return strings.TrimSpace(section)
}
