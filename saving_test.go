// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/kubeevents/kubeeventsreceiver/internal/apitest"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
)

// disk is a storage extension whose content outlives the receivers that use it.
type disk struct {
	component.StartFunc
	component.ShutdownFunc

	mu     sync.Mutex
	values map[string][]byte
	fail   error
}

func newDisk() *disk { return &disk{values: map[string][]byte{}} }

func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}

func (d *disk) Get(_ context.Context, key string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return bytes.Clone(d.values[key]), d.fail
}

func (d *disk) Set(ctx context.Context, key string, value []byte) error {
	return d.Batch(ctx, storage.SetOperation(key, value))
}

func (d *disk) Delete(ctx context.Context, key string) error {
	return d.Batch(ctx, storage.DeleteOperation(key))
}

func (d *disk) Batch(_ context.Context, operations ...*storage.Operation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return d.fail
	}
	for _, op := range operations {
		switch op.Type {
		case storage.Set:
			d.values[op.Key] = bytes.Clone(op.Value)
		case storage.Delete:
			delete(d.values, op.Key)
		case storage.Get:
			op.Value = bytes.Clone(d.values[op.Key])
		}
	}
	return nil
}

func (d *disk) Close(context.Context) error { return nil }

func (d *disk) failWith(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

// copied is the content at this moment, as a crash would leave it.
func (d *disk) copied() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &disk{values: maps.Clone(d.values)}
}

func (d *disk) saved() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.values) > 0
}

// hostWith is a host with one extension, called "disk", which collects the component's status.
type hostWith struct {
	extension component.Component
	mu        sync.Mutex
	statuses  []componentstatus.Status
}

func (h *hostWith) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("disk"): h.extension}
}

func (h *hostWith) Report(event *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.statuses = append(h.statuses, event.Status())
}

func (h *hostWith) last() componentstatus.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.statuses) == 0 {
		return componentstatus.StatusNone
	}
	return h.statuses[len(h.statuses)-1]
}

// process is one life of a receiver with storage.
type process struct {
	logs    *consumertest.LogsSink
	metrics *consumertest.MetricsSink
	host    *hostWith
	log     *observer.ObservedLogs
	stop    func()
}

func launch(t *testing.T, api *apitest.Server, on *disk, more string) *process {
	t.Helper()
	logs := &consumertest.LogsSink{}
	p := launchTo(t, api, on, more, logs)
	p.logs = logs
	return p
}

func launchTo(t *testing.T, api *apitest.Server, on *disk, more string, logs consumer.Logs) *process {
	t.Helper()
	p := &process{metrics: &consumertest.MetricsSink{}, host: &hostWith{extension: on}}
	cfg := configFor(t, api.URL, more)
	id := component.MustNewID("disk")
	cfg.Storage = &id
	cfg.CollectionInterval = 10 * time.Millisecond
	settings := receivertest.NewNopSettings(metadata.Type)
	core, log := observer.New(zap.InfoLevel)
	settings.Logger, p.log = zap.New(core), log
	p.stop = launchInto(t, cfg, settings, p.host, logs, p.metrics)
	return p
}

// sum is the newest value of the metric over all series.
func (p *process) sum() (total int64) {
	if all := p.metrics.AllMetrics(); len(all) > 0 {
		eachPoint(all[len(all)-1], func(dp pmetric.NumberDataPoint) { total += dp.IntValue() })
	}
	return total
}

func eachPoint(metrics pmetric.Metrics, do func(pmetric.NumberDataPoint)) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, dp := range rm.ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
			do(dp)
		}
	}
}

func (p *process) awaitSum(t *testing.T, want int64) {
	t.Helper()
	require.Eventually(t, func() bool { return p.sum() == want }, patience, 5*time.Millisecond, "it is %d", p.sum())
}

func TestARestartNeitherLosesNorRepeats(t *testing.T) {
	for name, gap := range map[string]func(*apitest.Server){
		"when the place to resume from is still kept": func(*apitest.Server) {},
		"when it is not": (*apitest.Server).Compact,
	} {
		t.Run(name, func(t *testing.T) {
			api, on := apitest.New(t), newDisk()
			api.Put(eventNamed("before", 7))
			first := launch(t, api, on, "start_at: end")
			require.Eventually(t, on.saved, patience, 5*time.Millisecond)
			api.Put(eventNamed("a", 2))
			awaitNames(t, first.logs, "a+2")
			first.stop()
			first.awaitSum(t, 2)
			start := first.metrics.AllMetrics()[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).StartTimestamp()

			api.Put(eventNamed("a", 5))
			api.Put(eventNamed("b", 1))
			gap(api)
			second := launch(t, api, on, "start_at: end")
			awaitNames(t, second.logs, "a+3", "b+1")
			second.awaitSum(t, 6)
			for _, metrics := range second.metrics.AllMetrics() {
				eachPoint(metrics, func(dp pmetric.NumberDataPoint) { assert.Equal(t, start, dp.StartTimestamp()) })
			}
			second.stop()

			third := launch(t, api, on, "start_at: end")
			third.awaitSum(t, 6)
			assert.Empty(t, names(third.logs.AllLogs()))
		})
	}
}

func TestAResumedWatchDoesNotList(t *testing.T) {
	api, on := apitest.New(t), newDisk()
	first := launch(t, api, on, "")
	require.Eventually(t, on.saved, patience, 5*time.Millisecond)
	first.stop()
	second := launch(t, api, on, "")
	api.Put(eventNamed("a", 1))
	awaitNames(t, second.logs, "a+1")
	assert.Equal(t, []string{"stream", "watch"}, api.Requests())
}

// uids are the records' log.record.uid.
func (p *process) uids() (found []string) {
	for _, record := range recordsOf(p.logs) {
		found = append(found, uidOf(record))
	}
	return found
}

func recordsOf(pipeline *consumertest.LogsSink) (found []plog.LogRecord) {
	for _, logs := range pipeline.AllLogs() {
		for _, rl := range logs.ResourceLogs().All() {
			for _, record := range rl.ScopeLogs().At(0).LogRecords().All() {
				found = append(found, record)
			}
		}
	}
	return found
}

func uidOf(record plog.LogRecord) string {
	uid, _ := record.Attributes().Get("log.record.uid")
	return uid.Str()
}

func TestACrashRepeatsOnlyWhatCanBeRecognised(t *testing.T) {
	api, on := apitest.New(t), newDisk()
	first := launch(t, api, on, "start_at: beginning")
	require.Eventually(t, on.saved, patience, 5*time.Millisecond)
	for i := range 40 {
		api.Put(eventNamed("a", int32(i+1)))
		time.Sleep(time.Millisecond)
	}
	require.Eventually(t, func() bool { return len(first.uids()) == 40 }, patience, time.Millisecond)
	crashed := on.copied()
	told := first.sum()

	second := launch(t, api, crashed, "start_at: beginning")
	api.Put(eventNamed("b", 1))
	require.Eventually(t, func() bool {
		uids := second.uids()
		return len(uids) > 0 && uids[len(uids)-1] != first.uids()[39]
	}, patience, time.Millisecond)
	for _, uid := range second.uids()[:len(second.uids())-1] {
		assert.Contains(t, first.uids(), uid)
	}
	second.awaitSum(t, 41)
	for _, metrics := range second.metrics.AllMetrics() {
		total := int64(0)
		eachPoint(metrics, func(dp pmetric.NumberDataPoint) { total += dp.IntValue() })
		assert.GreaterOrEqual(t, total, told, "what was told before the crash does not fall")
	}
}

// dying is a pipeline that takes a picture of the disk while it takes records, as a kill at that moment would leave it.
type dying struct {
	consumertest.LogsSink
	on   *disk
	left atomic.Pointer[disk]
}

func (d *dying) ConsumeLogs(ctx context.Context, logs plog.Logs) error {
	d.left.Store(d.on.copied())
	return d.LogsSink.ConsumeLogs(ctx, logs)
}

// occurrencesByUID is what a backend holds that drops records whose log.record.uid it has.
func occurrencesByUID(pipelines ...*consumertest.LogsSink) (total int64) {
	seen := map[string]bool{}
	for _, pipeline := range pipelines {
		for _, record := range recordsOf(pipeline) {
			if uid := uidOf(record); !seen[uid] {
				seen[uid] = true
				n, _ := record.Attributes().Get("k8s.event.occurrences")
				total += n.Int()
			}
		}
	}
	return total
}

func TestACrashWhileRecordsAreDeliveredRepeatsOnlyWhatCanBeRecognised(t *testing.T) {
	for _, more := range []string{"start_at: beginning", "{start_at: beginning, dedup_interval: 300ms}"} {
		t.Run(more, func(t *testing.T) {
			api, on := apitest.New(t), newDisk()
			api.Put(eventNamed("a", 1))
			pipeline := &dying{on: on}
			first := launchTo(t, api, on, more, pipeline)
			for i := range 20 {
				api.Put(eventNamed("a", int32(i+2)))
				time.Sleep(10 * time.Millisecond)
			}
			first.awaitSum(t, 21)
			require.Eventually(t, func() bool { return occurrencesByUID(&pipeline.LogsSink) == 21 }, patience, time.Millisecond)
			crashed := pipeline.left.Load()
			first.stop()
			api.Put(eventNamed("a", 30))
			api.Compact()
			second := launch(t, api, crashed, more)
			second.awaitSum(t, 30)
			second.stop()
			assert.Equal(t, int64(30), occurrencesByUID(&pipeline.LogsSink, second.logs))
		})
	}
}

func TestWhatAWindowHeldOutlivesACrash(t *testing.T) {
	api, on := apitest.New(t), newDisk()
	first := launch(t, api, on, "{start_at: beginning, dedup_interval: 2s}")
	api.Put(eventNamed("a", 1))
	awaitNames(t, first.logs, "a+1")
	api.Put(eventNamed("a", 4))
	first.awaitSum(t, 4)
	crashed := on.copied()
	second := launch(t, api, crashed, "{start_at: beginning, dedup_interval: 2s}")
	awaitNames(t, second.logs, "a+3")
}

func TestACheckpointThatCannotBeUsedIsSetAside(t *testing.T) {
	for name, damage := range map[string]func(*disk){
		"a flipped bit":       func(d *disk) { d.values["head"][5] ^= 1 },
		"cut short":           func(d *disk) { d.values["head"] = d.values["head"][:7] },
		"of another version":  func(d *disk) { d.values["head"][0] = 99 },
		"without its entries": func(d *disk) { maps.DeleteFunc(d.values, func(key string, _ []byte) bool { return key != "head" }) },
	} {
		t.Run(name, func(t *testing.T) {
			api, on := apitest.New(t), newDisk()
			api.Put(eventNamed("a", 3))
			first := launch(t, api, on, "start_at: beginning")
			awaitNames(t, first.logs, "a+3")
			first.stop()
			damage(on)
			second := launch(t, api, on, "start_at: beginning")
			awaitNames(t, second.logs, "a+3")
			assert.NotEmpty(t, second.log.FilterMessageSnippet("set aside").FilterLevelExact(zap.ErrorLevel).All())
			assert.Contains(t, on.copied().values, "set-aside")
			second.stop()
			third := launch(t, api, on, "start_at: beginning")
			third.awaitSum(t, 3)
			assert.Empty(t, names(third.logs.AllLogs()), "what was saved after it is used")
		})
	}
}

func TestAStorageThatFailsCostsNoEvent(t *testing.T) {
	api, on := apitest.New(t), newDisk()
	p := launch(t, api, on, "start_at: beginning")
	require.Eventually(t, on.saved, patience, 5*time.Millisecond)
	on.failWith(storage.ErrStorageFull)
	api.Put(eventNamed("a", 2))
	awaitNames(t, p.logs, "a+2")
	require.Eventually(t, func() bool { return p.host.last() == componentstatus.StatusRecoverableError }, patience, 5*time.Millisecond)
	p.awaitSum(t, 2)
	on.failWith(nil)
	require.Eventually(t, func() bool { return p.host.last() == componentstatus.StatusOK }, patience, 5*time.Millisecond)
	p.stop()
	again := launch(t, api, on, "start_at: beginning")
	again.awaitSum(t, 2)
	assert.Empty(t, names(again.logs.AllLogs()), "it picked up again")
}

func TestAStorageThatCannotBeReadIsGoneWithout(t *testing.T) {
	api, on := apitest.New(t), newDisk()
	on.failWith(errors.New("input/output error"))
	api.Put(eventNamed("a", 2))
	p := launch(t, api, on, "start_at: beginning")
	awaitNames(t, p.logs, "a+2")
	assert.Equal(t, componentstatus.StatusRecoverableError, p.host.last())
	p.awaitSum(t, 2)
}

func TestStorageThatIsNotThere(t *testing.T) {
	api := apitest.New(t)
	for name, tt := range map[string]struct {
		id, want string
		on       component.Component
	}{
		"a missing extension": {"gone", `storage: "gone" is not among the extensions that run; add it`, newDisk()},
		"not a storage":       {"disk", `storage: "disk" is no storage extension`, &noStorage{}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := configFor(t, api.URL, "")
			id := component.MustNewID(tt.id)
			cfg.Storage = &id
			r, err := NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
			require.NoError(t, err)
			require.ErrorContains(t, r.Start(t.Context(), &hostWith{extension: tt.on}), tt.want)
			require.NoError(t, r.Shutdown(t.Context()))
		})
	}
}

type noStorage struct {
	component.StartFunc
	component.ShutdownFunc
}

func TestStartAtHasItsSayOnce(t *testing.T) {
	api, on := apitest.New(t), newDisk()
	api.Refuse(func(*http.Request) int { return http.StatusForbidden })
	first := launch(t, api, on, "start_at: end")
	first.stop()
	api.Refuse(nil)
	api.Put(eventNamed("existing", 1))
	second := launch(t, api, on, "start_at: end")
	require.Eventually(t, on.saved, patience, 5*time.Millisecond)
	second.stop()
	assert.Empty(t, names(second.logs.AllLogs()), "the first listing was not complete before")
	for i := range 3 {
		api.Put(eventNamed(fmt.Sprint("new", i), 1))
	}
	api.Compact()
	third := launch(t, api, on, "start_at: end")
	awaitNames(t, third.logs, "new0+1", "new1+1", "new2+1")
}
