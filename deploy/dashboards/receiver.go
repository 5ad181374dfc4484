// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// own is the prefix of the receiver's own metrics; see documentation.md.
const own = "otelcol_kube_events_"

// receiver returns the dashboard for people who run the Collector.
func receiver() *dashboard.DashboardBuilder {
	return newDashboard("kube-events-receiver", "The receiver's health",
		"The receiver's own metrics, which the Collector shows at port 8888.", metricsSource).
		WithVariable(choices("instance", "Collector", own+"received", "instance")).
		WithPanel(lines("Received", "Event states that the receiver read from the API server, and those of them that the filters exclude.", "eps", third,
			target{rate("received", ""), "received"}, target{rate("filtered", ""), "filtered"})).
		WithPanel(lines("Delivered", "Log records. Refused: the pipeline rejected the records with a retryable error, and the receiver retries. Dropped records are not delivered.", "eps", third,
			target{rate("accepted", ""), "accepted"}, target{rate("refused", ""), "refused"}, target{rate("dropped", ""), "dropped"})).
		WithPanel(lines("Waiting", "Event states that were read from the API server and not yet processed.", "short", third,
			target{gauge("waiting"), "{{instance}}"})).
		WithPanel(lines("Latency", "Time from an event's arrival at the receiver until the pipeline accepted it.", "s", third,
			target{quantile("0.5", "latency"), "half"}, target{quantile("0.99", "latency"), "99 of 100"})).
		WithPanel(lines("Batch waits", "How long batches of events wait, by cause. An event waits for its own batch and for the one before.", "s", 2*third,
			target{quantile("0.5", "batch_wait", "cause"), "half, {{cause}}"}, target{quantile("0.99", "batch_wait", "cause"), "99 of 100, {{cause}}"})).
		WithPanel(lines("Watch restarts", "`ended` is normal: the API server ends each watch after some time.", "short", third,
			target{`sum by (cause) (increase(` + own + `watch_restarts` + ofInstance + `[$__rate_interval]))`, "{{cause}}"})).
		WithPanel(lines("Checkpoint", "Age of the last checkpoint in the storage; 0 while it is up to date.", "s", third,
			target{gauge("checkpoint_age"), "{{instance}}"})).
		WithPanel(lines("Checkpoint failures", "Checkpoints that could not be saved.", "short", third,
			target{`sum by (instance) (increase(` + own + `checkpoint_failures` + ofInstance + `[$__rate_interval]))`, "{{instance}}"})).
		WithPanel(lines("Owner lookups", "Requests to the API server, by result.", "reqps", third,
			target{rate("owner_lookups", "result"), "{{result}}"})).
		WithPanel(lines("Forbidden lookups", "Requests for owners that failed because a permission is missing.", "reqps", third,
			target{rate("owner_lookups_forbidden", "verb, resource"), "{{verb}} {{resource}}"})).
		WithPanel(lines("Lookup duration", "Without the wait for the client-side limit.", "s", third,
			target{quantile("0.5", "owner_lookup_duration"), "half"}, target{quantile("0.99", "owner_lookup_duration"), "99 of 100"})).
		WithPanel(lines("Owner chains", "Log records by k8s.owner.resolution. If there is one line without a name, see docs/queries.md for the scrape configuration.", "eps", third,
			target{rate("owner_resolutions", "resolution"), "{{resolution}}"})).
		WithPanel(lines("Owner cache hits", "Objects of chains that were in the cache.", "ops", third,
			target{rate("owner_cache_hits", ""), "hits"})).
		WithPanel(lines("Owner cache size", "Objects in the cache.", "short", third,
			target{gauge("owner_cache_size"), "{{instance}}"})).
		WithPanel(lines("Series", "Series of the metric, and metrics.max_series. Beyond it, one series has the rest.", "short", third,
			target{gauge("series"), "{{instance}}"}, target{gauge("series_limit"), "limit, {{instance}}"})).
		WithPanel(lines("Series overflow", "Observations that were counted in the overflow series.", "short", third,
			target{`sum by (instance) (increase(` + own + `series_overflow` + ofInstance + `[$__rate_interval]))`, "{{instance}}"})).
		WithPanel(lines("Leading", "1 while this Collector emits. With leader election, one of them does.", "short", third,
			target{gauge("leading"), "{{instance}}"}))
}

const ofInstance = `{instance=~"$instance"}`

// rate returns a query of the rate per second, by a label if there is one.
func rate(metric, label string) string {
	return `sum by (` + label + `) (rate(` + own + metric + ofInstance + `[$__rate_interval]))`
}

func gauge(metric string) string {
	return `max by (instance) (` + own + metric + ofInstance + `)`
}

// quantile returns a query of a quantile of a histogram, by labels if there are any.
func quantile(q, histogram string, labels ...string) string {
	by := strings.Join(append([]string{"le"}, labels...), ", ")
	return `histogram_quantile(` + q + `, sum by (` + by + `) (rate(` + own + histogram + `_bucket` + ofInstance + `[$__rate_interval])))`
}
