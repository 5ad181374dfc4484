// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/otlpsink"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/promtext"
)

// podData goes through a Collector, which adds the workload.
type podData struct {
	kube      *cluster
	wire      *wire
	sink      *otlpsink.Sink
	col       *collector
	url       string // of the Collector's receiver
	isAwaited bool   // Data is complete only with its workload.
	before    asked  // the start of the Collector

	mu         sync.Mutex
	complete   map[string]time.Time // when a pod's data was complete first, by the pod's name
	incomplete int                  // resources that arrived without the workload
}

// enrichOnce measures a Collector without its processor, and with it.
func (c *cluster) enrichOnce(ctx context.Context, r runner, knownTimes int) (values, error) {
	without, err := c.onPodData(ctx, r.unbatched(), false, func(d *podData) (values, error) { return d.measure(ctx, knownTimes) })
	if err != nil {
		return nil, err
	}
	with, err := c.onPodData(ctx, r, true, func(d *podData) (values, error) { return d.measure(ctx, knownTimes) })
	if err != nil {
		return nil, err
	}
	for name, value := range without {
		if strings.HasPrefix(name, processorRSS) || strings.HasPrefix(name, processorCPU) {
			with[name] -= value
		}
	}
	return with, nil
}

// onPodData starts a sink, a Collector and what is between it and the API server, measures, and stops them.
func (c *cluster) onPodData(ctx context.Context, r runner, isAwaited bool, measure func(*podData) (values, error)) (v values, err error) {
	d := &podData{kube: c, isAwaited: isAwaited, complete: map[string]time.Time{}}
	if d.sink, err = otlpsink.Start(otlpsink.Callbacks{Logs: d.take}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.sink.Stop()) }()
	if d.wire, err = newWire(c.Kubeconfig()); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.wire.close()) }()
	if d.before, err = c.asked(ctx); err != nil {
		return nil, err
	}
	free, err := process.FreeAddresses(1)
	if err != nil {
		return nil, err
	}
	d.url = "http://" + free[0] + "/v1/logs"
	r.receiver = "{protocols: {http: {endpoint: " + free[0] + "}}}"
	if d.col, err = startCollector(r, d.wire.kubeconfig, d.sink.URL); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.col.stop()) }()
	return measure(d)
}

// take notes what arrives at the backend.
func (d *podData) take(_ context.Context, logs plog.Logs) error {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, resource := range logs.ResourceLogs().All() {
		attributes := resource.Resource().Attributes()
		pod := otlpsink.Text(attributes, "k8s.pod.name")
		workload := cmp.Or(otlpsink.Text(attributes, "k8s.workload.name"), otlpsink.Text(attributes, "k8s.deployment.name"))
		if d.isAwaited && workload != deploymentOf(pod) {
			d.incomplete++
		} else if _, known := d.complete[pod]; !known {
			d.complete[pod] = now
		}
	}
	return nil
}

// measure sends the data of some pods, again while it is known, and then that of all others.
func (d *podData) measure(ctx context.Context, knownTimes int) (values, error) {
	sets := d.kube.podSets()
	if err := d.sendUntilComplete(ctx, sets[0]); err != nil {
		return nil, err
	}
	_, last := d.completed()
	late := d.incomplete
	perResource, err := d.sendKnown(ctx, sets[0], knownTimes)
	if err != nil {
		return nil, err
	}
	first := ofPods(len(sets[0]), len(d.kube.pods))
	v := values{
		completeAfter + first: last.Sub(d.col.Started).Seconds(), incomplete + first: float64(late), processorCPU + first: perResource,
	}
	if err := d.note(ctx, v, first); err != nil {
		return nil, err
	}
	for _, pods := range sets[1:] {
		if err := d.sendUntilComplete(ctx, pods); err != nil {
			return nil, err
		}
	}
	return v, d.note(ctx, v, ofPods(len(d.kube.pods), len(d.kube.pods)))
}

// podSets are the pods of each request, in random order. Each run has the same.
func (c *cluster) podSets() [][]corev1.ObjectReference {
	pods := make([]corev1.ObjectReference, len(c.pods))
	for i, place := range rand.New(rand.NewPCG(1, 2)).Perm(len(pods)) {
		pods[place] = c.pods[i]
	}
	return slices.Collect(slices.Chunk(pods, maxResources))
}

// sendUntilComplete sends the data of pods each second until it has arrived with the workload of all.
func (d *podData) sendUntilComplete(ctx context.Context, pods []corev1.ObjectReference) error {
	goal, _ := d.completed()
	goal += len(pods)
	request, err := dataOf(pods)
	const enough = 5 * time.Minute
	for next, end := time.Now(), time.Now().Add(enough); err == nil; {
		if err = d.send(ctx, request); err != nil {
			break
		}
		complete, _ := d.completed()
		if complete >= goal {
			break
		}
		if time.Now().After(end) {
			return d.col.failure(fmt.Sprintf("has added the workload to the data of %d of %d pods within %s", complete, goal, enough))
		}
		next = next.Add(time.Second)
		err = wait(ctx, time.Until(next))
	}
	return err
}

// sendKnown sends the data of known pods ten times a second, and returns the processor time for a resource in µs.
func (d *podData) sendKnown(ctx context.Context, pods []corev1.ObjectReference, times int) (float64, error) {
	request, err := dataOf(pods)
	if err != nil {
		return 0, err
	}
	before, errBefore := d.col.usage()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for range times {
		<-ticks.C
		if err := d.send(ctx, request); err != nil {
			return 0, err
		}
	}
	after, errAfter := d.col.usage()
	return float64((after.cpu - before.cpu).Microseconds()) / float64(times*len(pods)), errors.Join(errBefore, errAfter)
}

// completed is how many pods have complete data, and when the last one got it.
func (d *podData) completed() (n int, last time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.complete {
		if at.After(last) {
			last = at
		}
	}
	return len(d.complete), last
}

// send returns when the backend has the data. It waits until the Collector listens.
func (d *podData) send(ctx context.Context, request []byte) error {
	for {
		response, err := post(ctx, d.url, request)
		switch {
		case err == nil && response == http.StatusOK:
			return nil
		case err == nil:
			return d.col.failure(fmt.Sprintf("answers with status %d", response))
		case !errors.Is(err, syscall.ECONNREFUSED):
			return err
		}
		if err := wait(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

func post(ctx context.Context, url string, body []byte) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// dataOf is a request with a record of each pod, as agents send it.
func dataOf(pods []corev1.ObjectReference) ([]byte, error) {
	logs := plog.NewLogs()
	for _, pod := range pods {
		resource := logs.ResourceLogs().AppendEmpty()
		attributes := resource.Resource().Attributes()
		attributes.PutStr("k8s.pod.uid", string(pod.UID))
		attributes.PutStr("k8s.pod.name", pod.Name)
		attributes.PutStr("k8s.namespace.name", pod.Namespace)
		resource.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("GET /healthz 200")
	}
	return plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
}

// asked is what the API server has been asked for.
type asked struct{ requests, watches float64 }

func (c *cluster) asked(ctx context.Context) (a asked, err error) {
	if a.requests, err = c.reads(ctx, ownerResources...); err != nil {
		return a, err
	}
	page, err := c.client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return a, err
	}
	metrics, err := promtext.Parse(page)
	for _, resource := range ownerResources {
		a.watches += metrics.Sum("apiserver_longrunning_requests", "resource", resource, "verb", "WATCH")
	}
	return a, err
}

// note writes down what the Collector has cost so far.
func (d *podData) note(ctx context.Context, v values, suffix string) error {
	used, errUsage := d.col.usage()
	now, errAsked := d.kube.asked(ctx)
	v[peakRSS+suffix], v[processorRSS+suffix] = mebibytes(used.peakRSS), mebibytes(used.peakRSS)
	v[podRequests+suffix], v[podWatches+suffix] = now.requests-d.before.requests, now.watches-d.before.watches
	v[podBytes+suffix] = mebibytes(d.wire.received.Load())
	return errors.Join(errUsage, errAsked)
}
