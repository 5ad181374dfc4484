// SPDX-License-Identifier: Apache-2.0

// Package statusextension is the Collector extension `kube_events_status`. The Collector reports the status
// of its components to extensions only. This one keeps that of the kube_events receivers, so that the page
// claims no more than it knows, and passes what kube_incidents remembers to the page.
package statusextension

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
)

var (
	extensionType = component.MustNewType("kube_events_status")
	receiverType  = component.MustNewType("kube_events")
	pageType      = component.MustNewType("event_page")
)

// NewFactory returns the factory of the extension.
func NewFactory() extension.Factory {
	create := func(context.Context, extension.Settings, component.Config) (extension.Extension, error) {
		return New(), nil
	}
	return extension.NewFactory(extensionType, func() component.Config { return &struct{}{} }, create, component.StabilityLevelDevelopment)
}

// Extension knows whether the receivers whose records come to a page work. It may be used concurrently.
type Extension struct {
	component.StartFunc
	component.ShutdownFunc

	mu        sync.Mutex
	receivers map[componentstatus.InstanceID]*componentstatus.Event // the last status of each
	takers    map[componentstatus.InstanceID]bool                   // pages and connectors
	delivery  Delivery
	history   History
}

// History is what a connector of this Collector remembers of problems. It may be used concurrently.
type History interface {
	// Known returns the open problem that has one of the series, and those that were before, the newest
	// first. A nil problem is not open.
	Known(series []string) (open *problem.Problem, previous []problem.Problem)
	// Since returns the problems that were open at a time or later, the newest first.
	Since(at time.Time) []problem.Problem
}

// Remember sets what History returns. The connector calls it at its start.
func (e *Extension) Remember(h History) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.history = h
}

// History returns what is remembered; nil: no connector remembers problems.
func (e *Extension) History() History {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.history
}

// New returns an Extension that knows of no receiver.
func New() *Extension {
	return &Extension{
		receivers: map[componentstatus.InstanceID]*componentstatus.Event{},
		takers:    map[componentstatus.InstanceID]bool{},
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
	switch kind, of := source.Kind(), source.ComponentID().Type(); {
	case kind == component.KindReceiver && of == receiverType:
		e.receivers[*source] = event
	case kind == component.KindConnector, kind == component.KindExporter && of == pageType:
		e.takers[*source] = true
	default:
		return
	}
	e.delivery = e.delivery.after(event.Timestamp().UTC(), e.failure())
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
		for taker := range e.takers {
			pipelines := logsPipelines(taker)
			if taker.Kind() == component.KindExporter || slices.ContainsFunc(pipelines, isKnown) {
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
	standby, isStandby := event.Attributes().Get("kube_events.standby")
	switch {
	case event.Err() != nil:
		return fmt.Sprintf("The receiver %s reports: %.1000s.", id, strings.TrimSuffix(strings.ReplaceAll(event.Err().Error(), "\n", "; "), "."))
	case event.Status() != componentstatus.StatusOK:
		return fmt.Sprintf("The receiver %s has the status %s.", id, event.Status())
	case isStandby && standby.Bool():
		return "This replica is a standby: only the leader has new events. Forward the port of the pod whose log has the last “Started leading”."
	}
	return ""
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
