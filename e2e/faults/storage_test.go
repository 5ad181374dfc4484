// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/load"
)

const (
	notSaved   = "Cannot write the checkpoint"
	savedAgain = "The checkpoint is written again"
)

// diskFull fills the disk under file_storage, makes room again, and then kills the Collector. While
// nothing can be written, events are delivered and counted.
func diskFull(t *testing.T) row {
	f := newFixture(t, sharedCluster(t))
	disk := smallDisk(t)
	c := f.watchedBy(t, f.cluster.Kubeconfig(), withStorage, onDisk(disk))
	f.begin(t, mostlyNew)
	f.delivers(t, 200)
	fill(t, disk)
	c.waitForLog(t, notSaved)
	f.delivers(t, 400)
	require.NoError(t, os.Remove(filepath.Join(disk, filler)))
	c.waitForLog(t, savedAgain)
	f.delivers(t, 100)
	c.kill()
	f.load.Grows(t, 50)
	c.start(t)
	f.delivers(t, 100)
	return f.conclude(t)
}

// mostlyNew makes most writes create a new event, so that the receiver has to remember more and
// more.
func mostlyNew(l *load.Load) { l.Fresh = 7 }

func onDisk(directory string) setting { return "extensions::file_storage::directory: " + directory }

const filler = "filler"

// fill leaves no byte free.
func fill(t *testing.T, disk string) {
	t.Helper()
	file, err := os.Create(filepath.Join(disk, filler))
	require.NoError(t, err)
	defer file.Close()
	for page := make([]byte, 512); err == nil; {
		_, err = file.Write(page)
	}
}

// checkpointDamaged writes garbage over a checkpoint while the Collector is down. The receiver sets
// the checkpoint aside, reports this, and makes a first start.
func checkpointDamaged(t *testing.T) row {
	f := newFixture(t, sharedCluster(t))
	f.memoryIsLost = true
	c := f.watchedBy(t, f.cluster.Kubeconfig(), withStorage, "receivers::kube_events::start_at: beginning")
	f.begin(t)
	f.delivers(t, 100)
	c.terminate(t)
	damage(t, c.directory)
	f.load.Grows(t, 50)
	c.start(t)
	c.waitForLog(t, `The checkpoint .* is set aside.*"set_aside"`)
	f.delivers(t, 100)
	c.kill()
	c.start(t)
	f.delivers(t, 100)
	f.remark = "reports this and makes a first start (here with start_at: beginning, so existing events are emitted again)"
	return f.conclude(t)
}

// storageLocked starts the Collector while another process uses the file of file_storage. The
// extension then cannot open it, and the Collector does not start.
func storageLocked(t *testing.T) row {
	f := newFixture(t, sharedCluster(t))
	c := f.watchedBy(t, f.cluster.Kubeconfig(), withStorage)
	f.begin(t)
	f.delivers(t, 50)
	c.kill()
	unlock := lock(t, c.directory)
	c.refusesToStart(t)
	c.waitForLog(t, `storage:? "file_storage".*timeout`)
	f.load.Grows(t, 50)
	unlock()
	c.start(t)
	f.delivers(t, 50)
	f.remark = "the Collector does not start, and names the storage; the next start continues"
	return f.conclude(t)
}

// lock takes the files of file_storage, as another Collector does.
func lock(t *testing.T, directory string) (unlock func()) {
	t.Helper()
	files, err := os.ReadDir(directory)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var opened []*os.File
	for _, f := range files {
		file, err := os.Open(filepath.Join(directory, f.Name()))
		require.NoError(t, err)
		require.NoError(t, syscall.Flock(int(file.Fd()), syscall.LOCK_EX))
		opened = append(opened, file)
	}
	return func() {
		for _, file := range opened {
			assert.NoError(t, file.Close())
		}
	}
}

// storedHead is the beginning of the head of a checkpoint, which names everything else.
var storedHead = regexp.MustCompile(`\{"format":\d+,"generation":`)

// damage garbles the head of the checkpoint, and leaves the extension's own structures whole.
func damage(t *testing.T, directory string) {
	t.Helper()
	files, err := os.ReadDir(directory)
	require.NoError(t, err)
	for _, f := range files {
		path := filepath.Join(directory, f.Name())
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		found := storedHead.FindAllIndex(content, -1)
		assert.NotEmpty(t, found, "what to damage")
		for _, at := range found {
			content[at[1]-1] ^= 0x01
		}
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
}
