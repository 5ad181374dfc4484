// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package realnode

// missingRights returns what this process may not do.
func missingRights() []string { return []string{"Linux"} }
