// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/kubeevents/kubeeventsreceiver/distribution/incidentsconnector/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
	deliveries "github.com/kubeevents/kubeeventsreceiver/internal/delivery"
)

const (
	// emitEvery is the time between two points of a series.
	emitEvery = 30 * time.Second
	// maxSeries bounds the series of the gauge.
	maxSeries = 2000
)

// gaugeAttributes are those of the resource that points have, as those of the receiver's metric.
var gaugeAttributes = []string{
	"k8s.cluster.name", "k8s.cluster.uid", "k8s.namespace.name", "k8s.workload.kind", "k8s.workload.name", "tilt.manifest",
}

// series is what the points of a workload and a class have.
type series struct {
	attributes map[string]string
	open       map[string]bool // ids of the problems; none: it gets a 0, and goes
}

// gauge has the series of open problems. The zero value has none.
type gauge struct {
	all     map[string]*series
	emitted time.Time
	hasNews bool
	isFull  bool // it was, and the log has it
}

// note notes that a problem was opened, changed or ended. It reports whether there is no room for it for the first time.
func (g *gauge) note(p *problem.Problem, at *incident.At) (isFull bool) {
	g.hasNews = true
	for _, s := range g.all { // A change can give it another class.
		delete(s.open, p.ID)
	}
	if !p.Over.IsZero() {
		return false
	}
	attributes := attributesOf(p, at)
	key := keyOf(attributes)
	if g.all[key] == nil {
		if len(g.all) >= maxSeries {
			isFull, g.isFull = !g.isFull, true
			return isFull
		}
		if g.all == nil {
			g.all = map[string]*series{}
		}
		g.all[key] = &series{attributes: attributes, open: map[string]bool{}}
	}
	g.all[key].open[p.ID] = true
	return false
}

func attributesOf(p *problem.Problem, at *incident.At) map[string]string {
	attributes, resource := map[string]string{"k8s.problem.class": p.Class}, at.Resource(p.Key)
	for _, name := range gaugeAttributes {
		isOfOne := !strings.HasPrefix(name, "k8s.cluster.")
		if value := resource[name]; value != "" && (p.Workloads == 1 || !isOfOne) {
			attributes[name] = value
		}
	}
	return attributes
}

func keyOf(attributes map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		parts = append(parts, name, attributes[name])
	}
	return strings.Join(parts, "\x00")
}

// emit emits a point of each series, if it is time or something has changed. If the pipeline rejects them, the next
// ones have the values of then, and those of ended problems come again unless the error is permanent.
func (g *gauge) emit(ctx context.Context, now time.Time, to consumer.Metrics, version string) error {
	if len(g.all) == 0 || !g.hasNews && now.Sub(g.emitted) < emitEvery {
		return nil
	}
	g.emitted, g.hasNews = now, false
	err := to.ConsumeMetrics(ctx, g.points(now, version))
	if err == nil || deliveries.IsPermanent(err) {
		maps.DeleteFunc(g.all, func(_ string, s *series) bool { return len(s.open) == 0 })
	}
	return err
}

func (g *gauge) points(now time.Time, version string) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	sm := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(metadata.ScopeName)
	sm.Scope().SetVersion(version)
	m := sm.Metrics().AppendEmpty()
	m.SetName("k8s.problem.active")
	m.SetDescription("Whether a workload has a problem of a class.")
	m.SetUnit("{problem}")
	points := m.SetEmptyGauge().DataPoints()
	for _, key := range slices.Sorted(maps.Keys(g.all)) {
		s, p := g.all[key], points.AppendEmpty()
		for _, name := range slices.Sorted(maps.Keys(s.attributes)) {
			p.Attributes().PutStr(name, s.attributes[name])
		}
		p.SetTimestamp(pcommon.NewTimestampFromTime(now))
		p.SetIntValue(int64(min(1, len(s.open))))
	}
	return metrics
}
