// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// versions are what a result depends on.
type versions struct {
	Commit     string `json:"commit"`
	Ours       build  `json:"kube_events"`
	Theirs     build  `json:"k8s_events"`
	Kubernetes string `json:"kubernetes"`
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
}

// build is what a Collector is made of.
type build struct {
	Receiver  string `json:"receiver"`
	Collector string `json:"collector"`
	Go        string `json:"go"`
}

// commit returns the commit of the checkout, with dirtySuffix if other files than the page itself
// have changed since.
func commit(ctx context.Context) string {
	name := output(ctx, "git", "rev-parse", "--short=10", "HEAD")
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ":/", ":(top,exclude)test/PERFORMANCE.md", ":(top,exclude)test/performance-*").Output()
	if err != nil || len(changed) > 0 {
		name += dirtySuffix
	}
	return name
}

const dirtySuffix = "-dirty"

// versions are those of what this run measures.
func (b *benchmark) versions(ctx context.Context) versions {
	v := versions{
		Ours: buildOf(b.ours.binary, "kubeeventsreceiver"), Theirs: buildOf(b.theirs.binary, "k8seventsreceiver"),
		Kubernetes: strings.TrimPrefix(output(ctx, filepath.Join(b.controlPlane, "kube-apiserver"), "--version"), "Kubernetes "),
		CPU:        cpuModel(), Cores: runtime.NumCPU(),
	}
	// The receiver is built from this checkout and has its version only here.
	v.Commit = commit(ctx)
	v.Ours.Receiver = "at " + v.Commit
	return v
}

// buildOf reads what the Go linker wrote into a Collector.
func buildOf(binary, receiver string) build {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return build{Receiver: "unknown", Collector: "unknown", Go: "unknown"}
	}
	b := build{Go: info.GoVersion}
	for _, module := range info.Deps {
		switch {
		case module.Path == "go.opentelemetry.io/collector/otelcol":
			b.Collector = module.Version
		case strings.HasSuffix(module.Path, "/"+receiver):
			b.Receiver = module.Version
		}
	}
	return b
}

// output is what a program prints; "unknown" if it fails.
func output(ctx context.Context, program string, arguments ...string) string {
	printed, err := exec.CommandContext(ctx, program, arguments...).Output() //nolint:gosec // The path is the command line's.
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(printed))
}
