// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "runtime"

// cpuModel returns the architecture: only Linux has /proc/cpuinfo.
func cpuModel() string { return runtime.GOARCH }
