// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package cgroup creates a cgroup below the root of every hierarchy, and removes it with everything
// below it. It works with cgroup v1, v2, and both at a time.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Create creates the cgroup in every hierarchy.
func Create(name string) error {
	roots, err := hierarchies()
	for _, root := range roots {
		err = errors.Join(err, os.Mkdir(filepath.Join(root, name), 0o700))
	}
	if err != nil {
		return fmt.Errorf("create the cgroup %s: %w", name, err)
	}
	return nil
}

// Remove removes the cgroup and everything below it from every hierarchy. Its processes must have
// ended.
func Remove(name string) error {
	roots, err := hierarchies()
	for _, root := range roots {
		err = errors.Join(err, removeAll(filepath.Join(root, name)))
	}
	if err != nil {
		return fmt.Errorf("remove the cgroup %s: %w", name, err)
	}
	return nil
}

// removeAll removes a directory of a hierarchy. Its files cannot be removed, and need not be.
func removeAll(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.IsDir() {
			err = errors.Join(err, removeAll(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(err, remove(dir))
}

// remove removes one directory. The kernel reports it as busy until it has forgotten the last
// process.
func remove(dir string) error {
	const attempts = 200
	for range attempts {
		err := os.Remove(dir)
		if !errors.Is(err, syscall.EBUSY) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return os.Remove(dir)
}

// hierarchies returns the roots of all hierarchies.
func hierarchies() ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	roots := rootsOf(string(mounts))
	if len(roots) == 0 {
		return nil, errors.New("no cgroup file system is mounted")
	}
	return roots, nil
}

// rootsOf returns where a list of mounts has the cgroup file systems. A line is: id, parent,
// device, root, mount point, options, optional fields, a dash, the type, and so on.
func rootsOf(mountinfo string) (roots []string) {
	for line := range strings.Lines(mountinfo) {
		mount, system, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(mount), strings.Fields(system)
		if len(fields) < 5 || len(kind) == 0 || kind[0] != "cgroup" && kind[0] != "cgroup2" {
			continue
		}
		if point := fields[4]; !slices.Contains(roots, point) {
			roots = append(roots, point)
		}
	}
	return roots
}
