// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/receiver"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/cluster"
	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/filter"
	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/logrecord"
	"github.com/kubeevents/kubeeventsreceiver/internal/memory/tally"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/owners"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// eventsReceiver watches events and emits them as logs and as a metric. One serves both pipelines of
// a configuration. It has what lasts as long as the process; a session has the rest.
type eventsReceiver struct {
	config   *Config
	settings receiver.Settings
	logs     consumer.Logs    // nil: in no logs pipeline
	metrics  consumer.Metrics // nil: in no metrics pipeline

	life   lifecycle
	health *health.Health

	filter    filter.Filter
	extractor *extract.Extractor
	converter logrecord.Converter

	client   rest.Interface
	bursts   *kubeclient.Bursts
	cluster  *cluster.Identity
	resolver *resolver.Resolver // nil: owners are not looked up
	owners   *owners.Owners
	storage  storage.Client // nil: nothing is saved

	leadership    *election.Leadership
	electorConfig election.ElectorConfig
	lease         *election.Lease     // nil: it is not known which lease the leader is elected by
	positions     *election.Positions // nil: with storage, or without leader election
}

// resolve adds to each observation who owns its involved object.
func (r *eventsReceiver) resolve(ctx context.Context, observations []observation.Observation) {
	r.owners.Resolve(ctx, observations)
	r.health.Resolved(observations)
}

// emitMetrics emits the sums to the metrics pipeline. Rejected points are not emitted again: the next
// ones carry their values.
func (s *session) emitMetrics(ctx context.Context) {
	now, sums := time.Now(), s.memory.Tally
	sums.Expire(now)
	metrics := sums.Metrics(tally.Scope{Name: metadata.ScopeName, Version: s.settings.BuildInfo.Version}, *s.clusterUID.Load(), now)
	points := metrics.DataPointCount()
	if points == 0 {
		return
	}
	ctx = s.health.Operations.StartMetricsOp(ctx)
	err := s.metrics.ConsumeMetrics(ctx, metrics)
	if err == nil {
		sums.Emitted()
	}
	s.health.Operations.EndMetricsOp(ctx, metadata.Type.String(), points, err)
}
