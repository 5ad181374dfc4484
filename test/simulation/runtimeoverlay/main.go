// SPDX-License-Identifier: Apache-2.0

// Command runtimeoverlay makes what `go test -overlay` needs to build the simulation with a Go
// runtime whose decisions are the same in each run: see patches.
//
//	go run ./test/simulation/runtimeoverlay DIRECTORY
//
// It writes DIRECTORY/overlay.json and changed copies of the toolchain's own files. It fails if
// they no longer have a text that it changes. The overlay is for GOROOT=DIRECTORY/goroot, a link to
// the toolchain: Go refuses to replace files in the module cache, where a toolchain may be.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: runtimeoverlay DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes the overlay to a directory.
func write(directory string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("cannot find the toolchain: %w", err)
	}
	if directory, err = filepath.Abs(directory); err != nil {
		return err
	}
	if err := os.MkdirAll(directory, 0o750); err != nil { //nolint:gosec // The caller names it.
		return err
	}
	link := filepath.Join(directory, "goroot")
	_ = os.Remove(link) //nolint:gosec // Of an earlier run.
	if err := os.Symlink(strings.TrimSpace(string(root)), link); err != nil {
		return err
	}
	replace := map[string]string{}
	for file, changes := range patches {
		original, changed := filepath.Join(link, "src", "runtime", file), filepath.Join(directory, file)
		if err := patch(original, changed, changes); err != nil {
			return err
		}
		replace[original] = changed
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, "overlay.json"), overlay, 0o600) //nolint:gosec // The caller names it.
}

// patch writes a changed copy of a file.
func patch(original, changed string, changes []change) error {
	content, err := os.ReadFile(original) //nolint:gosec // It is of the toolchain.
	if err != nil {
		return err
	}
	text := string(content)
	for _, c := range changes {
		if n := strings.Count(text, c.from); n != 1 {
			err = errors.Join(err, fmt.Errorf("%s has this text %d times instead of once; adapt patches.go "+
				"to this version of Go:\n%s", original, n, c.from))
		}
		text = strings.Replace(text, c.from, c.to, 1)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(changed, []byte(text), 0o600) //nolint:gosec // The caller names it.
}
