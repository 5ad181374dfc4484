// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// traces are what a node has while it runs, and what must be gone afterwards.
type traces struct {
	Supervisor int
	First      string // id of the first process in the node's namespaces
	Cgroup     string
	Dir        string

	namespace string // the PID namespace
}

func tracesOf(c *cluster) (found traces, err error) {
	found.Supervisor, found.Cgroup, found.Dir = c.node.Leftovers()
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", found.Supervisor))
	for _, file := range children {
		ids, errRead := os.ReadFile(file)
		err = errors.Join(err, errRead)
		found.First += strings.TrimSpace(string(ids))
	}
	return found, err
}

// namespaceOf returns the unique name of a process's PID namespace.
func namespaceOf(pid string) (string, error) {
	return os.Readlink(filepath.Join("/proc", pid, "ns", "pid"))
}

// exist checks that the traces can be found, so that a check of their absence means something.
func (tr *traces) exist(t *testing.T) {
	t.Helper()
	var err error
	tr.namespace, err = namespaceOf(tr.First)
	require.NoError(t, err)
	own, err := namespaceOf("self")
	require.NoError(t, err)
	require.NotEqual(t, own, tr.namespace, "the node has its own namespaces")
	// While the namespace is open, the kernel gives no other one its name.
	kept, err := os.Open(filepath.Join("/proc", tr.First, "ns", "pid"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = kept.Close() })

	assert.NotEmpty(t, tr.processes())
	assert.NotEmpty(t, tr.cgroups(t))
	assert.NotEmpty(t, tr.files(t))
}

// areGone checks that nothing is left.
func (tr *traces) areGone(t *testing.T) {
	t.Helper()
	assert.True(t, ended(tr.Supervisor), "the supervisor")
	assert.Empty(t, tr.processes(), "processes")
	assert.Empty(t, tr.cgroups(t), "cgroups")
	assert.Empty(t, tr.files(t), "files")
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	assert.NotContains(t, string(mounts), tr.Dir, "mounts")
}

// processes returns the processes in the node's namespace. Those of pods are in other namespaces.
// They are in the node's cgroup, which cannot be removed before they end.
func (tr *traces) processes() (found []string) {
	directories, _ := filepath.Glob("/proc/[0-9]*")
	for _, directory := range directories {
		if namespace, err := namespaceOf(filepath.Base(directory)); err == nil && namespace == tr.namespace {
			name, _ := os.ReadFile(filepath.Join(directory, "comm"))
			found = append(found, strings.TrimSpace(string(name)))
		}
	}
	return found
}

func (tr *traces) cgroups(t *testing.T) (found []string) {
	t.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		matches, err := filepath.Glob(pattern + tr.Cgroup)
		require.NoError(t, err)
		found = append(found, matches...)
	}
	return found
}

// files returns the files of the node that are not logs.
func (tr *traces) files(t *testing.T) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(tr.Dir)
	require.NoError(t, err)
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".log" {
			found = append(found, entry.Name())
		}
	}
	return found
}

// ended reports whether a process is gone, or is a zombie that its new parent has not yet reaped.
func ended(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// machine describes what a node could change on the machine.
func machine(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, command := range []string{"ip -oneline link", "ip route", "nft --stateless list ruleset"} {
		output, err := exec.Command("/bin/sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; "+command).CombinedOutput()
		require.NoError(t, err, "%s: %s", command, output)
		state[command] = string(output)
	}
	settings := []string{"net/ipv4/ip_forward", "vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys"}
	for _, setting := range settings {
		value, err := os.ReadFile("/proc/sys/" + setting)
		require.NoError(t, err)
		state[setting] = string(value)
	}
	for _, directory := range []string{
		"/etc/cni", "/etc/containerd", "/etc/nri", "/opt/cni", "/opt/containerd", "/opt/nri", "/run/containerd", "/run/netns", "/run/nri",
		"/usr/libexec/kubernetes", "/var/lib/cni", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/containers", "/var/log/pods",
	} {
		files, err := filepath.Glob(directory + "/*")
		require.NoError(t, err)
		_, err = os.Stat(directory)
		state[directory] = fmt.Sprint(err == nil, files)
	}
	return state
}
