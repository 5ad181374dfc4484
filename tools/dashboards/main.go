// SPDX-License-Identifier: Apache-2.0

// This program writes the dashboards for Grafana into the chart, as JSON files for its import or
// provisioning. There are two variants of each: for users who have the events in Prometheus and
// Loki, and for users who have them only in Prometheus.
package main

//go:generate go run .

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// directory is where the chart has its dashboards.
var directory = filepath.Join("..", "..", "deploy", "chart", "dashboards")

// variant is a set of dashboards, in a folder of the chart's.
type variant struct {
	folder string
	loki   bool
}

var variants = []variant{{folder: ".", loki: true}, {folder: "without-loki", loki: false}}

// layouts are the dashboards of a variant, in the order in which they link to each other.
func layouts(v variant) []layout {
	return []layout{overview(v), workload(v), node(v), receiver(v)}
}

func main() {
	if err := generate(directory); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// generate writes all dashboards below a directory.
func generate(directory string) error {
	for _, v := range variants {
		folder := filepath.Join(directory, v.folder)
		if err := os.MkdirAll(folder, 0o750); err != nil {
			return err
		}
		for _, l := range layouts(v) {
			if err := write(filepath.Join(folder, l.name+".json"), l, v); err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
		}
	}
	return nil
}

func write(file string, l layout, v variant) error {
	made, err := l.build(v)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(annotated{requirements(v, made), made, annotations{l.annotations}}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // anyone may read it
}
