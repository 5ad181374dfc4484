// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// pipelineFails answers with retryable errors for a minute; then with permanent ones; then not at
// all; then it accepts everything and does not answer.
func pipelineFails(t *testing.T) row {
	f := newFixture(t, sharedCluster(t))
	f.watchedBy(t, f.cluster.Kubeconfig(), withStorage)
	f.begin(t)
	f.delivers(t, 50)
	for _, trouble := range []struct {
		answer answer
		lasts  time.Duration
	}{{rejectRetryable, 60 * time.Second}, {rejectPermanently, 3 * time.Second}, {withoutAnswer, 15 * time.Second}, {acceptWithoutAnswer, 10 * time.Second}} {
		f.sink.answers(trouble.answer)
		time.Sleep(trouble.lasts)
		f.sink.answers(accept)
		f.delivers(t, 50)
	}
	r := f.conclude(t)
	r.remark = "rejected occurrences are not in the logs, but in the metric"
	return r
}

// exportersDiffer has three exporters behind one receiver, without queues: one accepts everything,
// one refuses permanently, and one refuses for half a minute with a retryable error.
func exportersDiffer(t *testing.T) row {
	f := newFixture(t, sharedCluster(t))
	final, later := newSink(t), newSink(t)
	exporter := func(name string, to *sink) setting {
		return fmt.Sprintf("exporters::otlp_http/%s: {endpoint: %q, headers: {%s: %[1]s}, compression: none, timeout: 3s, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}",
			name, to.url, replicaHeader)
	}
	const all = "[otlp_http/final, otlp_http, otlp_http/later]"
	f.watchedBy(t, f.cluster.Kubeconfig(), withStorage, exporter("final", final), exporter("later", later),
		"service::pipelines::logs::exporters: "+all, "service::pipelines::metrics::exporters: "+all)
	f.begin(t)
	f.delivers(t, 50)
	final.answers(rejectPermanently)
	f.delivers(t, 50)
	later.answers(rejectRetryable)
	time.Sleep(30 * time.Second)
	later.answers(accept)
	f.delivers(t, 50)
	final.answers(accept)
	f.delivers(t, 50)
	r := f.conclude(t)
	r.remark = "the row is that of the first; the second misses what it rejected and nothing else, the third misses nothing"

	judged := func(s *sink) row {
		return judge(f.truth(), recordsIn(f.namespace, s.allRecords()), pointsIn(f.namespace, s.allPoints()))
	}
	second, third := judged(final), judged(later)
	t.Log("the second:", second)
	t.Log("the third:", third)
	assert.Positive(t, second.Rejected)
	for _, r := range []row{second, third} {
		assert.Zero(t, r.Lost, "lost occurrences")
		assert.Zero(t, r.Surplus, "occurrences that come twice without the same log.record.uid")
		assert.Equal(t, r.Made, r.metric, "the metric's total")
	}
	assert.Zero(t, third.Rejected)
	return r
}

// killedWhileRefused kills the Collector while the pipeline refuses what it took from the API
// server.
func killedWhileRefused(t *testing.T) row {
	f := newFixture(t, sharedCluster(t))
	c := f.watchedBy(t, f.cluster.Kubeconfig(), withStorage)
	f.begin(t)
	f.delivers(t, 50)
	f.sink.answers(rejectRetryable)
	f.load.Grows(t, 200)
	c.kill()
	f.load.Grows(t, 50)
	c.start(t)
	c.isReady(t)
	f.load.Grows(t, 50)
	c.terminate(t)
	f.load.Grows(t, 50)
	c.start(t)
	f.sink.answers(accept)
	f.delivers(t, 50)
	f.remark = "kill -9, then SIGTERM, while it answers 503"
	return f.conclude(t)
}
