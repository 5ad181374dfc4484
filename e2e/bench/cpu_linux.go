// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"runtime"

	"github.com/prometheus/procfs"
)

// cpuModel returns the model of the first processor; the architecture if the kernel does not know
// the model.
func cpuModel() string {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return runtime.GOARCH
	}
	processors, err := fs.CPUInfo()
	if err != nil || len(processors) == 0 {
		return runtime.GOARCH
	}
	return cmp.Or(processors[0].ModelName, runtime.GOARCH)
}
