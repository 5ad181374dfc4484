// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// TestIncreaseSeesTheFirstOccurrence: increase() of a reason that occurred once is 1, if the
// Collector pushes, if Prometheus scrapes it more often than the receiver collects, and, with the
// feature that docs/queries.md names, if Prometheus scrapes it less often.
func TestIncreaseSeesTheFirstOccurrence(t *testing.T) {
	t.Parallel()
	rarely := startRareScrapes(t)
	for name, server := range map[string]*prometheus{"pushed": all.pushed, "scraped": all.scraped, "scraped rarely": rarely} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// On a busy machine, no scrape may come between the collections of the 0 and of the 1.
			metric, newest := server.occursOnce(t)
			for try := 0; name == "scraped" && try < 20 && !server.has0(t, metric, newest); try++ {
				metric, newest = server.occursOnce(t)
			}
			increase, err := instant(server.url+"/api/v1/query", "increase("+metric+"[10m])", newest)
			require.NoError(t, err)
			require.Len(t, increase, 1)
			assert.Equal(t, "1", increase[0].Value[1])
		})
	}
}

var onceReasons atomic.Int64

// occursOnce writes an event with a reason of its own, and waits until Prometheus has the metric of it.
func (p *prometheus) occursOnce(t *testing.T) (metric string, newest time.Time) {
	t.Helper()
	reason := fmt.Sprint("OccurredOnce", onceReasons.Add(1))
	report(t, corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node-0"}, "Warning", reason, "once")
	metric = fmt.Sprintf("k8s_event_occurrences_total{k8s_event_reason=%q}", reason)
	eventually(t, func() (err error) {
		newest, err = p.newestSample(metric, "1")
		return err
	})
	return metric, newest
}

// has0 reports whether a metric has a sample with its first value.
func (p *prometheus) has0(t *testing.T, metric string, at time.Time) bool {
	t.Helper()
	found, err := instant(p.url+"/api/v1/query", "min_over_time("+metric+"[10m]) == 0", at)
	require.NoError(t, err)
	return len(found) > 0
}

// startRareScrapes starts a Prometheus that scrapes the metric less often than the receiver
// collects, and waits for its first scrape.
func startRareScrapes(t *testing.T) *prometheus {
	t.Helper()
	config := fmt.Sprintf("scrape_configs: [{job_name: rarely, scrape_interval: 10s, static_configs: [{targets: [%q]}]}]\n", all.metrics)
	p := newPrometheus(t, t.TempDir(), config, "--enable-feature=created-timestamp-zero-ingestion")
	eventually(t, func() error {
		_, err := p.newestSample("k8s_event_occurrences_total", "1")
		return err
	})
	return p
}

// newestSample is the time of the newest sample of a metric that has a value. It returns an error if
// there is none.
func (p *prometheus) newestSample(metric, value string) (newest time.Time, err error) {
	found, err := p.series(fmt.Sprintf("max(timestamp(%s) and %s == %s)", metric, metric, value))
	if err != nil {
		return newest, err
	}
	if len(found) == 0 {
		return newest, fmt.Errorf("no sample of %s is %s", metric, value)
	}
	seconds, err := strconv.ParseFloat(fmt.Sprint(found[0].Value[1]), 64)
	return time.UnixMilli(int64(math.Round(seconds * 1000))), err
}
