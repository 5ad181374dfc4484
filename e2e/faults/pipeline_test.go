// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"
	"time"
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
