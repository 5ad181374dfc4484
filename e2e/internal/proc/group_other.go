// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package proc

import "syscall"

// OwnGroup puts a program at the head of a process group of its own. Only Linux can tie its life to this process.
func OwnGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
