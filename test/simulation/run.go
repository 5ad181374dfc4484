// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
)

// environment is everything around the receivers of one run.
type environment struct {
	plan     Plan
	scenario Scenario
	began    time.Time
	server   *apiserver.Server
	listener *listener
	story    *story

	storage   *storageContent
	exporters []*exporter
	replicas  []*replica
	apps      []*app
	producers []*producer

	mu         sync.Mutex // guards what follows
	processes  []*process // all there were, in the order of their starts
	metrics    []metricsDelivery
	offered    map[string]bool // log.record.uid of what any process offered to its pipelines
	violations []Violation
	restores   []*restore
	allowed    map[string]allowed // what may be said, by log.record.uid
	said       map[string]int     // how many records say something
}

// Outcome is what a run found. It is passed between processes as JSON.
type Outcome struct {
	Plan       Plan `json:"-"`
	Violations []Violation
	Story      []Line
	Digest     string         // of the story
	Records    string         // a digest of what the exporters have, without times and order
	Said       map[string]int // how many records have which details
	Attributes []string       // of each record of a plan with details alone, apart from their resolution
}

// Print writes the environment, the violations, and the story of the first violation's event.
func (o *Outcome) Print(w io.Writer) {
	plan, _ := json.Marshal(o.Plan)
	fmt.Fprintf(w, "seed %d: %s\n", o.Plan.Seed, plan)
	about, explained := "", map[*Promise]bool{}
	for _, v := range o.Violations {
		if !explained[v.Promise] {
			fmt.Fprintf(w, "  broken: %s (%s)\n", v.Promise.Name, v.Promise.Meaning)
		}
		explained[v.Promise] = true
		fmt.Fprintf(w, "    %s\n", v.Text)
		about = cmp.Or(about, v.Event)
	}
	if len(o.Violations) == 0 {
		fmt.Fprintf(w, "  kept all promises\n")
	}
	write(w, o.Story, about)
}

// Scenario acts in a run beyond its plan, in a goroutine of its own, from the start; nil: it does nothing.
type Scenario func(*environment)

// Run runs the plan in a bubble of its own, in which time passes when nothing is left to do. One
// plan may run at a time. The environment must have Address.
func Run(t *testing.T, plan Plan, scenario Scenario) (outcome *Outcome) {
	synctest.Test(t, func(*testing.T) {
		for range mix(plan.Seed) % mostDraws {
			_ = rand.Uint64()
		}
		e := newEnvironment(plan, scenario)
		e.run()
		outcome = &Outcome{
			Plan: plan, Violations: e.violations, Story: e.story.told(), Records: e.digestOfRecords(),
			Said: e.said, Attributes: e.attributes(),
		}
	})
	return outcome
}

// mostDraws is how many random numbers a run leaves out at most: each bubble of runtimeoverlay begins
// with the same ones.
const mostDraws = 1 << 16

const (
	clusterUID    = "cluster-1"
	newClusterUID = "cluster-2"
)

func newEnvironment(plan Plan, scenario Scenario) *environment {
	e := &environment{
		plan: plan, scenario: scenario, began: time.Now(), listener: newListener(),
	}
	e.story = &story{began: e.began}
	e.server = apiserver.New(apiserver.Options{
		ClusterUID: clusterUID, EventTTL: plan.EventTTL, CompactAfter: plan.CompactAfter,
		CacheLag: plan.CacheLag, Decide: e.decide, Listed: e.listed, Sent: e.sent, Served: e.served,
		EventBookmarks: plan.EventBookmarks, OldDiscovery: plan.OldServer,
	})
	e.server.AddKind(rollouts)
	if len(plan.Detailed) > 0 {
		e.server.AddKind(controllerRevisions)
	}
	for i, a := range plan.Apps {
		e.apps = append(e.apps, newApp(a, plan.appName(i)))
	}
	e.addReplicas()
	return e
}

// addReplicas adds what the receivers write to, and the places where they run.
func (e *environment) addReplicas() {
	e.allowed = map[string]allowed{}
	e.offered, e.storage = map[string]bool{}, &storageContent{values: map[string][]byte{}}
	for i := range e.plan.Exporters {
		e.exporters = append(e.exporters, &exporter{env: e, number: i})
	}
	for i := range e.plan.Replicas {
		e.replicas = append(e.replicas, &replica{env: e, index: i})
	}
}

// run performs the plan, lets everything settle, and checks the promises.
func (e *environment) run() {
	for i, a := range e.apps {
		if i%2 == 0 { // The owners of the others come with their first pod.
			for _, o := range a.objects {
				o.create(e.server)
			}
		}
	}
	e.createExisting()
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { e.server.Run(ctx) })
	server := &http.Server{ //nolint:gosec // Its clients are simulated: no slow headers.
		Handler: e.server, ConnContext: apiserver.ConnContext, ErrorLog: log.New(io.Discard, "", 0),
	}
	work.Go(func() { _ = server.Serve(e.listener) })
	for _, r := range e.replicas {
		r.start()
		time.Sleep(startGap)
	}
	e.act()
	e.shutDown()
	settle()
	e.checkGoroutines(isOfReceiver) // Shutdown has returned: the receiver's own work has ended.
	cancel()
	_ = server.Close()
	work.Wait()
	settle()
	e.checkGoroutines(isOfRun)
	newTruth(e).addToStory()
	e.check()
}

// digestOfRecords is a digest of what each exporter has: without a crash, a refactoring leaves it as it is.
func (e *environment) digestOfRecords() string {
	var lines []string
	for i, exporter := range e.exporters {
		for _, r := range records(exporter.all()) {
			lines = append(lines, fmt.Sprintf("%d %q %d %q", i, r.uid, r.occurrences, r.log.Body().Str()))
		}
	}
	slices.Sort(lines)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(slices.Compact(lines), "\n"))))
}

// settle gives time to what only pauses, such as a connection between two reads. Time stands still
// when a bubble's main goroutine has ended.
func settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// eachObject calls do with the objects that exist from the start.
func (e *environment) eachObject(do func(*object)) {
	for _, a := range e.apps {
		for _, o := range a.objects {
			do(o)
		}
	}
}

func (e *environment) newProducer(plan ProducerPlan, number int) *producer {
	a := e.apps[plan.App]
	return &producer{
		plan: plan, seed: e.plan.Seed, number: number, app: a, subject: a.subject(plan.Pod),
		server: e.server,
	}
}

// act runs producers, faults and the scenario's own acts, until all of it has settled.
func (e *environment) act() {
	var acts sync.WaitGroup
	for i, plan := range e.plan.Producers {
		p := e.newProducer(plan, i)
		e.producers = append(e.producers, p)
		acts.Go(func() { p.run(e.began) })
	}
	for i := range e.plan.Detailed {
		acts.Go(newDetailed(e, i).run)
	}
	for i := range e.plan.Faults {
		acts.Go(func() { e.perform(&e.plan.Faults[i]) })
	}
	if e.plan.Relabel > 0 {
		acts.Go(e.relabel)
	}
	if e.scenario != nil {
		acts.Go(func() { e.scenario(e) })
	}
	ended := make(chan struct{})
	go func() {
		acts.Wait()
		time.Sleep(max(settling, time.Until(e.began.Add(e.plan.Active+settling))))
		close(ended)
	}()
	check := time.NewTicker(max(checkInterval, e.plan.Active/40))
	defer check.Stop()
	for {
		select {
		case <-check.C:
			e.checkSilence()
		case <-ended:
			e.checkRecovered()
			e.writeLast()
			return
		}
	}
}

// writeLast writes events that the receivers see just before they are shut down.
func (e *environment) writeLast() {
	if !e.plan.LastWrites {
		return
	}
	for i, plan := range e.plan.Producers[:min(5, len(e.plan.Producers))] {
		e.apps[plan.App].subject(plan.Pod).create(e.server)
		for range 2 { // With dedup_interval, the second is held back.
			e.producers[i].write(plan.Writes)
		}
	}
	time.Sleep(2500 * time.Millisecond) // A watch may have to be opened again.
}

// startGap is the time between the starts of two replicas, so that the first one leads.
const startGap = 300 * time.Millisecond

// relabel changes the labels of everything that existed from the start.
func (e *environment) relabel() {
	time.Sleep(time.Until(e.began.Add(e.plan.Relabel)))
	e.story.note("", "labels are changed")
	e.eachObject(func(o *object) { o.relabel(e.server) })
}

// checkInterval is how often a run checks that nothing is silently stuck.
const checkInterval = 15 * time.Second

// shutDown ends all processes, and waits for what is left of those that were killed.
func (e *environment) shutDown() {
	var stops sync.WaitGroup
	for _, r := range e.replicas {
		if p := r.running(); p != nil {
			stops.Go(p.stop)
		}
	}
	stops.Wait()
	for _, p := range e.allProcesses() {
		<-p.ended
	}
}

// createExisting writes the events that exist before the first start.
func (e *environment) createExisting() {
	if len(e.plan.Producers) == 0 {
		return
	}
	for i := range e.plan.Existing {
		plan := e.plan.Producers[i%len(e.plan.Producers)]
		plan.Style, plan.Size = OldRecorder, 20
		p := e.newProducer(plan, 1000+i)
		p.count = int32(i % 3)
		p.subject.create(e.server)
		p.write(0)
	}
}

func (e *environment) addProcess(p *process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.processes = append(e.processes, p)
}

func (e *environment) allProcesses() []*process {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.processes)
}

// process returns the process with the name, or nil.
func (e *environment) process(name string) *process {
	for _, p := range e.allProcesses() {
		if p.name == name {
			return p
		}
	}
	return nil
}

func (e *environment) listed(list apiserver.List) {
	if p := e.process(list.Client); p != nil {
		p.listed(list)
	}
}

// served notes that the API server has written a ConfigMap.
func (e *environment) served(request apiserver.Request, _ int64, _ apiserver.Object) {
	if p := e.process(request.Client); p != nil && isOfProgress(request) && request.Verb != "get" {
		p.noted(time.Now(), nil)
	}
}

func (e *environment) sent(client string, change watch.EventType, ev *corev1.Event, size int) {
	p := e.process(client)
	if p == nil || change == watch.Deleted {
		return
	}
	if e.plan.Signals == OnlyMetrics || !e.plan.wants(ev) {
		return
	}
	e.mu.Lock()
	offered := e.offered[recordUID(ev)]
	e.mu.Unlock()
	if !offered && e.expectsFirst(p, ev) {
		p.sent(ev, size)
	}
}
