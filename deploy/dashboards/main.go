// SPDX-License-Identifier: Apache-2.0

// This program writes the dashboards for Grafana into the chart, as JSON files for its import or
// provisioning.
package main

//go:generate go run .

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// directory is where the chart has its dashboards.
var directory = filepath.Join("..", "chart", "dashboards")

func main() {
	for file, builder := range map[string]*dashboard.DashboardBuilder{
		"workload.json": workload(),
		"receiver.json": receiver(),
	} {
		if err := write(file, builder); err != nil {
			fmt.Fprintln(os.Stderr, file+":", err)
			os.Exit(1)
		}
	}
}

func write(file string, builder *dashboard.DashboardBuilder) error {
	made, err := builder.Build()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, file), append(text, '\n'), 0o644) //nolint:gosec // anyone may read it
}
