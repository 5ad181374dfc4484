// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// Etcd and Kine are the programs that can keep the data of a cluster.
const (
	Etcd = "etcd"
	Kine = "kine"
)

// StoreIn returns the program of a directory that keeps the data of a cluster.
func StoreIn(directory string) string {
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(directory, name)) //nolint:gosec // the caller selects the directory
		return err == nil
	}
	if has(Kine) && !has(Etcd) {
		return Kine
	}
	return Etcd
}

// BackUp copies the data of etcd or kine into a directory that does not exist yet. It pauses the
// program during the copy, so the copy is what a crash at that moment would leave. Then the program
// continues.
func (cp *ControlPlane) BackUp(directory string) (err error) {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	pid := cp.others[0].PID() // it is started first
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, syscall.Kill(pid, syscall.SIGCONT)) }()
	return os.CopyFS(directory, os.DirFS(cp.storeData()))
}

// Restore replaces the data of etcd or kine by a backup while this program and the API servers are
// down, as an administrator does. It returns when the API servers are ready again, on the same ports
// and with the same credentials. An empty name means no data: then another cluster answers at the
// address.
func (cp *ControlPlane) Restore(ctx context.Context, directory string) error {
	for _, s := range cp.apiServers {
		if err := s.Kill(); err != nil {
			return err
		}
	}
	if err := cp.restartStore(func() error { return cp.replaceStore(directory) }); err != nil {
		return err
	}
	for _, s := range cp.apiServers {
		if err := s.Start(ctx); err != nil {
			return err
		}
	}
	return cp.waitForNamespace(ctx)
}

// KillStore ends etcd or kine as a crash does, and starts it again. The other programs continue.
func (cp *ControlPlane) KillStore() error {
	return cp.restartStore(func() error { return nil })
}

// restartStore kills the program that keeps the data, calls a function, and starts the program.
func (cp *ControlPlane) restartStore(meanwhile func() error) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if err := cp.others[0].Kill(); err != nil {
		return err
	}
	if err := meanwhile(); err != nil {
		return err
	}
	store, err := process.Start(process.Command{Path: cp.binary(cp.store), Args: cp.storeArgs(), Log: cp.layout.log(cp.store)})
	if err == nil {
		cp.others[0] = store
	}
	return err
}

func (cp *ControlPlane) replaceStore(directory string) error {
	if err := os.RemoveAll(cp.storeData()); err != nil || directory == "" {
		return errors.Join(err, cp.makeStoreData())
	}
	return os.CopyFS(cp.storeData(), os.DirFS(directory))
}

func (cp *ControlPlane) storeData() string { return cp.layout.path(cp.store) }

// makeStoreData creates the directory of the data, which kine does not create.
func (cp *ControlPlane) makeStoreData() error { return os.MkdirAll(cp.storeData(), 0o700) }
