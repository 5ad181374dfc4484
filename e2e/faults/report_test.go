// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// writeReport puts the table into the section of test/RESULTS.md for etcd or for kine.
func writeReport(t *testing.T, path, store string, rows []row) {
	t.Helper()
	collector, err := exec.Command(harness.OtelcolPath(), "--version").Output()
	require.NoError(t, err)
	kubernetes, err := sharedCluster(t).Discovery().ServerVersion()
	require.NoError(t, err)
	harness.ReplaceSection(t, path, store, func(old string) string {
		return fmt.Sprintf("Last run on %s at commit %s, with Kubernetes %s and %s. Rows that this run left out are of\nan earlier run.\n\n%s\n",
			time.Now().UTC().Format(time.DateOnly), harness.Commit(t), kubernetes.GitVersion, strings.TrimSpace(string(collector)), tableOf(store, rows, old))
	})
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
