// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// versions are what a result depends on.
type versions struct {
	commit, collector, baseline, kubernetes string
}

// String names them, and the machine.
func (v versions) String() string {
	return fmt.Sprintf("Collector %s, k8s_events %s, Kubernetes %s, %d cores (%s).",
		v.collector, v.baseline, v.kubernetes, runtime.NumCPU(), cpuModel())
}

// commit returns the commit of the checkout, marked as dirty if other files than the page itself
// have changed since.
func commit(ctx context.Context) string {
	name := output(ctx, "git", "rev-parse", "--short=10", "HEAD")
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ":/", ":(top,exclude)test/PERFORMANCE.md").Output()
	if err != nil || len(changed) > 0 {
		name += dirty
	}
	return name
}

const dirty = "-dirty"

// versions are those of what this run measures.
func (b *benchmark) versions(ctx context.Context) versions {
	return versions{
		commit:     commit(ctx),
		collector:  moduleIn(b.ours.binary, "go.opentelemetry.io/collector/otelcol"),
		baseline:   moduleIn(b.theirs.binary, "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/k8seventsreceiver"),
		kubernetes: strings.TrimPrefix(output(ctx, filepath.Join(b.controlPlane, "kube-apiserver"), "--version"), "Kubernetes "),
	}
}

// moduleIn returns the version of a module in a Collector, which the Go linker wrote into it.
func moduleIn(binary, path string) string {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "unknown"
	}
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return "unknown"
}

// cpuModel returns the model of the first processor; the architecture if the kernel does not know
// the model.
func cpuModel() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if found := regexp.MustCompile(`(?m)^model name\s*: (.+)$`).FindSubmatch(info); err == nil && found != nil {
		return string(found[1])
	}
	return runtime.GOARCH
}

// output is what a program prints; "unknown" if it fails.
func output(ctx context.Context, program string, arguments ...string) string {
	printed, err := exec.CommandContext(ctx, program, arguments...).Output() //nolint:gosec // The path is the command line's.
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(printed))
}
