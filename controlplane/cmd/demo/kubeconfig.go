// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// findKubeconfig returns a list of kubeconfig files with ~ replaced by the home directory: not
// every shell does this in `make run KUBECONFIG=~/.kube/config`. As with kubectl, one existing file
// is enough.
func findKubeconfig(list string) (string, error) {
	files := filepath.SplitList(list)
	found := false
	for i, file := range files {
		if below, ok := strings.CutPrefix(file, "~/"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", err
			}
			files[i] = filepath.Join(home, below)
		}
		if _, err := os.Stat(files[i]); !errors.Is(err, fs.ErrNotExist) {
			found = true
		}
	}
	expanded := strings.Join(files, string(filepath.ListSeparator))
	if !found {
		return "", fmt.Errorf("KUBECONFIG=%s names no existing file: set it to a kubeconfig file, or run the demo without it: make run KUBECONFIG= (or env -u KUBECONFIG make run)", expanded)
	}
	return expanded, nil
}
