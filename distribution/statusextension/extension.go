// SPDX-License-Identifier: Apache-2.0

// Package statusextension is the Collector extension `kube_events_status`. The Collector reports the status
// of its components to extensions only. This one keeps that of the kube_events receivers, so that the page
// claims no more than it knows, and it lets the page show what kube_incidents knows.
package statusextension

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
)

var (
	extensionType = component.MustNewType("kube_events_status")
	receiverType  = component.MustNewType("kube_events")
	pageType      = component.MustNewType("event_page")
)

// Config has no options.
type Config struct{}

// NewFactory returns the factory of the extension.
func NewFactory() extension.Factory {
	create := func(context.Context, extension.Settings, component.Config) (extension.Extension, error) {
		return New(), nil
	}
	return extension.NewFactory(extensionType, func() component.Config { return &Config{} }, create, component.StabilityLevelDevelopment)
}

// Extension knows whether the receivers whose records come to a page work, and which connector gets the same records as a
// page. It may be used concurrently.
type Extension struct {
	component.StartFunc
	component.ShutdownFunc

	mu        sync.Mutex
	receivers map[componentstatus.InstanceID]*componentstatus.Event // the last status of each
	members   map[componentstatus.InstanceID]bool                   // of pipelines: all receivers, connectors and pages
	delivery  Delivery
	incidents map[component.ID]Incidents // by connector
	shared    map[component.ID]Incidents // by page; nil: not all components have started
}

// Incidents is what a connector kube_incidents of this Collector knows. It may be used concurrently.
type Incidents interface {
	// Live returns its model.
	Live() *incident.Live
	// Known returns the open problem that has one of the series, and those that were before, the newest
	// first. A nil problem is not open.
	Known(series []string) (open *problem.Problem, previous []problem.Problem)
	// Problems returns those that were open at a time or later, the newest first.
	Problems(since time.Time) []problem.Problem
	// Changes returns those that happened at a time or later, the newest first.
	Changes(since time.Time) []problem.Change
}

// Offer lets pages use what a connector knows. The connector calls it at its start.
func (e *Extension) Offer(connector component.ID, known Incidents) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.incidents[connector] = known
}

// Ready implements extensioncapabilities.PipelineWatcher: all components have started, so that it is known which pipelines
// they are in.
func (e *Extension) Ready() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shared = map[component.ID]Incidents{}
	for member := range e.members {
		if page := member.ComponentID(); member.Kind() == component.KindExporter {
			e.shared[page] = e.incidentsOf(page)
		}
	}
	return nil
}

// NotReady implements extensioncapabilities.PipelineWatcher.
func (e *Extension) NotReady() error { return nil }

// IncidentsFor returns what a connector knows that gets the same records as a page: it is in the same logs
// pipelines. Nil: there is none, or not all components have started.
func (e *Extension) IncidentsFor(page component.ID) Incidents {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.shared[page]
}

// incidentsOf is IncidentsFor, once all components have started.
func (e *Extension) incidentsOf(page component.ID) Incidents {
	of := e.pipelinesOf(component.KindExporter, page)
	for _, connector := range slices.SortedFunc(maps.Keys(e.incidents), func(a, b component.ID) int { return strings.Compare(a.String(), b.String()) }) {
		if e.getsTheSame(connector, of) {
			return e.incidents[connector]
		}
	}
	return nil
}

// getsTheSame reports whether a connector is in all of some pipelines, and otherwise only in those of its output: nothing
// else brings records there.
func (e *Extension) getsTheSame(connector component.ID, of map[pipeline.ID]bool) bool {
	in := e.pipelinesOf(component.KindConnector, connector)
	for id := range of {
		if !in[id] {
			return false
		}
	}
	for other := range e.members {
		isOther := other.ComponentID() != connector && other.Kind() != component.KindExporter
		brings := func(id pipeline.ID) bool { return in[id] && !of[id] }
		if isOther && slices.ContainsFunc(logsPipelines(other), brings) {
			return false
		}
	}
	return len(of) > 0
}

// pipelinesOf returns the logs pipelines of a component.
func (e *Extension) pipelinesOf(kind component.Kind, id component.ID) map[pipeline.ID]bool {
	found := map[pipeline.ID]bool{}
	for member := range e.members {
		if member.Kind() == kind && member.ComponentID() == id {
			for _, in := range logsPipelines(member) {
				found[in] = true
			}
		}
	}
	return found
}

// New returns an Extension that knows of no receiver.
func New() *Extension {
	return &Extension{
		receivers: map[componentstatus.InstanceID]*componentstatus.Event{},
		members:   map[componentstatus.InstanceID]bool{},
		incidents: map[component.ID]Incidents{},
		delivery:  Delivery{Failure: notConnected},
	}
}

const notConnected = "It is not known whether events arrive: no kube_events receiver of this Collector is in a logs pipeline of event_page."

// Delivery is whether the receivers deliver the events of their clusters.
type Delivery struct {
	Since   time.Time // from then on they did, but for the gap; zero: not yet
	Gap     Gap
	Failure string // why they do not now, with the fix; empty: they do
}

// Gap is a time within which the receivers did not always deliver.
type Gap struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until,omitzero"` // zero: it goes on
}

// maxPause is the time without a failure after which the next one is another gap.
const maxPause = time.Hour

// Delivery returns what is known now.
func (e *Extension) Delivery() Delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.delivery
}

// ComponentStatusChanged implements componentstatus.Watcher.
func (e *Extension) ComponentStatusChanged(source *componentstatus.InstanceID, event *componentstatus.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	kind, of := source.Kind(), source.ComponentID().Type()
	isTaker := kind == component.KindConnector || kind == component.KindExporter && of == pageType
	if isTaker || kind == component.KindReceiver {
		e.members[*source] = true
	}
	switch {
	case kind == component.KindReceiver && of == receiverType:
		e.receivers[*source] = event
	case !isTaker:
		return
	}
	e.delivery = e.delivery.after(event.Timestamp().UTC(), e.failure())
}

// Receiving reports whether all kube_events receivers of the Collector get and deliver events, except standbys next to
// others, and whether all are standbys. Without a receiver, records come from other Collectors, of which nothing is known.
func (e *Extension) Receiving() (isWhole, isStandby bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	isWhole, isStandby = true, len(e.receivers) > 0
	for receiver, last := range e.receivers {
		isWhole = isWhole && (isOfStandby(last) || failureOf(receiver.ComponentID(), last) == "")
		isStandby = isStandby && isOfStandby(last)
	}
	return isWhole && !isStandby, isStandby
}

// failure returns why records do not come to a page; empty: they do.
func (e *Extension) failure() string {
	failures, isConnected, reaching := []string{}, false, e.reachingPages()
	for receiver, last := range e.receivers {
		if !slices.ContainsFunc(logsPipelines(receiver), reaching) {
			continue
		}
		isConnected = true
		if failure := failureOf(receiver.ComponentID(), last); failure != "" {
			failures = append(failures, failure)
		}
	}
	if !isConnected {
		return notConnected
	}
	slices.Sort(failures)
	return strings.Join(failures, " ")
}

// reachingPages returns whether the records of a logs pipeline come to a page: directly, or by connectors.
func (e *Extension) reachingPages() func(pipeline.ID) bool {
	known := map[pipeline.ID]bool{}
	isKnown := func(id pipeline.ID) bool { return known[id] }
	for before := -1; before < len(known); {
		before = len(known)
		for taker := range e.members {
			pipelines := logsPipelines(taker)
			if taker.Kind() == component.KindExporter || taker.Kind() == component.KindConnector && slices.ContainsFunc(pipelines, isKnown) {
				for _, id := range pipelines {
					known[id] = true
				}
			}
		}
	}
	return isKnown
}

// logsPipelines returns the logs pipelines of an instance. For a connector, these are those on both sides.
func logsPipelines(instance componentstatus.InstanceID) (ids []pipeline.ID) {
	instance.AllPipelineIDs(func(id pipeline.ID) bool {
		if id.Signal() == pipeline.SignalLogs {
			ids = append(ids, id)
		}
		return true
	})
	return ids
}

// failureOf returns why a receiver does not deliver; empty: it does.
func failureOf(id component.ID, event *componentstatus.Event) string {
	switch {
	case event.Err() != nil:
		return fmt.Sprintf("The receiver %s reports: %.1000s.", id, strings.TrimSuffix(strings.ReplaceAll(event.Err().Error(), "\n", "; "), "."))
	case event.Status() != componentstatus.StatusOK:
		return fmt.Sprintf("The receiver %s has the status %s.", id, event.Status())
	case isOfStandby(event):
		return "This replica is a standby: only the leader has new events. Forward the port of the pod whose log has the last “Started leading”."
	}
	return ""
}

func isOfStandby(event *componentstatus.Event) bool {
	standby, ok := event.Attributes().Get("kube_events.standby")
	return ok && standby.Bool()
}

// after returns what is known after a failure, or its end, which is empty.
func (d Delivery) after(now time.Time, failure string) Delivery {
	began, ended := d.Failure == "" && failure != "", d.Failure != "" && failure == ""
	switch d.Failure = failure; {
	case ended && d.Since.IsZero():
		d.Since = now
	case ended:
		d.Gap.Until = now
	case began && now.Sub(d.Gap.Until) > maxPause:
		d.Gap = Gap{From: now}
	case began:
		d.Gap.Until = time.Time{}
	}
	return d
}
