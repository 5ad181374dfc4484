// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver"
	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/simulation/apiserver"
)

// replica is one of several Collectors: a place in which processes run one after the other.
type replica struct {
	env   *environment
	index int
	host  string // in the kubeconfig

	mu      sync.Mutex // guards current and count
	current *process   // nil: none runs
	count   int
}

// running returns the process that runs, or nil.
func (r *replica) running() *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// process is a Collector with the receiver, from its start to its end. After its death nothing of
// it reaches the environment any more.
type process struct {
	replica  *replica
	number   int // of the replica's processes, from 1
	name     string
	started  time.Time
	receiver []component.Component
	elector  *elector          // nil: none
	storage  *storageExtension // nil: none
	hosts    []*host           // one for each pipeline's instance of the receiver
	dead     atomic.Bool
	ending   atomic.Bool   // its shutdown has begun
	launched chan struct{} // closed when it has started, or failed to
	ended    chan struct{} // closed when what is left of it has ended

	mu          sync.Mutex // guards what follows
	connections map[*clientEnd]bool
	kill        *Fault // that is armed; nil: none
	calls       int    // at the seam of kill
	died        time.Time
	stopped     time.Time        // when its orderly end began; zero: it had none
	observes    time.Time        // when its first list began; zero: it has not listed
	lists       map[string]lists // by the stream's namespace
	held        map[string]int   // bytes of events read and not yet offered, by log.record.uid
	terms       []term
	saves       []save
	// dealtWith has the log.record.uids that every exporter accepted or rejected permanently, with
	// how often the versions had gone back when they were observed.
	dealtWith  map[string]int
	requests   map[int]requests // by the minute
	most, size int              // bytes: the most ever in held, and now
	mostEvents int              // ever in held

	read int // objects that they got
}

// failing returns how many of the receiver's instances report an error now, or did a moment ago.
func (p *process) failing(lately time.Duration) (n int) {
	for _, h := range p.hosts {
		if h.failing(lately) {
			n++
		}
	}
	return n
}

// term is a time for which a process leads, as its elector reports it.
type term struct {
	began, ended time.Time // ended is zero as long as it lasts
	orderly      bool      // the process ended it by its shutdown
}

// leads notes that a term of leading begins or ends.
func (p *process) leads(leads bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if leads {
		p.terms = append(p.terms, term{began: now})
		return
	}
	p.endTerm(now, p.ending.Load() && !p.isDead())
}

// endTerm ends a term that lasts. A process that died led until then.
func (p *process) endTerm(at time.Time, orderly bool) {
	if n := len(p.terms); n > 0 && p.terms[n-1].ended.IsZero() {
		if p.isDead() && !p.died.IsZero() {
			at = p.died
		}
		p.terms[n-1].ended, p.terms[n-1].orderly = at, orderly
	}
}

// allTerms returns the terms of the process so far.
func (p *process) allTerms() []term {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isDead() && !p.died.IsZero() {
		p.endTerm(p.died, false)
	}
	return slices.Clone(p.terms)
}

// termAt returns when the term began in which the process is at a time, or was last; zero: it has
// not led until then.
func (p *process) termAt(t time.Time) (began time.Time) {
	for _, term := range p.allTerms() {
		if !term.began.After(t) {
			began = term.began.Truncate(time.Millisecond)
		}
	}
	return began
}

// lists are a stream's first listings.
type lists struct {
	begun, complete listing
	// relisted is when it listed other than at the version that the leader had published, or listed
	// again: what is new in such a list may be several states of an event at once.
	relisted time.Time
}

// listing is a version of a list. The API server's versions may go back: epoch counts how often.
type listing struct {
	epoch   int
	version int64
}

// start starts the replica's next process, unless one runs.
func (r *replica) start() {
	r.mu.Lock()
	if r.current != nil {
		r.mu.Unlock()
		return
	}
	r.count++
	p := &process{
		replica: r, number: r.count, name: fmt.Sprintf("replica-%d/%d", r.index, r.count),
		started: time.Now(), ended: make(chan struct{}), connections: map[*clientEnd]bool{},
		lists: map[string]lists{}, held: map[string]int{}, requests: map[int]requests{},
		dealtWith: map[string]int{}, launched: make(chan struct{}),
	}
	p.extend()
	r.current = p
	r.mu.Unlock()
	r.env.addProcess(p)
	p.note("starts")
	defer close(p.launched)
	if err := p.launch(); err != nil {
		r.env.violate(neverSilent, "", "%s does not start: %v", p.name, err)
	}
}

// extend gives the process its hosts, and the extensions that the plan configures.
func (p *process) extend() {
	plan, extensions := &p.replica.env.plan, map[component.ID]component.Component{}
	if plan.Storage {
		p.storage = &storageExtension{process: p}
		extensions[storageID] = p.storage
	}
	if plan.Elector {
		p.elector = newElector(p, plan.Lease)
		extensions[electorID] = p.elector
	}
	p.hosts = []*host{{process: p, extensions: extensions}, {process: p, extensions: extensions}}
}

// launch starts what the Collector starts: extensions, then the receiver in both pipelines.
func (p *process) launch() error {
	if p.elector != nil {
		client := &rest.Config{Host: "http://" + p.replica.host, Dial: dialReplica, QPS: -1}
		if err := p.elector.start(client, p.name); err != nil {
			return err
		}
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

func (p *process) create(config component.Config) error {
	factory := kubeeventsreceiver.NewFactory()
	settings := receivertest.NewNopSettings(factory.Type())
	settings.ID = component.NewID(factory.Type()) // The position of the leader is named after it.
	settings.Logger = zap.New(storyCore{p})
	pipelines := &logsPipelines{process: p}
	for _, e := range p.replica.env.exporters {
		pipelines.branches = append(pipelines.branches, &branch{exporter: e, process: p})
	}
	ctx := context.Background()
	logs, err := factory.CreateLogs(ctx, settings, config, pipelines)
	if err != nil {
		return err
	}
	metrics, err := factory.CreateMetrics(ctx, settings, config, &metricsPipeline{process: p})
	p.receiver = []component.Component{logs, metrics}
	return err
}

var (
	storageID = component.MustNewID("file_storage_of_all")
	electorID = component.MustNewID("k8s_leader_elector")
)

// config is what the user wrote, as YAML has it: the receiver's own types may change.
func (p *process) config() (component.Config, error) {
	r := p.replica
	written := r.env.plan.settings()
	written["auth_type"], written["context"] = "kubeConfig", r.host
	if more := r.env.scenario.Settings; more != nil {
		maps.Copy(written, more(p.number))
	}
	config := kubeeventsreceiver.NewFactory().CreateDefaultConfig()
	if err := confmap.NewFromStringMap(written).Unmarshal(config); err != nil {
		return nil, err
	}
	return config, config.(*kubeeventsreceiver.Config).Validate()
}

// settings returns the receiver's settings, without those that differ by replica.
func (p *Plan) settings() map[string]any {
	set := map[string]any{
		"start_at": "end", dedupKey: p.Dedup.String(), "collection_interval": p.Collection.String(),
		"namespaces": p.Watched, "event_types": p.Types, "exclude_namespaces": p.ExcludeSpaces,
		"include_reasons": p.IncludeReasons, "exclude_reasons": p.ExcludeReasons,
		"extract": p.extract(), "kube_api_qps": p.QPS, "owners": map[string]any{
			"enabled": !p.NoOwners, "max_depth": p.MaxDepth,
			"cache_size": p.CacheSize, "cache_ttl": p.CacheTTL.String(),
		},
		"metrics": map[string]any{"max_series": p.MaxSeries, "series_ttl": p.SeriesTTL.String(), "initial_zero": !p.NoZero},
	}
	if p.FromBeginning {
		set["start_at"] = "beginning"
	}
	if p.Storage {
		set["storage"] = storageID.String()
	}
	if p.Elector {
		set["k8s_leader_elector"] = electorID.String()
	}
	return set
}

// dedupKey is the key of the setting.
const dedupKey = "dedup_interval"

// note adds a line to the story, unless the process is dead and only its remains act.
func (p *process) note(format string, args ...any) {
	if !p.isDead() {
		p.replica.env.story.note(p.name, format, args...)
	}
}

func (p *process) isDead() bool { return p.dead.Load() }

// die ends the process as kill -9 does: what it still does reaches nothing.
func (p *process) die(how string) {
	if p.dead.Swap(true) {
		return
	}
	p.replica.env.story.note(p.name, "is killed %s", how)
	p.leave()
	if !p.ending.Swap(true) {
		go func() { _ = p.end() }()
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

// end shuts down the receiver and then the extensions, as the Collector does.
func (p *process) end() (err error) {
	defer close(p.ended)
	<-p.launched
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	for _, c := range p.receiver {
		if e := c.Shutdown(ctx); e != nil {
			err = e
		}
	}
	if p.elector != nil {
		_ = p.elector.Shutdown(ctx)
	}
	return err
}

// shutdownPromptly is how long a shutdown may take: the receiver's grace, and a little.
const shutdownPromptly = 15 * time.Second

// shutdownTimeout is how long the receiver may take to shut down; its own grace is shorter.
const shutdownTimeout = 40 * time.Second

// stop ends the process in an orderly way.
func (p *process) stop() {
	if p.ending.Swap(true) {
		<-p.ended
		return
	}
	p.note("is shut down")
	began := time.Now()
	p.mu.Lock()
	p.stopped = began
	p.mu.Unlock()
	err := p.end()
	if p.isDead() {
		return
	}
	p.note("has ended")
	p.dead.Store(true)
	p.leave()
	if p.storage != nil && !p.storage.closed.Load() {
		p.replica.env.violate(shutsDown, "", "%s has not closed the storage", p.name)
	}
	if took := time.Since(began); err != nil || took > shutdownPromptly {
		p.replica.env.violate(shutsDown, "", "%s took %v to shut down: %v", p.name, took, err)
	}
}

func (p *process) connected(c *clientEnd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connections[c] = true
}

func (p *process) disconnected(c *clientEnd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.connections, c)
}

// cut breaks all connections of the process.
func (p *process) cut() {
	p.mu.Lock()
	var open []*clientEnd
	for c := range p.connections {
		open = append(open, c)
	}
	p.mu.Unlock()
	for _, c := range open {
		_ = c.Conn.Close()
	}
}

// killConnections lets the open connections die without a sign.
func (p *process) killConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.connections {
		c.dead.Store(true)
	}
}

// arm lets the process be killed at a seam.
func (p *process) arm(f *Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kill, p.calls = f, 0
}

// reaches counts a call at a seam, and reports whether it is the one to be killed at.
func (p *process) reaches(seam Seam) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kill == nil || p.kill.Seam != seam {
		return false
	}
	p.calls++
	return p.calls == p.kill.Nth+1
}

// hit returns the fault of the kind that a call meets, or nil.
func (p *process) hit(kind FaultKind, actor string, number, exporter int) *Fault {
	f := p.replica.env.fault(p.replica.index, kind)
	if f == nil || kind.isOfPipelines() && f.Exporter != exporter {
		return nil
	}
	r := draw(p.replica.env.plan.Seed, p.name+actor+string(kind), number)
	if f.OneIn > 1 && !chance(r, f.OneIn) {
		return nil
	}
	return f
}

// listed notes the versions of the process's first lists.
func (p *process) listed(list apiserver.List) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stream, complete, now := list.Namespace, list.Complete, time.Now()
	at := listing{p.replica.env.restoredInList(stream, now, complete), list.Version}
	if p.observes.IsZero() {
		p.observes = time.Now()
	}
	l := p.lists[stream]
	if l.relisted.IsZero() && (l.complete.version > 0 || !list.Exact && p.number > 1) {
		l.relisted = now
	}
	if l.begun.version == 0 {
		l.begun = at
	}
	// One that follows may be needed because the end of the first was lost with its connection.
	lost := p.replica.env.disturbed(p.observes, p.observes.Add(time.Second), func(f *Fault) bool {
		return f.is(Stalled, ConnectionsDie)
	})
	again := at.epoch == l.begun.epoch && (lost || time.Since(p.observes) < time.Minute)
	if complete && (l.complete.version == 0 || again) {
		l.complete = at
	}
	p.lists[stream] = l
}

// requests counts what a process asked for within a minute.
type requests struct {
	events    int            // lists and watches
	versions  int            // lists of a single event, which ask for the store's version
	positions int            // reads and writes of the leader's position
	documents int            // of discovery
	objects   map[string]int // by resource
}

// requested counts a request.
func (p *process) requested(request apiserver.Request, now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	minute := int(now / time.Minute)
	n := p.requests[minute]
	switch {
	case request.Resource == events && request.Single:
		n.versions++
	case request.Resource == events:
		n.events++
	case isOfPosition(request):
		n.positions++
	case request.Verb == "discover":
		n.documents++
	case request.Resource != leases:
		if n.objects == nil {
			n.objects = map[string]int{}
		}
		n.objects[request.Resource.Resource]++
	}
	p.requests[minute] = n
}

// lookups returns how often the process asked for objects. Callers must hold mu.
func (p *process) lookups() (n int) {
	for _, of := range p.requests {
		for _, requests := range of.objects {
			n += requests
		}
	}
	return n
}

// got notes that the API server answers a request for objects.
func (p *process) got(objects int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read += objects
}

// sent notes that the API server sent the process an event.
func (p *process) sent(ev *corev1.Event, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	uid := recordUID(ev)
	p.size += size - p.held[uid]
	p.held[uid] = size
	p.most, p.mostEvents = max(p.most, p.size), max(p.mostEvents, len(p.held))
}

// release notes that a record is no longer only in the process's memory.
func (p *process) release(uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size -= p.held[uid]
	delete(p.held, uid)
}

func recordUID(ev *corev1.Event) string { return fmt.Sprintf("%s-%d", ev.UID, event.Count(ev)) }

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

// counter numbers calls.
type counter struct{ n atomic.Int64 }

func (c *counter) next() int { return int(c.n.Add(1)) }
