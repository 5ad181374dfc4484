// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// own is what the receiver's own metrics begin with; see documentation.md.
const own = "otelcol_kube_events_"

// receiver is the dashboard for those who run the Collector.
func receiver() *dashboard.DashboardBuilder {
	return newDashboard("kube-events-receiver", "The receiver's health",
		"The receiver's own metrics, which the Collector shows at port 8888.", metricsSource).
		WithVariable(choices("instance", "Collector", own+"received", "instance")).
		WithPanel(lines("Received", "Event states that the receiver read from the API server, and those of them that the filters exclude.", "eps", third,
			target{rate("received", ""), "received"}, target{rate("filtered", ""), "filtered"})).
		WithPanel(lines("Delivered", "Log records. The receiver retries what a pipeline refuses (a retryable error). Dropped records are not delivered.", "eps", third,
			target{rate("accepted", ""), "accepted"}, target{rate("refused", ""), "refused"}, target{rate("dropped", ""), "dropped"})).
		WithPanel(lines("Waiting", "Event states that were taken from the API server and not yet delivered.", "short", third,
			target{gauge("waiting"), "{{instance}}"})).
		WithPanel(lines("Latency", "From an event's arrival at the receiver until the pipeline took it.", "s", third,
			target{quantile("0.5", "latency"), "half"}, target{quantile("0.99", "latency"), "99 of 100"})).
		WithPanel(lines("Watch restarts", "`ended` is ordinary: the API server ends each watch after a while.", "short", third,
			target{`sum by (cause) (increase(` + own + `watch_restarts` + ofInstance + `[$__rate_interval]))`, "{{cause}}"})).
		WithPanel(lines("Checkpoint", "Age of the last checkpoint in the storage, 0 while it holds everything.", "s", third,
			target{gauge("checkpoint_age"), "{{instance}}"})).
		WithPanel(lines("Checkpoint failures", "Checkpoints that the storage did not take.", "short", third,
			target{`sum by (instance) (increase(` + own + `checkpoint_failures` + ofInstance + `[$__rate_interval]))`, "{{instance}}"})).
		WithPanel(lines("Owner lookups", "Requests to the API server, by result.", "reqps", third,
			target{rate("owner_lookups", "result"), "{{result}}"})).
		WithPanel(lines("Lookup duration", "Waiting for the client-side limit included.", "s", third,
			target{quantile("0.5", "owner_lookup_duration"), "half"}, target{quantile("0.99", "owner_lookup_duration"), "99 of 100"})).
		WithPanel(lines("Owner chains", "Log records by how far their owner chain is known. If there is one line without a name: docs/queries.md says how to scrape.", "eps", third,
			target{rate("owner_resolutions", "resolution"), "{{resolution}}"})).
		WithPanel(lines("Owner cache hits", "Objects of chains that were known without a request.", "ops", third,
			target{rate("owner_cache_hits", ""), "hits"})).
		WithPanel(lines("Owner cache size", "Objects that are remembered.", "short", third,
			target{gauge("owner_cache_size"), "{{instance}}"}))
}

const ofInstance = `{instance=~"$instance"}`

// rate is how often something happens a second, by a label if there is one.
func rate(metric, label string) string {
	return `sum by (` + label + `) (rate(` + own + metric + ofInstance + `[$__rate_interval]))`
}

func gauge(metric string) string {
	return `max by (instance) (` + own + metric + ofInstance + `)`
}

func quantile(q, histogram string) string {
	return `histogram_quantile(` + q + `, sum by (le) (rate(` + own + histogram + `_bucket` + ofInstance + `[$__rate_interval])))`
}
