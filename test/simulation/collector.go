// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver"
	"github.com/kubeevents/kubeeventsreceiver/internal/health"
	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

// start starts the replica's next process, unless one runs.
func (r *replica) start() {
	if r.running() == nil {
		r.startNext()
	}
}

// startNext starts the replica's next process, whether or not the one before has ended.
func (r *replica) startNext() {
	p := r.next()
	defer close(p.launched)
	if err := p.launch(); err != nil {
		r.env.violate(neverSilent, "", "%s does not start: %v", p.name, err)
	}
}

// next makes the replica's next process.
func (r *replica) next() *process {
	r.mu.Lock()
	r.count++
	p := &process{
		replica: r, number: r.count, name: fmt.Sprintf("replica-%d/%d", r.index, r.count),
		started: time.Now(), ended: make(chan struct{}),
		lists: map[string]lists{}, held: map[string]int{}, requests: map[int]requests{},
		dealtWith: map[string]settledRecord{}, detailReads: map[apiserver.Request]time.Time{}, launched: make(chan struct{}),
	}
	p.extend()
	r.current = p
	r.mu.Unlock()
	r.env.addProcess(p)
	p.note("starts")
	return p
}

// extend gives the process its hosts, and the extensions that the plan configures.
func (p *process) extend() {
	plan, extensions := &p.replica.env.plan, map[component.ID]component.Component{}
	if plan.Storage {
		p.storage = &storageExtension{process: p, tries: map[string]time.Time{}}
		extensions[storageID] = p.storage
	}
	if plan.Elector {
		p.elector = newElector(p, plan.Lease)
		extensions[electorID] = p.elector
	}
	p.hosts = []*host{{process: p, extensions: extensions}}
	if plan.Signals == BothSignals {
		p.hosts = append(p.hosts, &host{process: p, extensions: extensions})
	}
}

// launch starts what the Collector starts: extensions, then the receiver in its pipelines.
func (p *process) launch() error {
	if p.elector != nil {
		client := &rest.Config{Host: "http://api", Dial: p.dial, QPS: -1}
		if err := p.elector.start(client); err != nil {
			return err
		}
		p.elector.SetCallBackFuncs(func(context.Context) {}, p.stopSlowly)
		time.Sleep(p.replica.env.plan.SlowStart)
	}
	config, err := p.config()
	if err != nil {
		return err
	}
	if err := p.create(config); err != nil {
		return err
	}
	for i, c := range p.receiver {
		if err := c.Start(context.Background(), p.hosts[i]); err != nil {
			return err
		}
	}
	return nil
}

// stopSlowly is what another component does at the end of a term. At the end of the process, it has
// stopped before the elector does.
func (p *process) stopSlowly() {
	if !p.ending.Load() {
		time.Sleep(p.replica.env.plan.SlowStop)
	}
}

func (p *process) create(config component.Config) error {
	factory := kubeeventsreceiver.NewFactory()
	settings := receivertest.NewNopSettings(factory.Type())
	settings.ID = component.NewID(factory.Type()) // The progress of the leader is named after it.
	settings.Logger = zap.New(storyCore{p})
	pipelines := &logsPipelines{process: p}
	for _, e := range p.replica.env.exporters {
		pipelines.branches = append(pipelines.branches, &branch{exporter: e, process: p})
	}
	ctx := context.Background()
	if signals := p.replica.env.plan.Signals; signals != OnlyMetrics {
		logs, err := factory.CreateLogs(ctx, settings, config, pipelines)
		p.receiver = append(p.receiver, logs)
		if err != nil || signals == OnlyLogs {
			return err
		}
	}
	metrics, err := factory.CreateMetrics(ctx, settings, config, &metricsPipeline{process: p})
	p.receiver = append(p.receiver, metrics)
	return err
}

var (
	storageID = component.MustNewID("file_storage_of_all")
	electorID = component.MustNewID("k8s_leader_elector")
)

// config is what the user wrote, as YAML has it: the receiver's own types may change.
func (p *process) config() (component.Config, error) {
	env := p.replica.env
	written := env.plan.settings()
	written["auth_type"] = "none"
	config := kubeeventsreceiver.NewFactory().CreateDefaultConfig().(*kubeeventsreceiver.Config)
	if err := confmap.NewFromStringMap(written).Unmarshal(config); err != nil {
		return nil, err
	}
	config.Dial = p.dial
	return config, config.Validate()
}

// settings returns the receiver's settings, without those that differ by replica.
func (p *Plan) settings() map[string]any {
	c := &p.Configured
	set := map[string]any{
		"start_at": "end", dedupKey: c.Dedup.String(), "collection_interval": c.Collection.String(),
		"namespaces": c.Watched, "event_types": c.Types, "exclude_namespaces": c.ExcludeSpaces,
		"include_reasons": c.IncludeReasons, "exclude_reasons": c.ExcludeReasons,
		"retry_on_failure": c.Retry.settings(), "kube_api_qps": c.QPS, "owners": map[string]any{
			"enabled": !c.NoOwners, "max_depth": c.MaxDepth,
			"cache_size": c.CacheSize, "cache_ttl": c.CacheTTL.String(),
		},
		"series": map[string]any{"max": c.MaxSeries, "ttl": max(c.SeriesTTL, c.Collection).String(), "initial_zero": !c.NoZero},
	}
	if c.NoDetails {
		set["details"] = map[string]any{"enabled": false}
	}
	if c.FromBeginning {
		set["start_at"] = "beginning"
	}
	if p.Storage {
		set["storage"] = storageID.String()
	}
	if p.Elector {
		set["k8s_leader_elector"] = electorID.String()
		set["progress_config_map"] = leaseNamespace + "/progress"
	}
	return set
}

// dedupKey is the key of the setting.
const dedupKey = "dedup_interval"

// die ends the process's Collector as kill -9 does: what it still does reaches nothing.
func (p *process) die(how string) {
	if p.dead.Swap(true) {
		return
	}
	p.replica.env.story.note(p.name, "is killed %s", how)
	p.leave()
	if !p.ending.Swap(true) {
		go p.end()
	}
}

// leave makes room for the replica's next process.
func (p *process) leave() {
	p.mu.Lock()
	p.died = time.Now()
	p.mu.Unlock()
	p.replica.mu.Lock()
	if p.replica.current == p {
		p.replica.current = nil
	}
	p.replica.mu.Unlock()
	p.cut()
}

// end shuts down the receiver, and then the extensions.
func (p *process) end() {
	defer close(p.ended)
	<-p.launched
	p.shutDown()
	if p.elector != nil {
		_ = p.elector.Shutdown(context.Background())
	}
}

const (
	// shutdownPromptly is how long a shutdown may take: the receiver's grace, and a little.
	shutdownPromptly = 15 * time.Second
	// shutdownTimeout is how long the Collector waits; the receiver's own grace is shorter.
	shutdownTimeout = 40 * time.Second
)

func (p *process) shutDown() {
	began, env := time.Now(), p.replica.env
	if !p.isDead() {
		p.mu.Lock()
		p.stopped = began
		p.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	var errs error
	for _, c := range p.receiver {
		errs = errors.Join(errs, c.Shutdown(ctx))
	}
	if p.isDead() || env.disturbed(began, time.Now(), func(f *Fault) bool { return f.Deaf }) {
		return
	}
	if p.storage != nil && !p.storage.closed.Load() {
		env.violate(shutsDown, "", "%s has not closed the storage", p.name)
	}
	if took := time.Since(began); errs != nil || took > shutdownPromptly {
		env.violate(shutsDown, "", "%s took %v to shut down: %v", p.name, took, errs)
	}
}

// stop ends the process's Collector in an orderly way.
func (p *process) stop() {
	if p.ending.Swap(true) {
		<-p.ended
		return
	}
	p.note("is shut down")
	p.end()
	if p.isDead() {
		return
	}
	p.note("has ended")
	p.dead.Store(true)
	p.leave()
}

// host is the Collector as the receiver sees it.
type host struct {
	process    *process
	extensions map[component.ID]component.Component

	mu     sync.Mutex // guards what follows
	status componentstatus.Status
	failed time.Time // when the status was an error last
}

func (h *host) GetExtensions() map[component.ID]component.Component { return h.extensions }

// Report implements componentstatus.Reporter.
func (h *host) Report(e *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.status != e.Status() {
		h.process.note("reports status %v: %v", e.Status(), e.Err())
	}
	if h.status == componentstatus.StatusRecoverableError {
		h.failed = time.Now()
	}
	h.status = e.Status()
	if isStarting(e.Err()) {
		h.status = componentstatus.StatusStarting // This excuses nothing.
	}
}

// isStarting reports whether a receiver only waits for the first answer of the API server.
func isStarting(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return !isStarting(err) })
	}
	return errors.Is(err, health.ErrNoAnswer)
}

// failing reports whether the component's status is an error, or was one for that long ago.
func (h *host) failing(lately time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status == componentstatus.StatusRecoverableError || time.Since(h.failed) < lately
}

// storyCore writes the receiver's log into the story.
type storyCore struct{ process *process }

func (c storyCore) Enabled(zapcore.Level) bool        { return true }
func (c storyCore) With([]zapcore.Field) zapcore.Core { return c }
func (c storyCore) Sync() error                       { return nil }
func (c storyCore) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return to.AddCore(e, c)
}

func (c storyCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	encoder := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(encoder)
	}
	c.process.note("logs %s: %s %v", e.Level, e.Message, encoder.Fields)
	return nil
}
