// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// pipelineFails answers with errors that are worth another try, for long; then with final ones; then not at all; then it
// takes everything and says nothing.
func pipelineFails(t *testing.T) row {
	s := newScene(t, sharedCluster(t))
	s.watchedBy(t, s.cluster.Kubeconfig(), withStorage)
	s.begin(t)
	s.delivers(t, 50)
	for _, trouble := range []struct {
		answer answer
		lasts  time.Duration
	}{{refuseForNow, 60 * time.Second}, {refuseForGood, 3 * time.Second}, {sayNothing, 15 * time.Second}, {takeSayNothing, 10 * time.Second}} {
		s.sink.answers(trouble.answer)
		time.Sleep(trouble.lasts)
		s.sink.answers(takeIt)
		s.delivers(t, 50)
	}
	r := s.conclude(t)
	r.remark = "rejected occurrences are not in the logs, but in the metric"
	return r
}

// exportersDiffer has three exporters behind one receiver, without queues: one accepts everything, one refuses permanently,
// and one refuses for half a minute with an error that is worth another try.
func exportersDiffer(t *testing.T) row {
	s := newScene(t, sharedCluster(t))
	final, later := newSink(t), newSink(t)
	exporter := func(name string, to *sink) setting {
		return fmt.Sprintf("exporters::otlp_http/%s: {endpoint: %q, headers: {%s: %[1]s}, compression: none, timeout: 3s, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}",
			name, to.url, replicaHeader)
	}
	const all = "[otlp_http/final, otlp_http, otlp_http/later]"
	s.watchedBy(t, s.cluster.Kubeconfig(), withStorage, exporter("final", final), exporter("later", later),
		"service::pipelines::logs::exporters: "+all, "service::pipelines::metrics::exporters: "+all)
	s.begin(t)
	s.delivers(t, 50)
	final.answers(refuseForGood)
	s.delivers(t, 50)
	later.answers(refuseForNow)
	time.Sleep(30 * time.Second)
	later.answers(takeIt)
	s.delivers(t, 50)
	final.answers(takeIt)
	s.delivers(t, 50)
	r := s.conclude(t)
	r.remark = "the row is that of the first; the second misses what it rejected and nothing else, the third misses nothing"

	judged := func(of *sink) row {
		return judge(s.truth(), recordsIn(s.namespace, of.took()), pointsIn(s.namespace, of.metered()))
	}
	second, third := judged(final), judged(later)
	t.Log("the second:", second)
	t.Log("the third:", third)
	assert.Positive(t, second.refused)
	for _, r := range []row{second, third} {
		assert.Zero(t, r.lost, "lost occurrences")
		assert.Zero(t, r.surplus, "occurrences that come twice without the same log.record.uid")
		assert.Zero(t, r.altered, "repeated records that are not the same as the first")
		assert.Equal(t, r.made, r.metric, "the metric's total")
	}
	assert.Zero(t, third.refused)
	return r
}

// killedWhileRefused kills the Collector while the pipeline refuses what it took from the API server.
func killedWhileRefused(t *testing.T) row {
	s := newScene(t, sharedCluster(t))
	c := s.watchedBy(t, s.cluster.Kubeconfig(), withStorage)
	s.begin(t)
	s.delivers(t, 50)
	s.sink.answers(refuseForNow)
	s.load.grows(t, 200)
	c.kill()
	s.load.grows(t, 50)
	c.start(t)
	s.load.grows(t, 50)
	c.terminate(t)
	s.load.grows(t, 50)
	c.start(t)
	s.sink.answers(takeIt)
	s.delivers(t, 50)
	s.remark = "kill -9, then SIGTERM, while it answers 503"
	return s.conclude(t)
}
