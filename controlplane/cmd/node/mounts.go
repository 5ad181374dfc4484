// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/internal/realnode"
)

// Where the node finds its directory and its programs.
const (
	nodeDir     = realnode.Dir
	binariesDir = "/run/bin"
)

// private are directories in which the node's programs, its plugins and pods write files at fixed
// paths: /var/log/containers, /run/netns, /opt/containerd and so on. The node gets new, empty ones,
// which end with it.
var private = []string{"/opt", "/run", "/tmp", "/var"}

// isolateFiles changes what the node sees of the machine's files. It needs a mount namespace of its
// own.
func isolateFiles(dir, binaries string) error {
	// Without this, mounts appear outside, too.
	if err := mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := replaceDirectories(dir, binaries); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := errors.Join(fixKernelSettings(), disableDNS()); err != nil {
		return err
	}
	// A volume's mount propagates to its container only between shared mounts.
	return mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, "")
}

// replaceDirectories mounts the private directories, and shows the node's directory and programs
// there. These may be in a directory that is replaced, so it opens them before.
func replaceDirectories(dir, binaries string) error {
	shown := map[string]*os.File{}
	for path, source := range map[string]string{nodeDir: dir, binariesDir: binaries} {
		file, err := os.Open(source)
		if err != nil {
			return err
		}
		defer file.Close()
		shown[path] = file
	}
	for _, path := range private {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := mount("tmpfs", path, "tmpfs", 0, "mode=1777"); err != nil {
			return err
		}
	}
	for path, file := range shown {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
		if err := bind("/proc/self/fd/"+strconv.Itoa(int(file.Fd())), path); err != nil {
			return err
		}
	}
	return errors.Join(os.Symlink("/run", "/var/run"), os.Mkdir("/var/log", 0o700))
}

// kernelSettings are the settings that a kubelet makes for the whole machine, and their values.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// fixKernelSettings shows files instead of the kernel's settings. So kubelet finds them as it wants
// them, and changes nothing on the machine.
func fixKernelSettings() error {
	dir := filepath.Join(nodeDir, "settings")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for setting, value := range kernelSettings {
		file := filepath.Join(dir, strings.ReplaceAll(setting, "/", "."))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			return err
		}
		if err := bind(file, "/proc/sys/"+setting); err != nil {
			return err
		}
	}
	return nil
}

// disableDNS shows an empty list of DNS servers. So the names of registries cannot be resolved, and
// a pull fails immediately, not after a timeout.
func disableDNS() error {
	const servers = "/etc/resolv.conf"
	empty := filepath.Join(nodeDir, "resolv.conf")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		return err
	}
	if _, err := os.Stat(servers); errors.Is(err, os.ErrNotExist) {
		return nil // a link to a private directory
	}
	return bind(empty, servers)
}

func bind(source, target string) error { return mount(source, target, "", syscall.MS_BIND, "") }

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := syscall.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}
