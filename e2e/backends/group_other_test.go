// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package backends

import "syscall"

// tied would tie a program's life to this process, which only Linux can.
func tied() *syscall.SysProcAttr { return nil }
