// SPDX-License-Identifier: Apache-2.0

// Buildtimes prints where the processor time of builds goes: by module, and the packages that take
// most. It reads what `go build -debug-actiongraph` wrote.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// action is a step of a build. The times of one that is in the build cache are 0.
type action struct {
	Mode, Package   string
	CmdUser, CmdSys time.Duration
}

// cost is what packages took.
type cost struct {
	name     string
	packages int
	time     time.Duration
}

func run(graphs []string, to io.Writer) error {
	var actions []action
	for _, graph := range graphs {
		text, err := os.ReadFile(graph) //nolint:gosec // The caller names it.
		if err != nil {
			return err
		}
		var some []action
		if err := json.Unmarshal(text, &some); err != nil {
			return fmt.Errorf("%s: %w", graph, err)
		}
		actions = append(actions, some...)
	}
	write(to, "packages of module", costs(actions, moduleOf))
	write(to, "package", costs(actions, func(a action) string { return a.Package }))
	return nil
}

// costs returns what the actions took by their names, the most first.
func costs(actions []action, nameOf func(action) string) []cost {
	byName := map[string]*cost{}
	for _, a := range actions {
		if a.CmdUser+a.CmdSys == 0 {
			continue
		}
		name := nameOf(a)
		if a.Mode == "link" {
			name = "link " + a.Package
		}
		if byName[name] == nil {
			byName[name] = &cost{name: name}
		}
		byName[name].packages++
		byName[name].time += a.CmdUser + a.CmdSys
	}
	sorted := slices.Collect(maps.Values(byName))
	slices.SortFunc(sorted, func(a, b *cost) int { return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.name, b.name)) })
	var all []cost
	for _, c := range sorted {
		all = append(all, *c)
	}
	return all
}

// moduleOf returns the module of a package, as far as its path tells.
func moduleOf(a action) string {
	parts := strings.Split(a.Package, "/")
	length := 2
	switch host := parts[0]; {
	case !strings.Contains(host, "."):
		return "Go itself"
	case host == "github.com":
		length = 3
	}
	return strings.Join(parts[:min(length, len(parts))], "/")
}

// most is how many rows are printed.
const most = 30

func write(to io.Writer, title string, all []cost) {
	var sum cost
	for _, c := range all {
		sum.packages += c.packages
		sum.time += c.time
	}
	fmt.Fprintf(to, "\n%8s  %s\n", "seconds", title)
	for _, c := range append([]cost{{"all", sum.packages, sum.time}}, all[:min(most, len(all))]...) {
		fmt.Fprintf(to, "%8.1f  %s", c.time.Seconds(), c.name)
		if c.packages > 1 {
			fmt.Fprintf(to, " (%d)", c.packages)
		}
		fmt.Fprintln(to)
	}
}
