// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// container is a process as a container runtime makes it, of the kernel's own parts and without
// privileges.
type container struct {
	Root         string // a directory
	ReadOnlyRoot bool
	Mounts       []mount
	User         int
	Argv         []string
	Env          []string
}

// mount shows a directory at a path of the container.
type mount struct {
	Source, Path string
	ReadOnly     bool
}

// description is the variable that makes this program a container.
const description = "KUBE_EVENTS_TEST_CONTAINER"

func asContainer() bool { return os.Getenv(description) != "" }

// command runs this program again, in namespaces of its own in which it is the container's user,
// and may mount.
func (c container) command(t *testing.T) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := json.Marshal(c)
	require.NoError(t, err)
	command := exec.Command(self)
	command.Env = []string{description + "=" + string(text)}
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: c.User, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: c.User, HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
		Setpgid:     true,
		Pdeathsig:   syscall.SIGKILL,
	}
	return command
}

// needContainers skips a test where this user may not make namespaces.
func needContainers(t *testing.T) {
	t.Helper()
	empty := t.TempDir()
	output, err := container{Root: empty, User: 1000, Argv: []string{"/none"}}.command(t).CombinedOutput()
	if err == nil || !strings.Contains(string(output), "exec /none: no such file or directory") {
		t.Skipf("no permission to make a container: %v %s", err, output)
	}
}

// enterContainer makes this process the container's, and returns only if that fails.
func enterContainer() int {
	// What the kernel knows of a process's rights, it knows of each thread: the one that drops them
	// must be the one that runs the program.
	runtime.LockOSThread()
	var c container
	err := json.Unmarshal([]byte(os.Getenv(description)), &c)
	if err == nil {
		err = c.enter()
	}
	fmt.Fprintln(os.Stderr, "container:", err)
	return 125
}

func (c container) enter() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	if err := bind(c.Root, c.Root, 0); err != nil {
		return err
	}
	for _, m := range append(c.Mounts, mount{Source: "/proc", Path: "/proc"}) {
		if err := m.show(c.Root); err != nil {
			return err
		}
	}
	if c.ReadOnlyRoot {
		if err := makeReadOnly(c.Root); err != nil {
			return err
		}
	}
	if err := changeRoot(c.Root); err != nil {
		return err
	}
	if err := dropRights(); err != nil {
		return err
	}
	return fmt.Errorf("exec %s: %w", c.Argv[0], unix.Exec(c.Argv[0], c.Argv, c.Env))
}

func (m mount) show(root string) error {
	target := filepath.Join(root, m.Path)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := bind(m.Source, target, unix.MS_REC); err != nil {
		return err
	}
	if m.ReadOnly {
		return makeReadOnly(target)
	}
	return nil
}

func bind(source, target string, flags uintptr) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND|flags, ""); err != nil {
		return fmt.Errorf("show %s at %s: %w", source, target, err)
	}
	return nil
}

// makeReadOnly keeps the other flags of the file system, which this user may not take away.
func makeReadOnly(target string) error {
	var is unix.Statfs_t
	if err := unix.Statfs(target, &is); err != nil {
		return err
	}
	flags := uintptr(is.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME)
	if is.Flags&unix.ST_RELATIME != 0 {
		flags |= unix.MS_RELATIME
	}
	if err := unix.Mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|flags, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	return nil
}

func changeRoot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root to %s: %w", root, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	return unix.Chdir("/")
}

// dropRights leaves the program that is run next without capabilities, and without a way to gain
// any.
func dropRights() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}
