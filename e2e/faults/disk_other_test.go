// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package faults

import "testing"

func smallDisk(t *testing.T) string {
	t.Helper()
	t.Skip("only Linux mounts a small disk")
	return ""
}
