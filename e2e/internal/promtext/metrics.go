// SPDX-License-Identifier: Apache-2.0

// Package promtext reads metrics in the Prometheus text format: those of Collectors and of the API
// server.
package promtext

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are the metrics of one page, by their names.
type Metrics map[string]*dto.MetricFamily

// Series is one time series with its value at the time of the request; 0 for a histogram.
type Series struct {
	Labels map[string]string
	Value  float64
}

// Parse reads a page.
func Parse(page []byte) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(page))
}

// Get requests a page and reads it.
func Get(ctx context.Context, url string) (Metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s returns %s", url, response.Status)
	}
	if err != nil {
		return nil, err
	}
	return Parse(page)
}

// Has reports whether there is a metric whose name begins with a prefix.
func (m Metrics) Has(prefix string) bool {
	for name := range m {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Series returns the time series of a metric that have these labels: name, value, name, value. The
// name of a counter may come without its suffix _total.
func (m Metrics) Series(metric string, labels ...string) (found []Series) {
	for _, name := range []string{metric, metric + "_total"} {
		for _, one := range m[name].GetMetric() {
			if s := seriesOf(one); s.has(labels) {
				found = append(found, s)
			}
		}
	}
	return found
}

// Sum returns the sum over the time series that Series returns; 0 if there are none.
func (m Metrics) Sum(metric string, labels ...string) (sum float64) {
	for _, s := range m.Series(metric, labels...) {
		sum += s.Value
	}
	return sum
}

func (s Series) has(labels []string) bool {
	for i := 0; i+1 < len(labels); i += 2 {
		if s.Labels[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}

func seriesOf(metric *dto.Metric) Series {
	s := Series{Labels: map[string]string{}}
	for _, label := range metric.GetLabel() {
		s.Labels[label.GetName()] = label.GetValue()
	}
	switch {
	case metric.Counter != nil:
		s.Value = metric.GetCounter().GetValue()
	case metric.Gauge != nil:
		s.Value = metric.GetGauge().GetValue()
	case metric.Untyped != nil:
		s.Value = metric.GetUntyped().GetValue()
	}
	return s
}
