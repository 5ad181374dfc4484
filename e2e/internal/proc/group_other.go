// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package proc

import "syscall"

// ownGroup makes a program the leader of a process group of its own. Only Linux can end the program
// together with this process.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
