// SPDX-License-Identifier: Apache-2.0

// Package prometheusremotewrite has the one function of Prometheus that contrib's exporter prometheus
// calls. In the distribution, this module is in the place of github.com/prometheus/prometheus, whose
// package of this name imports the SDKs of three clouds.
package prometheusremotewrite

import (
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// TranslatorMetricFromOtelMetric returns what the name of the metric in Prometheus depends on.
func TranslatorMetricFromOtelMetric(metric pmetric.Metric) otlptranslator.Metric {
	return otlptranslator.Metric{Name: metric.Name(), Unit: metric.Unit(), Type: typeOf(metric)}
}

func typeOf(metric pmetric.Metric) otlptranslator.MetricType {
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		return otlptranslator.MetricTypeGauge
	case pmetric.MetricTypeSum:
		if metric.Sum().IsMonotonic() {
			return otlptranslator.MetricTypeMonotonicCounter
		}
		return otlptranslator.MetricTypeNonMonotonicCounter
	case pmetric.MetricTypeSummary:
		return otlptranslator.MetricTypeSummary
	case pmetric.MetricTypeHistogram:
		return otlptranslator.MetricTypeHistogram
	case pmetric.MetricTypeExponentialHistogram:
		return otlptranslator.MetricTypeExponentialHistogram
	}
	return otlptranslator.MetricTypeUnknown
}
