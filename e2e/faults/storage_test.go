// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	notSaved   = "Cannot save checkpoints"
	savedAgain = "Checkpoints are saved again"
)

// diskFull fills the disk under file_storage, makes room again, and then kills the Collector.
func diskFull(t *testing.T) row {
	s := newScene(t, sharedCluster(t))
	disk := smallDisk(t)
	c := s.watchedBy(t, s.cluster.Kubeconfig(), withStorage, onDisk(disk))
	s.begin(t, allNew)
	s.delivers(t, 200)
	fill(t, disk)
	c.says(t, notSaved)
	s.delivers(t, 200)
	require.NoError(t, os.Remove(filepath.Join(disk, filler)))
	c.says(t, savedAgain)
	s.delivers(t, 100)
	c.kill()
	s.load.grows(t, 50)
	c.start(t)
	s.delivers(t, 100)
	return s.conclude(t)
}

// startedOnFullDisk kills the Collector while the disk is full, and starts it before there is room again.
func startedOnFullDisk(t *testing.T) row {
	s := newScene(t, sharedCluster(t))
	s.metricFalls = true
	s.remark = "while nothing can be saved, the metric reports unsaved sums; after the crash it continues from the saved, lower ones"
	disk := smallDisk(t)
	c := s.watchedBy(t, s.cluster.Kubeconfig(), withStorage, onDisk(disk))
	s.begin(t, allNew)
	s.delivers(t, 200)
	fill(t, disk)
	c.says(t, notSaved)
	s.delivers(t, 100)
	c.kill()
	c.start(t)
	s.delivers(t, 100)
	require.NoError(t, os.Remove(filepath.Join(disk, filler)))
	s.delivers(t, 200)
	return s.conclude(t)
}

// allNew lets each write be a new event, so that more and more has to be remembered.
func allNew(l *load) { l.keep = 1_000_000 }

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

// checkpointDamaged writes garbage over a checkpoint while the Collector is down. Nothing can be remembered then, so the
// receiver goes on as at a first start, and says so.
func checkpointDamaged(t *testing.T) row {
	s := newScene(t, sharedCluster(t))
	s.memoryIsLost = true
	c := s.watchedBy(t, s.cluster.Kubeconfig(), withStorage, "receivers::kube_events::start_at: beginning")
	s.begin(t)
	s.delivers(t, 100)
	c.terminate(t)
	damage(t, c.directory)
	s.load.grows(t, 50)
	c.start(t)
	c.says(t, "The checkpoint in the storage cannot be used")
	s.delivers(t, 100)
	s.remark = "reports this and continues as at a first start (here with start_at: beginning, so existing events are emitted again)"
	return s.conclude(t)
}

// damage garbles what the receiver stored, and leaves the extension's own structures whole.
func damage(t *testing.T, directory string) {
	t.Helper()
	files, err := os.ReadDir(directory)
	require.NoError(t, err)
	for _, f := range files {
		path := filepath.Join(directory, f.Name())
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Contains(t, string(content), `"streams"`, "what to damage")
		require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(content, []byte(`"streams"`), []byte(`"garbage"`)), 0o600))
	}
}
