// SPDX-License-Identifier: Apache-2.0

// Package session has the receiver's loop, and what it works with. A session is the queue, the
// memory and the outbox: it takes a batch, accounts for it, resolves its owners, converts, saves
// and delivers it.
package session

import (
	"time"

	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/cluster"
	"github.com/kubeevents/kubeeventsreceiver/internal/filter"
	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/leadership"
	"github.com/kubeevents/kubeeventsreceiver/internal/logrecord"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/tally"
	"github.com/kubeevents/kubeeventsreceiver/internal/owners"
	"github.com/kubeevents/kubeeventsreceiver/internal/position"
)

// Config is the part of the receiver's configuration that sessions use.
type Config struct {
	// ClusterName is the name of the cluster for users; empty: it has none.
	ClusterName string
	// Streams are the namespaces that are watched; one empty name is the whole cluster.
	Streams []string
	// FromBeginning reports whether events that exist at the first start are new.
	FromBeginning bool
	// DedupInterval is how long a record holds back the next one of the same event; 0: it does not.
	DedupInterval      time.Duration
	CollectionInterval time.Duration
	// LookupTimeout is how long the first records wait for the UID of the cluster.
	LookupTimeout time.Duration
	Tally         tally.Config
	// StoredObjects is how many objects of chains a checkpoint has at most; 0: none.
	StoredObjects int
	// Identity has the settings that decide what a series of the metric is.
	Identity string
	Retry    configretry.BackOffConfig
}

// Settings are what lasts as long as the process. Callers must set all of them.
type Settings struct {
	Config

	Logger  *zap.Logger
	Version string           // of the Collector
	Logs    consumer.Logs    // nil: in no logs pipeline
	Metrics consumer.Metrics // nil: in no metrics pipeline

	Health    *health.Health
	Filter    filter.Filter
	Owners    *owners.Owners
	Converter logrecord.Converter

	Client  rest.Interface // of the core group
	Cluster *cluster.Identity
	Storage storage.Client // nil: nothing is saved

	Leadership *leadership.Leadership
	Positions  *position.Positions // nil: with storage, or without leader election
}

// Process runs sessions, one after the other.
type Process struct {
	Settings

	emitting chan struct{} // see metricsPipeline
	giveUp   chan struct{} // see delivery.Settings
}

// New returns a Process that has not started.
func New(settings Settings) *Process {
	return &Process{Settings: settings, emitting: make(chan struct{}, 1), giveUp: make(chan struct{})}
}
