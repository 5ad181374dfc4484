// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwait "k8s.io/apimachinery/pkg/util/wait"
)

// The figures that a load has.
const (
	cpuPerRecord  = "processor time for a record"
	peakRSS       = "peak memory (RSS)"
	recordBytes   = "bytes for a record, compressed"
	rawBytes      = "bytes for a record, uncompressed"
	latencyHalf   = "latency, median"
	latencyTail   = "latency, 99th percentile"
	latencyMost   = "latency, greatest"
	lost          = "records lost"
	repeated      = "records repeated, with the `log.record.uid` of the first"
	unrecognized  = "records repeated, without this"
	unowned       = "records without all owners"
	ownerRequests = "requests for owners"
	rate          = "rate that was reached"
	spans         = "spans received"
)

// rig is a Collector between a control plane and a sink.
type rig struct {
	kube *cluster
	sink *sink
	col  *collector
}

// onRig starts a sink and a Collector, measures, and stops them.
func (c *cluster) onRig(r runner, measure func(*rig) (values, error)) (v values, err error) {
	s, err := newSink()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	started := &rig{kube: c, sink: s}
	if started.col, err = startCollector(r, c.Kubeconfig(), s.url()); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, started.col.stop()) }()
	return measure(started)
}

// awaitFirst makes a probe every 100 ms until the sink has received a record, and returns when that
// was.
func (r *rig) awaitFirst(ctx context.Context) (first time.Time, err error) {
	next := time.Now()
	err = until(ctx, 2*time.Minute, "a probe arrives", func() bool {
		if now := time.Now(); !now.Before(next) {
			next = next.Add(100 * time.Millisecond)
			// Without waiting for the answer: an API server that is busy would slow down the clock.
			// A probe that fails is none, and the next one comes soon.
			go func() { _ = r.kube.probe(ctx, now) }()
		}
		first = r.sink.firstArrival()
		return !first.IsZero()
	})
	if err != nil {
		err = errors.Join(err, r.col.failure("does not watch"))
	}
	return first, err
}

// settle waits until the Collector watches and what it does at its start is over.
func (r *rig) settle(ctx context.Context) error {
	if _, err := r.awaitFirst(ctx); err != nil {
		return err
	}
	// Long enough for late probes, which come later on a busy machine; and events' times are in whole
	// seconds, which k8s_events compares with that of its start.
	const pause = 1500 * time.Millisecond
	for quiet := time.Duration(0); quiet < pause; {
		if err := wait(ctx, pause-quiet); err != nil {
			return err
		}
		_, last := r.sink.observations()
		quiet = time.Since(last)
	}
	r.sink.reset()
	return nil
}

// await waits for n records, until no record has come for so long, or for as long as the runner demands.
func (r *rig) await(ctx context.Context, n int, quiet time.Duration) error {
	return r.sink.wait(ctx, n, max(quiet, r.col.quiet))
}

// warmUp makes the owners of some pods known: each has an event.
func (r *rig) warmUp(ctx context.Context, pods int) error {
	if _, err := r.write(ctx, steady(size{pods: pods, observations: pods, perSecond: 1000})); err != nil {
		return err
	}
	if err := r.await(ctx, pods, 5*time.Second); err != nil {
		return err
	}
	r.sink.reset()
	return nil
}

// measure writes the changes, waits for their records, and after that for as long as the tail.
func (r *rig) measure(ctx context.Context, changes []change, tail time.Duration) (values, error) {
	before, errBefore := r.col.usage()
	asked, errAsked := r.kube.reads(ctx, ownerResources...)
	if err := errors.Join(errBefore, errAsked); err != nil {
		return nil, err
	}
	perSecond, err := r.write(ctx, changes)
	if err != nil {
		return nil, err
	}
	if err := r.await(ctx, len(changes), 10*time.Second); err != nil {
		return nil, err
	}
	if err := wait(ctx, tail); err != nil {
		return nil, err
	}
	after, errAfter := r.col.usage()
	total, errAsked := r.kube.reads(ctx, ownerResources...)
	sum := r.sink.summary()
	v := sum.values()
	v[cpuPerRecord] = float64((after.cpu - before.cpu).Microseconds()) / float64(max(1, sum.delivered))
	v[peakRSS], v[ownerRequests], v[rate], v[spans] = mebibytes(after.peakRSS), total-asked, perSecond, float64(r.sink.spansReceived())
	return v, errors.Join(errAfter, errAsked)
}

// values are what arrived of a load.
func (s summary) values() values {
	return values{
		recordBytes: s.bytesPerRecord, rawBytes: s.rawPerRecord, latencyHalf: s.latency(0.5), latencyTail: s.latency(0.99), latencyMost: s.latency(1),
		lost: float64(s.sent - s.delivered), unowned: float64(s.delivered - s.owned),
		repeated: float64(s.recognizable), unrecognized: float64(s.surplus - s.recognizable),
	}
}

// change is a new event about a pod, or one that is counted up.
type change struct {
	at              time.Duration // after the start of the load
	pod             int           // its place among the cluster's
	reason, message string        // empty: those of a container that crashes
	repeat          bool          // the pod's last event of the reason is counted up; the first one is new
	// prepare does what happens just before, and returns what the event is about; nil: about the pod.
	prepare func(context.Context, *cluster) (corev1.ObjectReference, error)
}

// series is what counts up: the events of a pod with one reason.
type series struct {
	pod    int
	reason string
}

// probeFails is the reason of a steady load. Details read nothing for it, as for nearly all events of a cluster: those of
// crashes read the pod.
const probeFails = "Unhealthy"

// steady is a load at one rate, and the same in each run. Events come at random times: at regular ones,
// the phase of a batch's timer would decide the latency. The updates are as evenly among the new events
// as can be. Each of them repeats the newest event.
func steady(sz size) []change {
	changes := make([]change, sz.observations)
	random := rand.New(rand.NewPCG(1, 4))
	due, made := 0, 0
	at := time.Duration(0)
	for i := range changes {
		due += (i+1)*sz.updates/sz.observations - i*sz.updates/sz.observations
		c := &changes[i]
		at += time.Duration(random.ExpFloat64() * float64(time.Second) / float64(sz.perSecond))
		c.at = at
		if c.repeat = due > 0 && made > 0; c.repeat {
			due--
		} else {
			made++
		}
		c.pod = (made - 1) % sz.pods
		address := fmt.Sprintf("10.244.%d.%d:8080", c.pod/250, c.pod%250+1)
		c.reason, c.message = probeFails, fmt.Sprintf(`Readiness probe failed: Get "http://%s/healthz": dial tcp %[1]s: connect: connection refused`, address)
	}
	return changes
}

// write writes the changes at their times, in several writers, and returns how many a second it
// wrote. A pod has always the same writer, which therefore never repeats what has not been made.
func (r *rig) write(ctx context.Context, changes []change) (perSecond float64, err error) {
	begin := time.Now()
	var queues [writers][]int
	for i, c := range changes {
		queues[c.pod%writers] = append(queues[c.pod%writers], i)
	}
	err = inParallel(writers, func(w int) error {
		newest := map[series]*corev1.Event{}
		for _, i := range queues[w] {
			if err := wait(ctx, time.Until(begin.Add(changes[i].at))); err != nil {
				return err
			}
			name := fmt.Sprintf("%s.%x-%d", r.kube.pods[changes[i].pod].Name, begin.UnixNano(), i)
			if err := r.writeOne(ctx, changes[i], name, newest); err != nil {
				return err
			}
		}
		return nil
	})
	return float64(len(changes)) / time.Since(begin).Seconds(), err
}

// writeOne makes an event, or counts one up. Recorders patch; for the API server a whole object is
// less work, for watchers it is the same.
func (r *rig) writeOne(ctx context.Context, c change, name string, newest map[series]*corev1.Event) error {
	about := r.kube.pods[c.pod]
	if c.prepare != nil {
		var err error
		if about, err = c.prepare(ctx, r.kube); err != nil {
			return err
		}
	}
	now := time.Now()
	events := r.kube.client.CoreV1().Events(about.Namespace)
	if ev := newest[series{c.pod, c.reason}]; c.repeat && ev != nil {
		ev.Count++
		ev.LastTimestamp = metav1.NewTime(now)
		r.sink.note(ev.Name, int64(ev.Count), now)
		_, err := events.Update(ctx, ev, metav1.UpdateOptions{})
		return err
	}
	ev := kubeletEvent(name, about, now)
	if c.reason != "" {
		ev.Reason, ev.Message = c.reason, c.message
		if c.reason != probeFails {
			ev.Type = corev1.EventTypeNormal
		}
	}
	if c.reason == "Scheduled" {
		ev.Source, ev.InvolvedObject.FieldPath = corev1.EventSource{Component: "default-scheduler"}, ""
		ev.ReportingController, ev.ReportingInstance = "default-scheduler", ""
	}
	r.sink.note(ev.Name, 1, now)
	newest[series{c.pod, c.reason}] = ev
	_, err := events.Create(ctx, ev, metav1.CreateOptions{})
	return err
}

// until polls until a condition holds.
func until(ctx context.Context, timeout time.Duration, what string, condition func() bool) error {
	err := apiwait.PollUntilContextTimeout(ctx, 2*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("not within %s: %s", timeout, what)
	}
	return err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
