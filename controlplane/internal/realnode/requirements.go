// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// SearchPath is where the node finds the programs of the machine.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// PluginDir is where Debian installs network plugins.
const PluginDir = "/usr/lib/cni"

// requirement is a program of the machine and the Debian package that has it.
type requirement struct{ program, debianPackage string }

var requirements = []requirement{
	{"runc", "runc"},
	{"nft", "nftables"},
	{"ip", "iproute2"},
	{"mount", "mount"},
	{PluginDir + "/ptp", "containernetworking-plugins"},
	{PluginDir + "/host-local", "containernetworking-plugins"},
	{PluginDir + "/portmap", "containernetworking-plugins"},
	{PluginDir + "/loopback", "containernetworking-plugins"},
}

// Missing returns what a real node needs and this machine does not have.
func Missing() []string {
	missing := missingRights()
	for _, r := range requirements {
		if !isInstalled(r.program, SearchPath) {
			missing = append(missing, fmt.Sprintf("%s (Debian: apt-get install %s)", r.program, r.debianPackage))
		}
	}
	return missing
}

// isInstalled reports whether a program exists, in one of the directories of searchPath if its name
// has no directory.
func isInstalled(program, searchPath string) bool {
	candidates := []string{program}
	if !strings.Contains(program, "/") {
		candidates = nil
		for _, dir := range filepath.SplitList(searchPath) {
			candidates = append(candidates, filepath.Join(dir, program))
		}
	}
	for _, path := range candidates {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}
