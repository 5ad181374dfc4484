// SPDX-License-Identifier: Apache-2.0

package prometheusremotewrite

import (
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func TestEachTypeHasItsName(t *testing.T) {
	for want, set := range map[string]func(pmetric.Metric){
		"k8s_event_occurrences_total": func(m pmetric.Metric) { m.SetEmptySum().SetIsMonotonic(true) },
		"k8s_event_occurrences":       func(m pmetric.Metric) { m.SetEmptySum() },
	} {
		m := pmetric.NewMetric()
		m.SetName("k8s.event.occurrences")
		m.SetUnit("{occurrence}")
		set(m)
		namer := otlptranslator.MetricNamer{WithMetricSuffixes: true}
		name, err := namer.Build(TranslatorMetricFromOtelMetric(m))
		require.NoError(t, err)
		assert.Equal(t, want, name)
	}
}

func TestEachTypeHasItsEquivalent(t *testing.T) {
	for want, set := range map[otlptranslator.MetricType]func(pmetric.Metric){
		otlptranslator.MetricTypeUnknown:              func(pmetric.Metric) {},
		otlptranslator.MetricTypeGauge:                func(m pmetric.Metric) { m.SetEmptyGauge() },
		otlptranslator.MetricTypeNonMonotonicCounter:  func(m pmetric.Metric) { m.SetEmptySum() },
		otlptranslator.MetricTypeMonotonicCounter:     func(m pmetric.Metric) { m.SetEmptySum().SetIsMonotonic(true) },
		otlptranslator.MetricTypeSummary:              func(m pmetric.Metric) { m.SetEmptySummary() },
		otlptranslator.MetricTypeHistogram:            func(m pmetric.Metric) { m.SetEmptyHistogram() },
		otlptranslator.MetricTypeExponentialHistogram: func(m pmetric.Metric) { m.SetEmptyExponentialHistogram() },
	} {
		m := pmetric.NewMetric()
		set(m)
		assert.Equal(t, want, TranslatorMetricFromOtelMetric(m).Type)
	}
}
