// SPDX-License-Identifier: Apache-2.0

package statusextension

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/pipeline"
)

var (
	logs    = pipeline.NewID(pipeline.SignalLogs)
	metrics = pipeline.NewID(pipeline.SignalMetrics)
	ok      = componentstatus.NewEvent(componentstatus.StatusOK)
)

func receiver(name string, pipelines ...pipeline.ID) *componentstatus.InstanceID {
	return componentstatus.NewInstanceID(component.NewIDWithName(receiverType, name), component.KindReceiver, pipelines...)
}

// newConnected returns an extension that knows of a page in the logs pipeline.
func newConnected() *Extension {
	e := New()
	e.ComponentStatusChanged(page(logs), componentstatus.NewEvent(componentstatus.StatusStarting))
	return e
}

func page(pipelines ...pipeline.ID) *componentstatus.InstanceID {
	return componentstatus.NewInstanceID(component.NewID(pageType), component.KindExporter, pipelines...)
}

func connector(name string, pipelines ...pipeline.ID) *componentstatus.InstanceID {
	return componentstatus.NewInstanceID(component.MustNewID(name), component.KindConnector, pipelines...)
}

func failure(text string) *componentstatus.Event {
	return componentstatus.NewRecoverableErrorEvent(errors.New(text))
}

func standby() *componentstatus.Event {
	event := componentstatus.NewEvent(componentstatus.StatusOK)
	event.Attributes().PutBool("kube_events.standby", true)
	return event
}

func TestItStartsAsAnExtension(t *testing.T) {
	factory := NewFactory()
	settings := extension.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	made, err := factory.Create(t.Context(), settings, factory.CreateDefaultConfig())
	require.NoError(t, err)
	assert.Implements(t, (*componentstatus.Watcher)(nil), made)
	require.NoError(t, made.Start(t.Context(), componenttest.NewNopHost()))
	assert.NoError(t, made.Shutdown(t.Context()))
}

// TestWhatReceiversGet: one that fails leaves a gap, and of standbys nothing comes.
func TestWhatReceiversGet(t *testing.T) {
	for name, tt := range map[string]struct {
		statuses           []*componentstatus.Event
		isWhole, isStandby bool
	}{
		"no receiver":             {nil, true, false},
		"one that works":          {[]*componentstatus.Event{ok}, true, false},
		"one of two fails":        {[]*componentstatus.Event{ok, failure("no answer")}, false, false},
		"a standby":               {[]*componentstatus.Event{standby()}, false, true},
		"two standbys":            {[]*componentstatus.Event{standby(), standby()}, false, true},
		"a standby, and a leader": {[]*componentstatus.Event{standby(), ok}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := New()
			for i, status := range tt.statuses {
				e.ComponentStatusChanged(receiver(string(rune('a'+i)), logs), status)
			}
			isWhole, isStandby := e.Receiving()
			assert.Equal(t, tt.isWhole, isWhole)
			assert.Equal(t, tt.isStandby, isStandby)
		})
	}
}

// TestWhyEventsDoNotArrive: the reason names the receiver and the fix.
func TestWhyEventsDoNotArrive(t *testing.T) {
	for name, tt := range map[string]struct {
		source *componentstatus.InstanceID
		status *componentstatus.Event
		want   string
	}{
		"no receiver":          {receiver(""), ok, "no kube_events receiver of this Collector is in a logs pipeline"},
		"only of metrics":      {receiver("", metrics), ok, "no kube_events receiver of this Collector is in a logs pipeline"},
		"another component":    {componentstatus.NewInstanceID(component.NewID(receiverType), component.KindConnector, logs), ok, "no kube_events receiver"},
		"another receiver":     {componentstatus.NewInstanceID(component.MustNewID("otlp"), component.KindReceiver, logs), ok, "no kube_events receiver"},
		"it works":             {receiver("", logs), ok, ""},
		"it fails":             {receiver("a", logs), failure("no permission:\nadd a rule."), "The receiver kube_events/a reports: no permission:; add a rule."},
		"it starts":            {receiver("", logs), componentstatus.NewEvent(componentstatus.StatusStarting), "The receiver kube_events has the status StatusStarting."},
		"it has ended":         {receiver("", logs), componentstatus.NewEvent(componentstatus.StatusStopped), "has the status StatusStopped."},
		"another replica":      {receiver("", logs), standby(), "This replica is a standby: only the leader has new events."},
		"thousands of reasons": {receiver("", logs), failure(strings.Repeat("x", 1e6)), strings.Repeat("x", 1000) + "."},
	} {
		t.Run(name, func(t *testing.T) {
			e := newConnected()
			e.ComponentStatusChanged(tt.source, tt.status)
			if found := e.Delivery().Failure; tt.want == "" {
				assert.Empty(t, found)
			} else {
				assert.Contains(t, found, tt.want)
				assert.Less(t, len(found), 1100)
			}
		})
	}
}

// TestOnlyReceiversOfThePageCount: a receiver whose records go elsewhere says nothing about the page.
func TestOnlyReceiversOfThePageCount(t *testing.T) {
	backend, in, out := pipeline.NewIDWithName(pipeline.SignalLogs, "backend"), pipeline.NewIDWithName(pipeline.SignalLogs, "in"), pipeline.NewIDWithName(pipeline.SignalLogs, "out")
	traces := pipeline.NewID(pipeline.SignalTraces)
	for name, tt := range map[string]struct {
		takers    []*componentstatus.InstanceID
		receivers []*componentstatus.InstanceID
		arrives   bool
	}{
		"no page":                       {nil, []*componentstatus.InstanceID{receiver("", logs)}, false},
		"another pipeline":              {[]*componentstatus.InstanceID{page(logs)}, []*componentstatus.InstanceID{receiver("", backend)}, false},
		"one of two pipelines":          {[]*componentstatus.InstanceID{page(logs)}, []*componentstatus.InstanceID{receiver("", backend, logs)}, true},
		"a connector in between":        {[]*componentstatus.InstanceID{page(logs), connector("forward", in, logs)}, []*componentstatus.InstanceID{receiver("", in)}, true},
		"two connectors in between":     {[]*componentstatus.InstanceID{page(logs), connector("a", in, out), connector("b", out, logs)}, []*componentstatus.InstanceID{receiver("", in)}, true},
		"a connector to elsewhere":      {[]*componentstatus.InstanceID{page(logs), connector("forward", in, out)}, []*componentstatus.InstanceID{receiver("", in)}, false},
		"a connector of another signal": {[]*componentstatus.InstanceID{page(logs), connector("a", in, traces), connector("b", traces, logs)}, []*componentstatus.InstanceID{receiver("", in)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := New()
			for _, taker := range tt.takers {
				e.ComponentStatusChanged(taker, componentstatus.NewEvent(componentstatus.StatusStarting))
			}
			for _, of := range tt.receivers {
				e.ComponentStatusChanged(of, ok)
			}
			if tt.arrives {
				assert.Equal(t, Delivery{Since: ok.Timestamp().UTC()}, e.Delivery())
			} else {
				assert.Equal(t, Delivery{Failure: notConnected}, e.Delivery())
			}
			e.ComponentStatusChanged(receiver("other", backend), failure("elsewhere"))
			assert.NotContains(t, e.Delivery().Failure, "elsewhere", "unless it is connected")
		})
	}
}

// TestEachReceiverMustWork: what one lacks is missing.
func TestEachReceiverMustWork(t *testing.T) {
	e := newConnected()
	e.ComponentStatusChanged(receiver("b", logs), failure("b"))
	e.ComponentStatusChanged(receiver("a", logs), failure("a"))
	assert.Equal(t, "The receiver kube_events/a reports: a. The receiver kube_events/b reports: b.", e.Delivery().Failure)
	e.ComponentStatusChanged(receiver("a", logs), ok)
	e.ComponentStatusChanged(receiver("b", metrics), ok)
	assert.Zero(t, e.Delivery().Since)
	e.ComponentStatusChanged(receiver("b", logs), ok)
	assert.Empty(t, e.Delivery().Failure)
	assert.NotZero(t, e.Delivery().Since)
}

// TestGaps: failures with at most an hour in between are one gap.
func TestGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, start := newConnected(), time.Now()
		report := func(at time.Duration, event componentstatus.Status) Delivery {
			time.Sleep(time.Until(start.Add(at)))
			e.ComponentStatusChanged(receiver("", logs), componentstatus.NewEvent(event))
			return e.Delivery()
		}
		at := func(d time.Duration) time.Time { return start.Add(d).UTC() }
		const works, fails = componentstatus.StatusOK, componentstatus.StatusRecoverableError
		assert.Zero(t, report(1*time.Minute, fails).Gap, "it has not worked before")
		assert.Equal(t, Delivery{Since: at(2 * time.Minute)}, report(2*time.Minute, works))
		assert.Equal(t, Gap{From: at(3 * time.Minute)}, report(3*time.Minute, fails).Gap)
		assert.Equal(t, Gap{From: at(3 * time.Minute)}, report(4*time.Minute, fails).Gap)
		assert.Equal(t, Gap{From: at(3 * time.Minute), Until: at(5 * time.Minute)}, report(5*time.Minute, works).Gap)
		assert.Equal(t, Gap{From: at(3 * time.Minute)}, report(65*time.Minute, fails).Gap)
		assert.Equal(t, Gap{From: at(3 * time.Minute), Until: at(66 * time.Minute)}, report(66*time.Minute, works).Gap)
		last := report(127*time.Minute, fails)
		assert.Equal(t, Gap{From: at(127 * time.Minute)}, last.Gap)
		assert.Equal(t, at(2*time.Minute), last.Since)
	})
}

// TestWhichConnectorAPageUses: one that gets the same records.
func TestWhichConnectorAPageUses(t *testing.T) {
	team, output := pipeline.NewIDWithName(pipeline.SignalLogs, "team"), pipeline.NewIDWithName(pipeline.SignalLogs, "incidents")
	for name, tt := range map[string]struct {
		all  []*componentstatus.InstanceID
		want bool
	}{
		"the same pipeline":                   {[]*componentstatus.InstanceID{receiver("", logs), page(logs), connector("kube_incidents", logs, metrics)}, true},
		"and an output of logs":               {[]*componentstatus.InstanceID{receiver("", logs), page(logs), connector("kube_incidents", logs, output)}, true},
		"an output into which others deliver": {[]*componentstatus.InstanceID{receiver("", logs), receiver("b", output), page(logs), connector("kube_incidents", logs, output)}, false},
		"records of another receiver, too":    {[]*componentstatus.InstanceID{receiver("", logs), receiver("b", team), page(logs), connector("kube_incidents", logs, team, metrics)}, false},
		"a part, by another connector":        {[]*componentstatus.InstanceID{receiver("", logs), connector("routing", logs, team), page(logs), connector("kube_incidents", logs, team, metrics)}, false},
		"another pipeline":                    {[]*componentstatus.InstanceID{receiver("", logs, team), page(logs), connector("kube_incidents", team, metrics)}, false},
		"the page has more":                   {[]*componentstatus.InstanceID{receiver("", logs), receiver("b", team), page(logs, team), connector("kube_incidents", logs, metrics)}, false},
		"the connector remembers nothing":     {[]*componentstatus.InstanceID{receiver("", logs), page(logs), connector("other", logs, metrics)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := New()
			known := struct{ Incidents }{}
			e.Offer(component.MustNewID("kube_incidents"), known)
			for _, one := range tt.all {
				e.ComponentStatusChanged(one, componentstatus.NewEvent(componentstatus.StatusStarting))
			}
			of := component.NewID(pageType)
			assert.Nil(t, e.IncidentsFor(of), "others can still start")
			require.NoError(t, e.Ready())
			assert.Equal(t, tt.want, e.IncidentsFor(of) != nil)
			assert.NoError(t, e.NotReady())
		})
	}
}
