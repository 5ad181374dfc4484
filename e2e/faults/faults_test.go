// SPDX-License-Identifier: Apache-2.0

// Package faults breaks what the receiver depends on, and the receiver itself, and counts. The
// built Collector runs as a process, against a real control plane, and delivers into a sink of the
// test; recorders write events through the API and know how many occurrences there were.
package faults

import (
	"os"
	"strings"
	"testing"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
)

// fault is one way to break things.
type fault struct {
	name  string
	quick bool // whether it is among those that run without FAULTS_REPORT
	run   func(*testing.T) row
}

// faults are those that run with etcd or kine, whichever program the directory of programs has.
var faults = map[string][]fault{controlplane.Etcd: withEtcd, controlplane.Kine: withKine}

var withEtcd = []fault{
	{"kill -9 twice under load", true, killed()},
	{"SIGTERM under load, and a new start", true, terminated},
	{"kill -9 twice under load, dedup_interval 2s", false, killed("receivers::kube_events::dedup_interval: 2s")},
	{"paused for 40 s (SIGSTOP)", false, paused},
	{"kill -9 during a delivery, etcd compacted after", false, killedInDelivery},
	{"API server killed and restarted", true, apiServerKilled},
	{"etcd killed with -9 and restarted", false, storeKilled},
	{"connection stalled", false, connectionStalled},
	{"etcd compacted while disconnected (410)", false, compactedWhileApart},
	{"TTL expires events between their repeats; cut, kill -9", false, expired},
	{"etcd restored from a backup while the receiver runs", false, etcdRestored},
	{"etcd restored from a backup while the receiver is down", false, etcdRestoredWhileDown},
	{"another cluster at the address while the receiver is down", false, clusterReplacedWhileDown},
	{"pipeline: 503 for a minute, then 400, then silence", false, pipelineFails},
	{"kill -9 and SIGTERM while the pipeline refuses", false, killedWhileRefused()},
	{"kill -9 and SIGTERM while the pipeline refuses, the exporter's queue in storage", false, killedWhileRefused(withQueue)},
	{"three exporters: one accepts, one answers 400, one 503 for 30 s", false, exportersDiffer},
	{"two replicas, leader killed with -9", false, leaderKilled},
	{"two replicas, leader stopped in an orderly way", false, leaderStopped},
	{"two replicas, both killed with -9, started again", false, bothKilled},
	{"two replicas, both killed with -9, etcd compacted, started again", false, bothKilledAndCompacted},
	{"two replicas, no permission for the ConfigMap, granted later", false, progressForbidden},
	{"two replicas, etcd restored from a backup, leader killed with -9 after", false, etcdRestoredUnderReplicas},
	{"two replicas, leader paused past its lease", false, leaderPaused},
	{"two replicas, leader cut off from the API", false, leaderPartitioned},
	{"disk full under file_storage, kill -9 after", false, diskFull},
	{"three API servers, one lags behind; each killed in turn", false, apiServersRestart},
	{"checkpoint damaged", false, checkpointDamaged},
	{"storage locked by another process at the start", false, storageLocked},
}

// withKine has the faults of what kine does differently: versions, compaction, expiry, and its file.
var withKine = []fault{
	{"kine killed with -9 and restarted", true, storeKilled},
	{"another process locks the SQLite database", false, databaseLocked},
	{"kine compacted while disconnected (410)", true, compactedWhileApart},
	{"TTL expires events between their repeats; cut, kill -9", false, expired},
	{"SQLite database restored from a copy while the receiver runs", true, etcdRestored},
	{"two replicas, leader killed with -9", true, leaderKilled},
	{"two replicas, both killed with -9, kine compacted, started again", false, bothKilledAndCompacted},
}

// TestFaults runs a few of the faults, and with FAULTS_REPORT all of them; then the table goes into
// the file that it names.
func TestFaults(t *testing.T) {
	report, store := os.Getenv("FAULTS_REPORT"), controlplane.StoreIn(controlplanetest.Binaries())
	rows := make([]row, len(faults[store]))
	t.Run("all", func(t *testing.T) {
		for i, f := range faults[store] {
			if report == "" && !f.quick {
				continue
			}
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				rows[i] = row{fault: f.name, remark: "**did not come to its end**"}
				rows[i] = f.run(t)
				rows[i].fault = f.name
				if t.Failed() {
					rows[i].remark = strings.TrimSpace("**not as promised** " + rows[i].remark)
				}
				t.Log(rows[i])
			})
		}
	})
	if report != "" {
		writeReport(t, report, store, rows)
	}
}
