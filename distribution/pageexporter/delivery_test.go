// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
	"github.com/kubeevents/kubeeventsreceiver/distribution/statusextension"
)

var errForbidden = errors.New("no permission to list and watch events of the cluster: bind a ClusterRole")

// pageOf is the page of a Collector with one receiver, whose status a test sets.
type pageOf struct {
	*testing.T
	*board
	extension *statusextension.Extension
}

func newPageOf(t *testing.T) pageOf {
	p := pageOf{t, newBoard(time.Now), statusextension.New()}
	p.delivery = p.extension.Delivery
	p.reports("event_page", component.KindExporter, componentstatus.NewEvent(componentstatus.StatusStarting))
	return p
}

func (p pageOf) reports(name string, kind component.Kind, event *componentstatus.Event) {
	source := componentstatus.NewInstanceID(component.MustNewID(name), kind, pipeline.NewID(pipeline.SignalLogs))
	p.extension.ComponentStatusChanged(source, event)
}

func (p pageOf) receives(event *componentstatus.Event) {
	p.reports("kube_events", component.KindReceiver, event)
}

func (p pageOf) fails(err error) { p.receives(componentstatus.NewRecoverableErrorEvent(err)) }
func (p pageOf) works()          { p.receives(componentstatus.NewEvent(componentstatus.StatusOK)) }

// says returns what the page says of its limits, and the head of JSON.
func (p pageOf) says() (limits string, in head) {
	p.Helper()
	_, body := fetch(p.T, p.board, "/content")
	for _, text := range texts(body, "p") {
		if strings.Contains(text, "Nothing has arrived") || strings.Contains(text, "Records are") {
			limits += html.UnescapeString(text) + "\n"
		}
	}
	_, answer := fetch(p.T, p.board, "/api/problems")
	require.NoError(p, json.Unmarshal([]byte(answer), &in))
	return limits, in
}

// inBubble runs a test at midnight of 2000-01-01, which is when the page starts.
func inBubble(t *testing.T, test func(t *testing.T, p pageOf)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newPageOf(t)) })
}

func TestAPageThatWasNeverConnectedClaimsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, p pageOf) {
		p.fails(errForbidden)
		time.Sleep(time.Hour)
		limits, in := p.says()
		assert.Equal(t, "Nothing has arrived since 00:00:00. The receiver kube_events reports: "+errForbidden.Error()+".\n", limits)
		assert.Zero(t, in.RecordsSince)
		assert.Equal(t, "The receiver kube_events reports: "+errForbidden.Error()+".", in.Incomplete)
		assert.Equal(t, time.Now().Add(-time.Hour).UTC(), in.NothingSince)
		_, body := fetch(t, p.board, "/content")
		assert.Contains(t, texts(body, "h2"), "0 known problems go on")
		_, body = fetch(t, p.board, "/api/problems")
		assert.NotContains(t, body, "records_since")
		agent, failed := newTools(p.board)("what_changed", `{"workload": "web"}`)
		assert.True(t, failed)
		assert.Contains(t, agent, errForbidden.Error(), "it may have events that have not arrived")
	})
}

func TestRecordsAreCompleteFromTheFirstConnectionOn(t *testing.T) {
	for name, tt := range map[string]struct{ existing, want string }{
		"only new events": {"", "00:10:00"},
		"existing events": {"-40m", "23:30:00"},
		"older than kept": {"-70m", "00:10:00"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, p pageOf) {
				p.fails(errForbidden)
				time.Sleep(10 * time.Minute)
				p.works()
				if tt.existing != "" {
					age, err := time.ParseDuration(tt.existing)
					require.NoError(t, err)
					p.add(story.Records(unschedulable)[0].Logs(time.Now().Add(age)))
				}
				limits, in := p.says()
				assert.Equal(t, "Records are complete from "+tt.want+" on. Older changes are not known.\n", limits)
				assert.Equal(t, tt.want, in.RecordsSince.Format(time.TimeOnly))
				assert.Empty(t, in.Incomplete)
			})
		})
	}
}

// TestAWatchThatBreaksAndWorksAgain: meanwhile records are missing, and afterwards some may be.
func TestAWatchThatBreaksAndWorksAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, p pageOf) {
		p.works()
		time.Sleep(time.Minute)
		p.add(justNow(unschedulable))
		time.Sleep(time.Minute)
		p.fails(errForbidden)
		limits, in := p.says()
		assert.Contains(t, limits, "Nothing has arrived since 00:01:00. The receiver kube_events reports: no permission")
		assert.Contains(t, limits, "Records are complete from 00:00:00 on, but for some between 00:02:00 and now. Older changes are not known.")
		assert.NotEmpty(t, in.Incomplete)
		assert.Equal(t, "00:02:00", in.Gap.From.Format(time.TimeOnly))

		time.Sleep(time.Minute)
		p.works()
		limits, in = p.says()
		assert.Equal(t, "Records are complete from 00:00:00 on, but for some between 00:02:00 and 00:03:00. Older changes are not known.\n", limits)
		assert.Empty(t, in.Incomplete)
		assert.Equal(t, "00:03:00", in.Gap.Until.Format(time.TimeOnly))

		time.Sleep(time.Hour + time.Second)
		limits, _ = p.says()
		assert.Empty(t, limits)
	})
}

func TestAPageWithoutTheExtensionSaysThatItDoesNotKnow(t *testing.T) {
	limits, in := pageOf{T: t, board: newBoard(time.Now)}.says()
	assert.Contains(t, limits, "Nothing has arrived since ")
	assert.Contains(t, limits, "It is not known whether the receiver works: add kube_events_status to extensions, and to extensions of service.")
	assert.Zero(t, in.RecordsSince)
}

// TestTheExporterFindsTheExtension among those of the Collector.
func TestTheExporterFindsTheExtension(t *testing.T) {
	factory := NewFactory()
	config := factory.CreateDefaultConfig().(*Config)
	config.Server.NetAddr.Endpoint = "127.0.0.1:0"
	made, err := factory.CreateLogs(t.Context(), exportertest.NewNopSettings(factory.Type()), config)
	require.NoError(t, err)
	p := newPageOf(t)
	require.NoError(t, made.Start(t.Context(), extensions{component.MustNewID("other"): nil, component.MustNewID("kube_events_status"): p.extension}))
	p.fails(errForbidden)
	page, _ := get(t, "http://"+made.(*pageExporter).address.String())
	assert.Contains(t, page, errForbidden.Error())
	assert.NoError(t, made.Shutdown(context.Background()))
}

type extensions map[component.ID]component.Component

func (e extensions) GetExtensions() map[component.ID]component.Component { return e }

// newTools returns what calls a tool of a board.
func newTools(b *board) func(name, arguments string) (text string, failed bool) {
	return func(name, arguments string) (string, bool) {
		for _, t := range tools {
			if t.name == name {
				text, err := t.call(context.Background(), b, json.RawMessage(arguments))
				if err != nil {
					return err.Error(), true
				}
				return text, false
			}
		}
		return "no such tool", true
	}
}
