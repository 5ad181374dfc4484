// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/kubeevents/kubeeventsreceiver/distribution/incidentsconnector/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
	"github.com/kubeevents/kubeeventsreceiver/distribution/statusextension"
)

// backend keeps what the outputs of problems and of the gauge deliver.
type backend struct {
	mu     sync.Mutex // guards the following
	told   []told
	points []string // ATTRIBUTES=VALUE, the oldest first
	err    error    // of the next requests; nil: none
	hangs  bool
	isDown bool // requests of points hang, too
}

// told is a record of a problem or a change.
type told struct {
	event, body string
	attributes  map[string]any
	resource    map[string]any
}

func (r told) text(name string) string { return fmt.Sprint(r.attributes[name]) }

func (b *backend) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	b.mu.Lock()
	hangs, err := b.hangs, b.err
	b.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rl := range logs.ResourceLogs().All() {
		for _, r := range rl.ScopeLogs().At(0).LogRecords().All() {
			b.told = append(b.told, told{r.EventName(), r.Body().Str(), r.Attributes().AsRaw(), rl.Resource().Attributes().AsRaw()})
		}
	}
	return nil
}

func (b *backend) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	b.mu.Lock()
	hangs := b.hangs && b.isDown
	b.mu.Unlock()
	if hangs {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().All() {
		name, _ := p.Attributes().Get("k8s.workload.name")
		class, _ := p.Attributes().Get("k8s.problem.class")
		b.points = append(b.points, fmt.Sprintf("%s %s=%d", name.Str(), class.Str(), p.IntValue()))
	}
	return nil
}

// emitted returns the points, the oldest first.
func (b *backend) emitted() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.points)
}

func (*backend) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (b *backend) set(err error, hangs bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err, b.hangs = err, hangs
}

// of returns the records with an EventName.
func (b *backend) of(event string) (all []told) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.told {
		if r.event == event {
			all = append(all, r)
		}
	}
	return all
}

// lines returns STATE: BODY of the records with an EventName.
func (b *backend) lines(event string) (all []string) {
	for _, r := range b.of(event) {
		all = append(all, r.text(event+".state")+": "+r.body)
	}
	return all
}

// disks are a storage extension that gives each name its own disk.
type disks struct {
	component.StartFunc
	component.ShutdownFunc
	byName map[string]*disk
}

func newDisks() *disks { return &disks{byName: map[string]*disk{}} }

func (d *disks) GetClient(_ context.Context, _ component.Kind, _ component.ID, name string) (storage.Client, error) {
	if d.byName[name] == nil {
		d.byName[name] = &disk{values: map[string][]byte{}}
	}
	return d.byName[name], nil
}

// copied returns what the disks have now: what a process that is killed leaves.
func (d *disks) copied() *disks {
	c := newDisks()
	for name, one := range d.byName {
		c.byName[name] = &disk{values: one.content()}
	}
	return c
}

// watching is a connector with outputs to all signals.
type watching struct {
	*backend
	all       []connector.Logs
	telemetry *componenttest.Telemetry
}

func startWatching(t testing.TB, d *disks, change func(*Config)) *watching {
	t.Helper()
	return startIn(t, host{}, d, change)
}

// startIn starts a connector in a Collector with some extensions.
func startIn(t testing.TB, extensions host, d *disks, change func(*Config)) *watching {
	t.Helper()
	factory := NewFactory()
	config := factory.CreateDefaultConfig().(*Config)
	if d != nil {
		config.Storage, extensions[diskID] = &diskID, d
	}
	if change != nil {
		change(config)
	}
	w := &watching{backend: &backend{}, telemetry: componenttest.NewTelemetry()}
	settings := connectortest.NewNopSettings(metadata.Type)
	settings.ID = component.NewID(metadata.Type)
	settings.TelemetrySettings = w.telemetry.NewTelemetrySettings()
	traces, err := factory.CreateLogsToTraces(t.Context(), settings, config, &sink{})
	require.NoError(t, err)
	logs, err := factory.CreateLogsToLogs(t.Context(), settings, config, w.backend)
	require.NoError(t, err)
	metrics, err := factory.CreateLogsToMetrics(t.Context(), settings, config, w.backend)
	require.NoError(t, err)
	w.all = []connector.Logs{traces, logs, metrics}
	for _, one := range w.all {
		require.NoError(t, one.Start(t.Context(), extensions))
	}
	return w
}

// consume gives each output the same records, as the Collector does.
func (w *watching) consume(t testing.TB, logs plog.Logs) {
	t.Helper()
	for _, one := range w.all {
		require.NoError(t, one.ConsumeLogs(t.Context(), logs))
	}
}

func (w *watching) stop(t testing.TB) {
	t.Helper()
	for _, one := range w.all {
		require.NoError(t, one.Shutdown(context.WithoutCancel(t.Context())))
	}
	require.NoError(t, w.telemetry.Shutdown(context.WithoutCancel(t.Context())))
}

// tell gives the connector the records of a story when their time comes.
func (w *watching) tell(t testing.TB, lines string) {
	t.Helper()
	w.tellAll(t, story.Records(lines))
}

func (w *watching) tellAll(t testing.TB, records []story.Record) {
	t.Helper()
	epoch := time.Now()
	for _, r := range records {
		time.Sleep(time.Until(epoch.Add(r.At)))
		w.consume(t, r.Logs(epoch))
	}
}

const noHost = `failed to do request: Head "https://registry.example/v2/app/manifests/1": dial tcp: lookup registry.example: no such host`

func TestAFaultOfManyIsOneProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatching(t, nil, nil)
		w.tell(t, "0s Deployment/web0 ScalingReplicaSet namespace=team-0: Scaled up replica set web0-aaa from 0 to 5\n"+faultLines())
		time.Sleep(15 * time.Minute)
		w.stop(t)
		opened, ended := 0, told{}
		for _, r := range w.of("k8s.problem") {
			switch r.text("k8s.problem.state") {
			case "opened":
				opened++
			case "ended":
				ended = r
			}
		}
		assert.Equal(t, 1, opened, w.lines("k8s.problem"))
		assert.Equal(t, "over after 3 min: pull from registry.example fails: 12 workloads in 3 namespaces, 60 pods; the cause: the registry registry.example does not answer: no such host", ended.body)
		assert.Equal(t, map[string]any{"k8s.cluster.uid": "cluster"}, ended.resource)
		for name, want := range map[string]any{
			"k8s.problem.schema": int64(1), "k8s.problem.class": "image", "k8s.problem.workloads": int64(12), "k8s.problem.pods": int64(60), "k8s.problem.nodes": int64(5),
			"k8s.problem.end_reason": "the image was pulled", "k8s.problem.previous": int64(0),
			"k8s.problem.causes": []any{"the registry registry.example does not answer: no such host"},
		} {
			assert.Equal(t, want, ended.attributes[name], name)
		}
	})
}

// faultLines are those of 12 workloads in 3 namespaces, each with 5 pods whose image cannot be pulled for three minutes.
func faultLines() string {
	var lines []string
	for step, what := range []string{
		`!Failed{app} node=node-%d namespace=team-%d: Failed to pull image "registry.example/app:1": ` + noHost,
		`Pulled{app} node=node-%d namespace=team-%d: Successfully pulled image "registry.example/app:1" in 1s (1s including waiting)`,
	} {
		for w := range 12 {
			for pod := range 5 {
				lines = append(lines, fmt.Sprintf("%ds Pod/web%d-aaa-%d "+what, 5+180*step+w, w, pod, pod, w%3))
			}
		}
	}
	return strings.Join(lines, "\n")
}

// TestTheRecordOfAProblem has the workload with its tags as the resource.
func TestTheRecordOfAProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatching(t, nil, nil)
		logs := story.Records("0s Pod/web-aaa-1 !BackOff{app} node=node-1: Back-off restarting failed container")[0].Logs(time.Now())
		attributes := logs.ResourceLogs().At(0).Resource().Attributes()
		attributes.PutStr("team", "checkout")
		attributes.PutStr("service.name", "web")
		attributes.PutStr("k8s.pod.name", "web-aaa-1")
		w.consume(t, logs)
		time.Sleep(30 * time.Second)
		w.stop(t)
		require.Len(t, w.of("k8s.problem"), 1)
		r := w.of("k8s.problem")[0]
		assert.Equal(t, "deployment web in shop: a container ends by itself, again and again; the cause is not known", r.body)
		assert.Equal(t, map[string]any{
			"k8s.cluster.uid": "cluster", "k8s.namespace.name": "shop", "k8s.workload.api_version": "apps/v1", "k8s.workload.kind": "Deployment",
			"k8s.workload.name": "web", "k8s.workload.uid": "uid-web", "team": "checkout", "service.name": "web",
		}, r.resource)
		assert.Equal(t, []any{"web-aaa-1"}, r.attributes["k8s.problem.pod.names"])
		assert.Equal(t, r.text("k8s.problem.id")+"-opened", r.text("log.record.uid"))
	})
}

// TestKilledAnywhere: what was told is not told again, but for what a crash kept from being saved, with the same uid. What
// ended meanwhile ends.
func TestKilledAnywhere(t *testing.T) {
	const lines = "0s Pod/web-aaa-1 !FailedScheduling: no room\n30s Pod/api-aaa-1 !BackOff{app} node=node-1: Back-off restarting failed container\n" +
		"100s Pod/web-aaa-1 Scheduled: Successfully assigned shop/web-aaa-1 to node-1\n200s Deployment/cart ScalingReplicaSet: Scaled up replica set cart-aaa from 1 to 3"
	for killed := range 20 {
		synctest.Test(t, func(t *testing.T) {
			d := newDisks()
			first := startWatching(t, d, nil)
			var second *watching
			epoch := time.Now()
			kill := epoch.Add(time.Duration(killed)*15*time.Second + 1500*time.Millisecond) // What came in the last second is lost.
			restart := func() {
				time.Sleep(time.Until(kill))
				left := d.copied()
				first.set(nil, true) // Nobody hears of what it does afterwards.
				second = startWatching(t, left, nil)
				go func() {
					for _, one := range first.all {
						_ = one.Shutdown(context.WithoutCancel(t.Context()))
					}
				}()
			}
			for _, r := range story.Records(lines) {
				if second == nil && epoch.Add(r.At).After(kill) {
					restart()
				}
				time.Sleep(time.Until(epoch.Add(r.At)))
				if second != nil {
					second.consume(t, r.Logs(epoch))
				} else {
					first.consume(t, r.Logs(epoch))
				}
			}
			if second == nil {
				restart()
			}
			time.Sleep(30 * time.Minute)
			second.stop(t)
			states := map[string][]string{}
			uids := map[string]bool{}
			for _, r := range slices.Concat(first.told, second.told) {
				if r.event == "k8s.problem" && !uids[r.text("log.record.uid")] {
					states[r.text("k8s.problem.id")] = append(states[r.text("k8s.problem.id")], r.text("k8s.problem.state"))
				}
				uids[r.text("log.record.uid")] = true
			}
			assert.Len(t, states, 2, "killed after %v", time.Duration(killed)*15*time.Second)
			for id, all := range states {
				assert.Equal(t, []string{"opened", "ended"}, all, "%s, killed after %v", id, time.Duration(killed)*15*time.Second)
			}
		})
	}
}

func TestTheGauge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatching(t, nil, nil)
		w.tell(t, "0s Pod/web-aaa-1 !FailedScheduling: no room\n95s Pod/web-aaa-1 Scheduled: Successfully assigned shop/web-aaa-1 to node-1")
		time.Sleep(10 * time.Minute)
		w.stop(t)
		require.GreaterOrEqual(t, len(w.points), 4)
		last := len(w.points) - 1
		assert.Equal(t, "web schedule=0", w.points[last])
		for _, point := range w.points[:last] {
			assert.Equal(t, "web schedule=1", point)
		}
	})
}

// TestTheGaugeIsRejected: points wait for their time. Ended problems wait for an answer, and go after a permanent error.
func TestTheGaugeIsRejected(t *testing.T) {
	t.Parallel()
	requests, answer, now := 0, errors.New("busy"), time.Now()
	to, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error {
		requests++
		return answer
	})
	require.NoError(t, err)
	g := gauge{all: map[string]*series{"ended": {}, "open": {open: map[string]bool{"1": true}}}, hasNews: true}
	for second := range 30 {
		_ = g.emit(t.Context(), now.Add(time.Duration(second)*time.Second), to, "")
	}
	assert.Equal(t, 1, requests)
	assert.Len(t, g.all, 2)
	answer = consumererror.NewPermanent(answer)
	require.ErrorIs(t, g.emit(t.Context(), now.Add(emitEvery), to, ""), answer)
	assert.Equal(t, 2, requests)
	assert.Equal(t, []string{"open"}, slices.Collect(maps.Keys(g.all)))
}

// TestPipelinesThatHang: a crash loses what came within the time that one of them may take, and an end loses nothing.
func TestPipelinesThatHang(t *testing.T) {
	saved := func(t *testing.T, d *disks) (pods []string) {
		w := &watch{live: incident.NewLive(time.Now), settings: connectortest.NewNopSettings(metadata.Type)}
		_, err := openStore(t.Context(), host{diskID: d.copied()}, diskID, component.NewID(metadata.Type), w, func() {})
		require.NoError(t, err)
		for f := range w.live.Facts {
			pods = append(pods, f.Object().Name)
		}
		return pods
	}
	synctest.Test(t, func(t *testing.T) {
		d := newDisks()
		w := startWatching(t, d, nil)
		w.isDown = true
		w.set(nil, true)
		w.tell(t, "0s Pod/a-aaa-1 !FailedScheduling: no room")
		time.Sleep(firstLook - interval/2)
		w.tell(t, "0s Pod/b-aaa-1 Scheduled: m")
		time.Sleep(interval)
		assert.Contains(t, saved(t, d), "b-aaa-1", "although the first points hang")
		time.Sleep(firstLook)
		for i := range 60 {
			w.tell(t, fmt.Sprintf("0s Pod/b-aaa-%d Scheduled: m", i+10))
			time.Sleep(interval)
			assert.GreaterOrEqual(t, len(saved(t, d)), i+3-10, "after %d s, and both pipelines hang in turn", i)
		}

		w.set(errors.New("busy"), false)
		time.Sleep(time.Minute) // Neither of them is asked now.
		w.set(nil, true)
		w.tell(t, "0s Pod/c-aaa-1 Scheduled: m")
		go func() {
			for _, one := range w.all {
				_ = one.Shutdown(context.WithoutCancel(t.Context()))
			}
		}()
		time.Sleep(shutdownTimeout / 2)
		assert.Contains(t, saved(t, d), "c-aaa-1")
		time.Sleep(time.Minute)
	})
}

// TestWhatIsOldLeavesTheStorage: a snapshot a day replaces entries, although they are few.
func TestWhatIsOldLeavesTheStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisks()
		w := startWatching(t, d, nil)
		w.tell(t, "0s Pod/web-aaa-1 !FailedScheduling: no room")
		time.Sleep(time.Minute)
		first := d.copied().byName["problems"].values
		w.tell(t, "25h Pod/web-aaa-2 Scheduled: m")
		time.Sleep(time.Minute)
		w.stop(t)
		for name, value := range d.copied().byName["problems"].values {
			assert.NotEqual(t, first[name], value, name)
		}
	})
}

// TestTheOutboxKeepsNothingElse of the look of a record, and nothing of what was delivered.
func TestTheOutboxKeepsNothingElse(t *testing.T) {
	t.Parallel()
	var o outbox
	add := func() (shown weak.Pointer[incident.Problem]) {
		u := &problem.Update{Shown: &incident.Problem{ID: "1"}}
		logs := plog.NewLogs()
		logs.ResourceLogs().AppendEmpty()
		o.add(itemOf(u, logs))
		return weak.Make(u.Shown)
	}
	shown := add()
	runtime.GC()
	assert.Nil(t, shown.Value())
	waited := o.items
	_, _, err := o.deliver(t.Context(), time.Now(), consumertest.NewNop())
	require.NoError(t, err)
	assert.Equal(t, []item{{}}, waited)
}

// TestAFullOutbox drops the oldest of the namespace that has most.
func TestAFullOutbox(t *testing.T) {
	t.Parallel()
	var o outbox
	add := func(namespace, id string) {
		o.add(item{in: problem.SpaceOf(incident.Key{Namespace: namespace}), change: id})
	}
	add("shop", "first")
	for i := range maxItems + 9 {
		add("evil", fmt.Sprint(i))
	}
	all, _ := o.waiting()
	assert.Len(t, all, maxItems)
	assert.True(t, all["first"])
	assert.False(t, all["9"])
	assert.True(t, all["10"])
	assert.Equal(t, 10, o.full)
}

// TestWhatAPipelineRejects: only a record that all exporters reject permanently is dropped, and no others with it.
func TestWhatAPipelineRejects(t *testing.T) {
	t.Parallel()
	invalid := consumererror.NewPermanent(errors.New("invalid"))
	for name, tt := range map[string]struct {
		of                          error // for each request with the record
		sizes                       []int // of requests
		delivered, dropped, waiting int
	}{
		"permanently":              {invalid, []int{3, 1, 1, 1}, 3, 1, 0},
		"for now":                  {errors.New("full"), []int{3}, 0, 0, 3},
		"one exporter permanently": {errors.Join(invalid, errors.New("full")), []int{3}, 0, 0, 3},
		"it is accepted":           {nil, []int{3}, 3, 0, 0},
		"the request is too large": {nil, []int{2, 1}, 3, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var o outbox
			for i := range 3 {
				logs := plog.NewLogs()
				body := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body()
				body.SetStr(fmt.Sprint(i))
				if len(tt.sizes) == 2 {
					body.SetStr(strings.Repeat("x", 400_000))
				}
				o.add(item{logs: logs})
			}
			var sizes []int
			to, err := consumer.NewLogs(func(_ context.Context, logs plog.Logs) error {
				sizes = append(sizes, logs.LogRecordCount())
				for _, resource := range logs.ResourceLogs().All() {
					if resource.ScopeLogs().At(0).LogRecords().At(0).Body().Str() == "1" {
						return tt.of
					}
				}
				return nil
			})
			require.NoError(t, err)
			delivered, dropped, err := o.deliver(t.Context(), time.Now(), to)
			assert.Equal(t, tt.of, err)
			assert.Equal(t, tt.sizes, sizes)
			assert.Len(t, delivered, tt.delivered)
			assert.Equal(t, tt.dropped, dropped)
			assert.Len(t, o.items, tt.waiting)
		})
	}
}

// TestSilenceOfAReceiverEndsNothing: a mount fails for an hour, and for half of it no events come.
func TestSilenceOfAReceiverEndsNothing(t *testing.T) {
	standby := componentstatus.NewEvent(componentstatus.StatusOK)
	standby.Attributes().PutBool("kube_events.standby", true)
	for name, tt := range map[string]struct {
		between    *componentstatus.Event
		ended      int  // half an hour after the last failure that has come
		hasNoPoint bool // meanwhile
	}{
		"the API server is away":                          {componentstatus.NewRecoverableErrorEvent(errors.New("no answer")), 0, false},
		"another replica leads":                           {standby, 0, true},
		"the receiver works, and the mount fails no more": {componentstatus.NewEvent(componentstatus.StatusOK), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				status, receiver := statusextension.New(), componentstatus.NewInstanceID(component.MustNewID("kube_events"), component.KindReceiver)
				status.ComponentStatusChanged(receiver, componentstatus.NewEvent(componentstatus.StatusOK))
				w := startIn(t, host{component.MustNewID("kube_events_status"): status}, nil, nil)
				failures := "0s Pod/web-aaa-1 !FailedMount: no volume\n120s Pod/web-aaa-1 !FailedMount: no volume\n240s Pod/web-aaa-1 !FailedMount: no volume"
				w.tell(t, failures)
				time.Sleep(time.Minute)
				require.Len(t, w.of("k8s.problem"), 1)

				status.ComponentStatusChanged(receiver, tt.between)
				before := len(w.emitted())
				time.Sleep(30 * time.Minute)
				assert.Len(t, w.of("k8s.problem"), 1+tt.ended)
				assert.Equal(t, tt.hasNoPoint, len(w.emitted()) == before)

				status.ComponentStatusChanged(receiver, componentstatus.NewEvent(componentstatus.StatusOK))
				w.tell(t, failures)
				time.Sleep(30 * time.Minute)
				w.stop(t)
				lines := w.lines("k8s.problem")
				assert.Regexp(t, "^ended", lines[len(lines)-1])
				if tt.ended == 0 {
					assert.Len(t, w.of("k8s.problem"), 2, "the same problem: %s", lines)
				}
			})
		})
	}
}

// TestAHealthyDay: deployments are changes, each with a begin and an end, and no problems.
func TestAHealthyDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatching(t, nil, nil)
		for i := range 60 {
			old, next := string(rune('a'+i%26))+fmt.Sprint(i), string(rune('a'+i%26))+fmt.Sprint(i+1)
			w.tell(t, fmt.Sprintf(`0s Deployment/web ScalingReplicaSet event=%[3]d-1: Scaled up replica set web-%[2]s from 0 to 1
0s ReplicaSet/web-%[2]s SuccessfulCreate: Created pod: web-%[2]s-1
0s Pod/web-%[2]s-1 Scheduled: Successfully assigned shop/web-%[2]s-1 to node-1
2s Pod/web-%[2]s-1 Started{app} node=node-1: Started container app
10s Deployment/web ScalingReplicaSet event=%[3]d-2: Scaled down replica set web-%[1]s from 1 to 0
10s ReplicaSet/web-%[1]s SuccessfulDelete: Deleted pod: web-%[1]s-1
10s Pod/web-%[1]s-1 Killing{app} node=node-1: Stopping container app`, old, next, i))
			time.Sleep(24 * time.Minute)
		}
		w.stop(t)
		assert.Empty(t, w.lines("k8s.problem"))
		changes := w.lines("k8s.change")
		assert.GreaterOrEqual(t, len(changes), 60)
		assert.LessOrEqual(t, len(changes), 120)
		uids := map[string]bool{}
		for _, r := range w.of("k8s.change") {
			assert.False(t, uids[r.text("log.record.uid")], r.body)
			uids[r.text("log.record.uid")] = true
		}
	})
}

// TestTheRecordsOfOthers are never delayed or rejected, whatever the pipeline of problems does.
func TestTheRecordsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatching(t, newDisks(), nil)
		w.set(nil, true)
		w.tell(t, "0s Pod/web-aaa-1 !BackOff{app} node=node-1: Back-off restarting failed container")
		time.Sleep(30 * time.Second)
		began := time.Now()
		for i := range 30_000 {
			w.consume(t, story.Records(fmt.Sprintf("0s Pod/web-aaa-1 !Odd event=%d: m", i))[0].Logs(began))
		}
		assert.Zero(t, time.Since(began))
		w.set(consumererror.NewPermanent(errors.New("no")), false)
		time.Sleep(2 * time.Minute)
		w.set(nil, false)
		missed, err := w.telemetry.GetMetric("otelcol_kube_incidents_records_missed")
		require.NoError(t, err)
		assert.NotNil(t, missed)
		w.stop(t)
	})
}

// TestAPipelineThatRejectsForAWhile loses nothing.
func TestAPipelineThatRejectsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatching(t, nil, nil)
		w.set(errors.New("busy"), false)
		w.tell(t, "0s Pod/web-aaa-1 !FailedScheduling: no room\n95s Pod/web-aaa-1 Scheduled: Successfully assigned shop/web-aaa-1 to node-1")
		time.Sleep(time.Minute)
		assert.Empty(t, w.of("k8s.problem"))
		w.set(nil, false)
		time.Sleep(time.Minute)
		w.stop(t)
		assert.Equal(t, []string{
			"opened: deployment web in shop: no node has room for a pod; the cause is not known",
			"ended: over after 95 s: deployment web in shop: no node has room for a pod; the cause is not known",
		}, w.lines("k8s.problem"))
	})
}

// TestStampedRecordsAndProblems share an output.
func TestStampedRecordsAndProblems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatching(t, nil, func(c *Config) { c.Stamp = true })
		w.tell(t, "0s Pod/web-aaa-1 !BackOff{app} node=node-1: Back-off restarting failed container")
		time.Sleep(30 * time.Second)
		w.stop(t)
		assert.Len(t, w.of("k8s.event"), 1)
		assert.Len(t, w.of("k8s.problem"), 1)
	})
}

// TestDamagedProblems: an entry that cannot be read costs only this entry.
func TestDamagedProblems(t *testing.T) {
	for name, damage := range map[string]func(value []byte) []byte{
		"no compressed data":    func([]byte) []byte { return []byte(`{"f": {}}`) },
		"only a begin is left":  func(value []byte) []byte { return value[:20] },
		"an empty fact":         func([]byte) []byte { return compressed(`{"f": {}}`) },
		"a problem is a number": func([]byte) []byte { return compressed(`{"p": 1}`) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDisks()
				w := startWatching(t, d, nil)
				w.tell(t, "0s Pod/web-aaa-1 !BackOff{app} node=node-1: Back-off restarting failed container")
				time.Sleep(30 * time.Second)
				w.stop(t)
				kept := d.byName["problems"]
				for name, value := range kept.content() {
					if name != "head" {
						require.NoError(t, kept.Set(t.Context(), name, damage(value)))
					}
				}
				w = startWatching(t, d, nil)
				time.Sleep(30 * time.Second)
				w.stop(t)
				assert.Empty(t, w.of("k8s.problem"))
			})
		})
	}
}

func compressed(text string) []byte {
	var to bytes.Buffer
	zip := gzip.NewWriter(&to)
	_, _ = zip.Write([]byte(text))
	_ = zip.Close()
	return to.Bytes()
}

// TestWhatIsLeftOfARolloutAfterRestarts: the connector forgets the oldest records of a rollout first. Restarts do not make the
// rest another rollout, or a scaling.
func TestWhatIsLeftOfARolloutAfterRestarts(t *testing.T) {
	for name, lines := range map[string]string{
		"StatefulSet": `0s Pod/db-2<statefulset.apps/db Killing{app} hash=old node=node-1: Stopping container app
0s Pod/db-2<statefulset.apps/db starts hash=new node=node-1
4m Pod/db-1<statefulset.apps/db Killing{app} hash=old node=node-1: Stopping container app
4m Pod/db-1<statefulset.apps/db starts hash=new node=node-1
8m Pod/db-0<statefulset.apps/db Killing{app} hash=old node=node-1: Stopping container app
8m Pod/db-0<statefulset.apps/db starts hash=new node=node-1`,
		"Deployment": `0s Deployment/web ScalingReplicaSet: Scaled up replica set web-bbb from 0 to 1
0s Pod/web-bbb-1 starts node=node-1
4m Deployment/web ScalingReplicaSet: Scaled down replica set web-aaa from 2 to 1
4m Deployment/web ScalingReplicaSet: Scaled up replica set web-bbb from 1 to 2
4m Pod/web-bbb-2 starts node=node-1
8m Deployment/web ScalingReplicaSet: Scaled down replica set web-aaa from 1 to 0`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, epoch := newDisks(), time.Now()
				w := startWatching(t, d, nil)
				w.tell(t, lines)
				for i := range 4 { // The second one reads a snapshot.
					time.Sleep(time.Until(epoch.Add(time.Duration(61+i) * time.Minute)))
					w.stop(t)
					if i == 0 {
						assert.NotEmpty(t, w.lines("k8s.change"))
					} else {
						assert.Empty(t, w.lines("k8s.change"), "after %d restarts", i)
					}
					w = startWatching(t, d, nil)
					w.consume(t, story.Records(fmt.Sprintf("0s Pod/other-aaa-1 !Odd event=%d: m", i))[0].Logs(time.Now()))
				}
				w.stop(t)
			})
		})
	}
}

// TestRestartsWhileThePipelineRejects: what was reported before is not reported again.
func TestRestartsWhileThePipelineRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisks()
		w := startWatching(t, d, nil)
		w.tell(t, `0s Deployment/web ScalingReplicaSet: Scaled up replica set web-bbb from 0 to 1
0s Pod/web-bbb-1 !Failed{app} x40/0s: Failed to pull image "shop:9": not found`)
		time.Sleep(time.Minute)
		w.stop(t)
		assert.Equal(t, []string{"happened: web-bbb was rolled out: shop:9"}, w.lines("k8s.change"))
		w = startWatching(t, d, nil)
		w.set(errors.New("busy"), false)
		time.Sleep(12 * time.Minute) // It is over.
		w.tell(t, "0s Pod/other-aaa-1 !Odd: m")
		time.Sleep(time.Minute)
		w.stop(t)
		w = startWatching(t, d, nil)
		time.Sleep(time.Minute)
		w.stop(t)
		assert.Equal(t, []string{"over: web-bbb was rolled out: shop:9: failed"}, w.lines("k8s.change"))
	})
}

// TestChangesInTheSameSecond are all told: a kubelet that starts again writes several Events about its node at once.
func TestChangesInTheSameSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatching(t, nil, nil)
		w.tell(t, `0s Node/node-1 !Rebooted: Node node-1 has been rebooted, boot id: 1
0s Node/node-1 NodeNotReady: Node node-1 status is now: NodeNotReady
0s Node/node-1 NodeNotReady reporter=node-controller event=again: Node node-1 status is now: NodeNotReady
20s Node/node-1 NodeReady: Node node-1 status is now: NodeReady`)
		time.Sleep(time.Minute)
		w.stop(t)
		assert.ElementsMatch(t, []string{
			"happened: node node-1 was rebooted", "happened: node node-1 became NotReady", "over: node node-1 became NotReady: over",
		}, w.lines("k8s.change"))
	})
}

// TestACordonOfADay is over in the end, although the model has forgotten how it began.
func TestACordonOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatching(t, newDisks(), nil)
		lines := "0s Node/node-1 NodeNotSchedulable: Node node-1 status is now: NodeNotSchedulable\n0s Node/node-2 NodeNotSchedulable: Node node-2 status is now: NodeNotSchedulable\n"
		for i := range 48 {
			lines += fmt.Sprintf("%dm Pod/web-aaa-1 Pulled{app} event=%d: m\n", 30*i+1, i)
		}
		w.tell(t, lines+"24h Node/node-1 NodeSchedulable: Node node-1 status is now: NodeSchedulable")
		time.Sleep(time.Hour)
		w.stop(t)
		assert.ElementsMatch(t, []string{"happened: node node-1 was cordoned", "happened: node node-2 was cordoned", "over: node node-1 was cordoned: over"}, w.lines("k8s.change"))
	})
}

// TestAStartReadsLittle: 41 MB of entries become a few hundred kilobytes, and are replaced by a snapshot nevertheless.
func TestAStartReadsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		for second := range 25 {
			for event := range 1000 {
				fmt.Fprintf(&lines, "%ds Pod/web-aaa-%d !Failed{app} event=%d: %s\n", second, event, event, strings.Repeat("the same ", 80))
			}
		}
		w := startWatching(t, newDisks(), nil)
		w.tell(t, lines.String())
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		assert.LessOrEqual(t, w.all[1].(*output).tracker.watch.store.appended, 16<<20)
		w.stop(t)
	})
}

// TestWhatAPageCanUse: the model, and after a restart what was before, with changes.
func TestWhatAPageCanUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, status := newDisks(), statusextension.New()
		in, out := pipeline.NewID(pipeline.SignalLogs), pipeline.NewID(pipeline.SignalMetrics)
		for _, one := range []*componentstatus.InstanceID{
			componentstatus.NewInstanceID(component.MustNewID("kube_events"), component.KindReceiver, in),
			componentstatus.NewInstanceID(component.MustNewID("event_page"), component.KindExporter, in),
			componentstatus.NewInstanceID(component.NewID(metadata.Type), component.KindConnector, in, out),
		} {
			status.ComponentStatusChanged(one, componentstatus.NewEvent(componentstatus.StatusOK))
		}
		extensions, began := host{component.MustNewID("kube_events_status"): status}, time.Now()
		w := startIn(t, extensions, d, nil)
		w.tell(t, "0s Pod/web-aaa-1 !FailedScheduling: no room\n95s Pod/web-aaa-1 Scheduled: Successfully assigned shop/web-aaa-1 to node-1\n"+
			"200s Deployment/cart ScalingReplicaSet: Scaled up replica set cart-aaa from 1 to 3")
		time.Sleep(time.Minute)
		w.stop(t)

		w = startIn(t, extensions, d, nil)
		require.NoError(t, status.Ready())
		known := status.IncidentsFor(component.MustNewID("event_page"))
		require.NotNil(t, known)
		problems, changes, facts := known.Problems(began), known.Changes(began), 0
		require.Len(t, problems, 1)
		assert.Equal(t, "schedule", problems[0].Class)
		require.Len(t, changes, 1)
		assert.Equal(t, "cart was scaled from 1 to 3", changes[0].Text)
		for range known.Live().Facts {
			facts++
		}
		assert.Equal(t, 3, facts)
		open, previous := known.Known([]string{problems[0].Series})
		assert.Nil(t, open)
		assert.Len(t, previous, 1)
		w.stop(t)
	})
}
