// SPDX-License-Identifier: Apache-2.0

// Package loop is the receiver's loop: deliver, then note progress. It takes a batch of changes,
// accounts for them in the ledger, resolves owners, converts, delivers until the pipelines have accepted
// it, counts it in the metric, and notes the progress.
//
// A session begins with the progress that was noted, and runs the streams and the loop. Without a leader
// elector it lasts as long as the process, with one for a term of leading. What a session knows ends
// with it.
package loop

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/details"
	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/filter"
	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/logrecord"
	"github.com/kubeevents/kubeeventsreceiver/internal/owners"
	"github.com/kubeevents/kubeeventsreceiver/internal/progress"
	"github.com/kubeevents/kubeeventsreceiver/internal/series"
)

// Settings last as long as the process. Callers must set all of them.
type Settings struct {
	// ClusterName is the name of the cluster for users; empty: it has none.
	ClusterName string
	// Streams are the namespaces that are watched; one empty name is the whole cluster.
	Streams []string
	// FromBeginning reports whether events that exist at the first start are new.
	FromBeginning bool
	// DedupInterval is the time for which a record holds back the next one of the same object,
	// reason and type. 0 turns this off.
	DedupInterval      time.Duration
	CollectionInterval time.Duration
	Series             series.Settings
	Retry              configretry.BackOffConfig

	Logger  *zap.Logger
	Version string           // of the Collector
	Logs    consumer.Logs    // nil: in no logs pipeline
	Metrics consumer.Metrics // nil: in no metrics pipeline

	Health    *health.Health
	Filter    filter.Filter
	Owners    *owners.Owners
	Details   *details.Details // nil: nothing is read
	Converter logrecord.Converter
	Client    rest.Interface // of the core group
	Watches   rest.Interface // for watches only

	Leadership *election.Leadership
	// Progress returns where a session notes what it has delivered.
	Progress func() progress.Progress
}

// Loop runs sessions, one after the other.
type Loop struct {
	Settings

	lastPoint atomic.Pointer[time.Time] // of the metric, in an earlier session; nil: there was none
}

// New returns a Loop that has not started.
func New(settings Settings) *Loop {
	return &Loop{Settings: settings}
}

// patience is the time that the last note and the last points may take.
const patience = 4 * time.Second

// Run runs a session in each term that this process leads, until stop ends. What was taken by then is
// still delivered, as long as drain allows. A standby watches nothing.
func (l *Loop) Run(stop, drain context.Context) {
	for stop.Err() == nil {
		elections := l.Leadership.Changed()
		if term, end, ok := l.Leadership.Begin(stop, drain); ok {
			if l.Leadership.IsElected() {
				l.Logger.Info("Started leading") // Users of several replicas find the leader by it.
			}
			l.runSession(term.Stop, term.Drain)
			if stop.Err() == nil {
				l.Health.Standby(append(health.Streams(l.Streams), progress.ConfigMapPart)...)
			}
			elections = l.awaitNext(term.Stop, elections)
			end() // It also ends term.Stop.
		}
		select {
		case <-elections:
		case <-stop.Done():
		}
	}
}

// awaitNext returns a channel that is closed when the next session may begin. A session that ends
// before its term has found that another process has noted progress as the leader. If this one was
// deposed, its elector knows by then, and a new session does not end the term of the other one.
func (l *Loop) awaitNext(term context.Context, elections <-chan struct{}) <-chan struct{} {
	if term.Err() != nil {
		return elections
	}
	next := make(chan struct{})
	time.AfterFunc(election.CertainAfter, func() { close(next) })
	return next
}
