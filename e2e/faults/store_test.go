// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
)

// storeKilled kills etcd or kine while events are written.
func storeKilled(t *testing.T) row {
	f := newFixture(t, ownCluster(t, controlplane.Options{}))
	f.watchedBy(t, f.cluster.Kubeconfig(), withStorage)
	f.begin(t)
	for range 3 {
		f.delivers(t, 50)
		require.NoError(t, f.cluster.KillStore())
		f.load.Grows(t, 50)
	}
	f.delivers(t, 50)
	return f.conclude(t)
}

// databaseLocked is a process that writes to kine's database for so long that the API server gives
// up waiting.
func databaseLocked(t *testing.T) row {
	directory := t.TempDir()
	f := newFixture(t, ownCluster(t, controlplane.Options{DataDir: directory}))
	f.watchedBy(t, f.cluster.Kubeconfig(), withStorage)
	f.begin(t)
	for range 2 {
		f.delivers(t, 50)
		unlock := lockForWriting(t, filepath.Join(directory, controlplane.Kine, "state.db"))
		time.Sleep(10 * time.Second)
		unlock()
		f.load.Grows(t, 50)
	}
	f.delivers(t, 50)
	f.remark = "twice for 10 s"
	return f.conclude(t)
}

// lockForWriting takes the lock of those who write to an SQLite database in WAL mode: byte 120 of
// the file of its shared memory.
func lockForWriting(t *testing.T, database string) (unlock func()) {
	t.Helper()
	memory, err := os.OpenFile(database+"-shm", os.O_RDWR, 0)
	require.NoError(t, err)
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: 120, Len: 1}
	require.NoError(t, syscall.FcntlFlock(memory.Fd(), syscall.F_SETLKW, &lock))
	return func() { require.NoError(t, memory.Close()) }
}
