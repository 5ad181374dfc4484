// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// perReceiver is the legend of a receiver.
const perReceiver = "{{instance}} {{receiver}}"

// own is the prefix of the receiver's own metrics; see documentation.md.
const own = "otelcol_kube_events_"

// The label cluster is that of the scrape: the chart's PodMonitor sets it, if the cluster has a name.
const (
	ofScraped   = `cluster=~"$cluster"`
	ofInstance  = `instance=~"$instance"`
	ofComponent = `receiver=~"$receiver"`
)

// suffixes of the names that Prometheus gives to metrics that are pushed with OTLP. Other gauges have none.
var suffixes = map[string]string{"checkpoint_age": "_seconds", "leading": "_ratio", "series": "", "series_limit": "", "owner_cache_size": "", "waiting": ""}

// allOwn returns a selector of a metric of the receiver, scraped or pushed.
func allOwn(metric string, matchers ...string) string {
	suffix, isGauge := suffixes[metric]
	if !isGauge {
		suffix = "_total"
	}
	name := own + metric
	if base, isHistogram := strings.CutSuffix(name, "_bucket"); isHistogram {
		name, suffix = base+"(_seconds)?_bucket", ""
	}
	if suffix != "" {
		name += "(" + suffix + ")?"
	}
	return "{" + join(append([]string{`__name__=~"` + name + `"`}, matchers...)...) + "}"
}

// ownSeries returns the same for what the user chose.
func ownSeries(metric string, matchers ...string) string {
	return allOwn(metric, append([]string{ofScraped, ofInstance, ofComponent}, matchers...)...)
}

// receiver returns the dashboard for people who run the Collector. It has no logs of events, so it is
// the same in all variants.
func receiver(v variant) layout {
	d := newDashboard(v, receiverUID, "Kubernetes events: receiver", "The receiver's own metrics, which the Collector serves on port 8888.", "now-1h").
		WithVariable(choices("cluster", "Cluster", "The label cluster of the scrape. The chart's PodMonitor sets it to the name of the cluster.", "cluster", allOwn("received"))).
		WithVariable(choices("instance", "Collector", "", "instance", allOwn("received", ofScraped))).
		WithVariable(choices("receiver", "Receiver", "The component, such as kube_events/prod.", "receiver", allOwn("received", ofScraped, ofInstance)))
	return layout{name: "receiver", builder: d, sections: []section{
		{lines: []line{{4, receiverNumbers()}}},
		{title: "Delivery", lines: delivery()},
		{title: "Owners", lines: ownerLookups()},
		{title: "Storage, leader election and the metric", lines: memory()},
	}}
}

func receiverNumbers() []cell {
	absent := thresholds("red", limit{1, "green"})
	dropped := thresholds("green", limit{1, "red"})
	return []cell{
		{3, number("Collectors", "Collectors that Prometheus scrapes.", units.Short, "count("+ownSeries("leading")+") or vector(0)", absent)},
		{3, number("Leaders", "Collectors that emit. With leader election, this is one for each cluster.", units.Short,
			"sum("+ownSeries("leading")+") or vector(0)", absent)},
		{3, number("Latency, p99", "For 99 % of the events in the time range, this time or less from their arrival until the pipeline accepted them.", units.Seconds,
			quantileDuring("0.99", "latency"), thresholds("green", limit{5, warningColor}, limit{60, "red"})).NoValue("–")},
		{3, number("Waiting", "Event states that were read from the API server and not yet processed.", units.Short,
			"sum("+ownSeries("waiting")+")", thresholds("green", limit{1000, warningColor}))},
		{3, number("Dropped", "Log records in the time range that are not delivered.", units.Short,
			"round(sum(increase("+ownSeries("dropped")+"[$__range])) or vector(0))", dropped)},
		{3, number("Without a workload", "The part of the log records in the time range that have no workload, because their owners are not known.", units.PercentUnit,
			"(sum(increase("+ownSeries("owner_resolutions", `resolution!~"complete|ambiguous|forbidden"`)+"[$__range])) or vector(0))"+
				" / (sum(increase("+ownSeries("owner_resolutions")+"[$__range])) > 0)", thresholds("green", limit{0.05, warningColor})).NoValue("–")},
		{3, number("Series in use", "The part of series.max that the metric uses. Beyond the limit, one series has the rest.", units.PercentUnit,
			"max("+ownSeries("series")+" / "+ownSeries("series_limit")+")", thresholds("green", limit{0.8, warningColor}, limit{1, "red"}))},
		{3, number("Checkpoint age", "Age of the oldest checkpoint that is not up to date; 0 if all are.", units.Seconds,
			"max("+ownSeries("checkpoint_age")+")", thresholds("green", limit{60, warningColor}, limit{600, "red"}))},
	}
}

func delivery() []line {
	return []line{
		{8, []cell{
			{8, lines("Received", "Event states that the receiver read from the API server, and those of them that the filters exclude.", units.EventsPerSecond,
				target{rate("received", ""), "received"}, target{rate("filtered", ""), "filtered"})},
			{8, colored(lines("Delivered", "Log records. Refused: the pipeline rejected the records with a retryable error, and the receiver retries. Dropped records are not delivered.", units.RecordsPerSecond,
				target{rate("accepted", ""), "accepted"}, target{rate("refused", ""), "refused"}, target{rate("dropped", ""), "dropped"}),
				paint{"accepted", "green"}, paint{"refused", warningColor}, paint{"dropped", "red"})},
			{8, lines("Waiting", "Event states that were read from the API server and not yet processed.", units.Short, target{gauge("waiting"), perReceiver})},
		}},
		{8, []cell{
			{8, lines("Latency", "Time from an event's arrival at the receiver until the pipeline accepted it.", units.Seconds,
				target{quantile("0.5", "latency"), "p50"}, target{quantile("0.99", "latency"), "p99"})},
			{8, lines("Batch waits", "How long batches of events wait, by cause. An event waits for its own batch and for the one before.", units.Seconds,
				target{quantile("0.5", "batch_wait", "cause"), "p50, {{cause}}"}, target{quantile("0.99", "batch_wait", "cause"), "p99, {{cause}}"})},
			{8, lines("Watch restarts", "`ended` is normal: the API server ends each watch after some time.", units.Short,
				target{increase("cause", "watch_restarts"), "{{cause}}"})},
		}},
	}
}

func ownerLookups() []line {
	return []line{
		{8, []cell{
			{8, lines("Owner chains", "Log records by k8s.owner.resolution. `complete` and `forbidden` are normal, all others are explained in docs/owners.md.", units.RecordsPerSecond,
				target{rate("owner_resolutions", "resolution"), "{{resolution}}"})},
			{8, lines("Owner lookups", "Requests to the API server, by result.", units.RequestsPerSecond, target{rate("owner_lookups", "result"), "{{result}}"})},
			{8, lines("Lookup duration", "Without the wait for the client-side limit.", units.Seconds,
				target{quantile("0.5", "owner_lookup_duration"), "p50"}, target{quantile("0.99", "owner_lookup_duration"), "p99"})},
		}},
		{8, []cell{
			{8, lines("Forbidden lookups", "Requests for owners that failed because a permission is missing. An object that may not be read is the workload.", units.RequestsPerSecond,
				target{rate("owner_lookups_forbidden", "verb, resource"), "{{verb}} {{resource}}"})},
			{8, lines("Owner cache hits", "Objects of chains that were in the cache.", units.OpsPerSecond, target{rate("owner_cache_hits", ""), "hits"})},
			{8, lines("Owner cache size", "Objects in the cache.", units.Short, target{gauge("owner_cache_size"), perReceiver})},
		}},
	}
}

func memory() []line {
	return []line{{8, []cell{
		{8, lines("Checkpoint", "Age of the last checkpoint in the storage; 0 while it is up to date.", units.Seconds, target{gauge("checkpoint_age"), perReceiver})},
		{8, lines("Checkpoint failures", "Checkpoints that could not be saved.", units.Short, target{increase("instance, receiver", "checkpoint_failures"), perReceiver})},
		{8, lines("Leading", "1 while this Collector emits. With leader election, one of them does.", units.Short, target{gauge("leading"), perReceiver})},
	}}, {8, []cell{
		{12, lines("Series", "Series of the metric, and series.max. Beyond it, one series has the rest.", units.Short,
			target{gauge("series"), perReceiver}, target{gauge("series_limit"), "limit, " + perReceiver})},
		{12, lines("Series overflow", "Observations that were counted in the overflow series.", units.Short, target{increase("instance, receiver", "series_overflow"), perReceiver})},
	}}}
}

// rate returns a query of the rate per second, by a label if there is one.
func rate(metric, label string) string {
	return "sum by (" + label + ") (rate(" + ownSeries(metric) + "[$__rate_interval]))"
}

func increase(label, metric string) string {
	return "sum by (" + label + ") (increase(" + ownSeries(metric) + "[$__rate_interval]))"
}

func gauge(metric string) string { return "max by (instance, receiver) (" + ownSeries(metric) + ")" }

// quantile returns a query of a quantile of a histogram over time, by labels if there are any.
func quantile(q, histogram string, labels ...string) string {
	by := strings.Join(append([]string{"le"}, labels...), ", ")
	return "histogram_quantile(" + q + ", sum by (" + by + ") (rate(" + ownSeries(histogram+"_bucket") + "[$__rate_interval])))"
}

// quantileDuring returns a query of a quantile in the time range, without a result if nothing was
// measured.
func quantileDuring(q, histogram string) string {
	return "histogram_quantile(" + q + ", sum by (le) (rate(" + ownSeries(histogram+"_bucket") + "[$__range]))) >= 0"
}
