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

	"github.com/kubeevents/kubeeventsreceiver/e2e/trial"
)

// promised is the page around the table.
//
//go:embed reliability.md.tmpl
var promised string

// writeReport puts the table into the page that the documentation shows.
func writeReport(t *testing.T, path string, rows []row) {
	t.Helper()
	var table strings.Builder
	table.WriteString("| Fault | Made | Delivered | Lost | Records repeated | Not recognisable | Metric | Remark |\n|---|--:|--:|--:|--:|--:|--:|---|\n")
	for _, r := range rows {
		if r.fault == "" {
			continue // The command line left it out.
		}
		metric := fmt.Sprint(r.metric)
		if r.ownSums {
			metric = "own sums"
		}
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %d | %d | %s | %s |\n",
			r.fault, r.made, r.delivered, r.lost, r.repeated, r.surplus, metric, r.remark)
	}
	collector, err := exec.Command(trial.OtelcolPath(), "--version").Output()
	require.NoError(t, err)
	page := strings.NewReplacer(
		"{{date}}", time.Now().UTC().Format(time.DateOnly),
		"{{kubernetes}}", version(sharedCluster(t).RESTConfig()),
		"{{collector}}", strings.TrimSpace(string(collector)),
		"{{table}}", strings.TrimSpace(table.String()),
	).Replace(promised)
	require.NoError(t, os.WriteFile(path, []byte(page), 0o600))
}
