// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeevents "github.com/kubeevents/kubeeventsreceiver"
)

// TestCollectorsConsumeContract is the Collector's own test of what a receiver owes to its pipelines.
// It does not suit the metric: it has one point for each event, and no cumulative sums.
func TestCollectorsConsumeContract(t *testing.T) {
	t.Parallel()
	ns := kube.newNamespace(t)
	factory, g := kubeevents.NewFactory(), &generator{t: t, ns: ns}
	identifying := receiver.NewFactory(factory.Type(), factory.CreateDefaultConfig, receiver.WithLogs(
		func(ctx context.Context, settings receiver.Settings, config component.Config, next consumer.Logs) (receiver.Logs, error) {
			return factory.CreateLogs(ctx, settings, config, identifyingLogs{next, g})
		}, component.StabilityLevelAlpha))
	receivertest.CheckConsumeContract(receivertest.CheckConsumeContractParams{
		T: t, Factory: identifying, Signal: pipeline.SignalLogs,
		Config:        kube.parse(t, in(ns), "retry_on_failure: {initial_interval: 5ms, max_interval: 50ms}"),
		Generator:     g,
		GenerateCount: generated,
	})
}

// generated is how many events each scenario has.
const generated = 100

// generator makes events whose reasons are the ids that the test looks for.
type generator struct {
	t  *testing.T
	ns string

	made, settled atomic.Int64 // events, and records that the test has accepted or that it wants to be dropped
}

var _ receivertest.Generator = (*generator)(nil)

func (g *generator) Start() {}

// Stop clears the namespace, so that the next receiver finds nothing of the last one's.
func (g *generator) Stop() {
	assert.NoError(g.t, kube.CoreV1().Events(g.ns).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}))
}

func (g *generator) Generate() []receivertest.UniqueIDAttrVal {
	id := unique("id")
	kube.makeEvent(g.t, g.ns, eventOf(id, "pod"))
	if made := g.made.Add(1); made%generated == 0 {
		// After the last one, the Collector's test waits for no more than 5 s.
		eventually(g.t, func() bool { return g.settled.Load() >= made }, "%d records", made)
	}
	return []receivertest.UniqueIDAttrVal{receivertest.UniqueIDAttrVal(id)}
}

// identifyingLogs gives records the id under the name that the test looks for.
type identifyingLogs struct {
	next consumer.Logs
	g    *generator
}

func (identifyingLogs) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

func (l identifyingLogs) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	records := recordsOf(logs)
	for _, r := range records {
		r.Log.Attributes().PutStr(receivertest.UniqueIDAttrName, r.text("k8s.event.reason"))
	}
	err := l.next.ConsumeLogs(ctx, logs)
	if err == nil || consumererror.IsPermanent(err) {
		l.g.settled.Add(int64(len(records)))
	}
	return err
}
