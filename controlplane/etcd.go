// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/internal/process"
)

// BackUpEtcd copies etcd's data into a directory that does not exist yet. It pauses etcd during the
// copy, so the copy is what a crash at that moment would leave. Then etcd continues.
func (cp *ControlPlane) BackUpEtcd(directory string) (err error) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	pid := cp.others[0].PID() // etcd is started first
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, syscall.Kill(pid, syscall.SIGCONT)) }()
	return copyEtcd(directory, cp.etcdData())
}

// RestoreEtcd replaces etcd's data by a backup while etcd and the API server are down, as an
// administrator does. It returns when the API server is ready again, on the same port and with the
// same credentials. An empty name means no data: then another cluster answers at the address.
func (cp *ControlPlane) RestoreEtcd(ctx context.Context, directory string) error {
	if err := cp.KillAPIServer(); err != nil {
		return err
	}
	if err := cp.replaceEtcd(directory); err != nil {
		return err
	}
	if err := cp.StartAPIServer(ctx); err != nil {
		return err
	}
	return cp.waitForNamespace(ctx)
}

func (cp *ControlPlane) replaceEtcd(directory string) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if err := cp.others[0].Kill(); err != nil {
		return err
	}
	if err := os.RemoveAll(cp.etcdData()); err != nil {
		return err
	}
	if directory != "" {
		if err := copyEtcd(cp.etcdData(), directory); err != nil {
			return err
		}
	}
	etcd, err := process.Start(process.Command{Path: cp.binary("etcd"), Args: cp.etcdArgs(), Log: cp.layout.log("etcd")})
	if err == nil {
		cp.others[0] = etcd
	}
	return err
}

func (cp *ControlPlane) etcdData() string { return cp.layout.path("etcd") }

// copyEtcd copies etcd's files, but not those that etcd has only prepared.
func copyEtcd(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, 0o700)
		case strings.HasSuffix(name, ".tmp"):
			return nil
		}
		return copyFile(target, path)
	})
}

func copyFile(to, from string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	_, err = io.Copy(target, source)
	return err
}
