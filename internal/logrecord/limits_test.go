// SPDX-License-Identifier: Apache-2.0

package logrecord

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/internal/text"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// hostile returns an observation with a text, repeated, wherever anybody may write one.
func hostile(s string, times, owners int) *observation.Observation {
	s = strings.Repeat(s, times)
	reference := corev1.ObjectReference{APIVersion: s, Kind: s, Namespace: s, Name: s, UID: types.UID(s), ResourceVersion: s, FieldPath: "spec.containers{" + s + "}"}
	ev := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name: s, Namespace: s, UID: types.UID(s), ResourceVersion: s,
			Labels: map[string]string{s: s, "k": s}, Annotations: map[string]string{s: s, event.Traceparent: s},
		},
		InvolvedObject: reference, Related: &reference, Reason: s, Type: s, Message: s, Action: s,
		ReportingController: s, ReportingInstance: s, Source: corev1.EventSource{Component: s, Host: s},
	}
	event.Normalize(ev)
	object := &resolver.Object{APIVersion: text.Value(s), Kind: text.Value(s), Namespace: text.Value(s), Name: text.Value(s), UID: types.UID(text.Value(s))}
	chain := resolver.Chain{Objects: []*resolver.Object{event.Involved(ev).Object()}, Resolution: resolver.ResolutionComplete}
	for range owners {
		chain.Objects = append(chain.Objects, object)
	}
	extractor, _ := extract.New(extract.Settings{
		Labels:      []extract.Rule{{KeyRegex: ".*", From: "event"}},
		Annotations: []extract.Rule{{KeyRegex: "(.*)", TagName: "$1-$1", From: "event"}},
	})
	o := &observation.Observation{Event: ev, Occurrences: 1, SeenAt: seenAt, Chain: chain}
	o.Tags = extractor.Tags(extract.Sources{Chain: chain.Objects, Event: &resolver.Object{APIVersion: "v1", Kind: "Event", Labels: ev.Labels, Annotations: ev.Annotations}})
	return o
}

func FuzzEveryAttributeIsBounded(f *testing.F) {
	f.Add("a\xff", 100_000, 3)
	f.Add("ä", 513, 10)
	f.Add("p", 1, 0)
	f.Fuzz(func(t *testing.T, s string, times, owners int) {
		o := hostile(s, 1+max(0, times)%200_000, max(0, owners)%11)
		logs := Converter{ScopeName: "scope", ScopeVersion: "1"}.Convert(semconv.Cluster{UID: "uid", Name: "name"}, []observation.Observation{*o})
		check(t, logs)
		assert.Less(t, (&plog.ProtoMarshaler{}).LogsSize(logs), 256<<10)
	})
}

func check(t *testing.T, logs plog.Logs) {
	resource := logs.ResourceLogs().At(0)
	record := resource.ScopeLogs().At(0).LogRecords().At(0)
	assert.LessOrEqual(t, len(record.Body().Str()), text.MaxBody)
	assert.True(t, utf8.ValidString(record.Body().Str()))
	assert.LessOrEqual(t, len(record.SeverityText()), text.MaxValue)
	for _, attributes := range []pcommon.Map{resource.Resource().Attributes(), record.Attributes()} {
		for name, value := range attributes.All() {
			assert.Equal(t, text.Value(name), name)
			if value.Type() != pcommon.ValueTypeSlice {
				assert.Equal(t, text.Value(value.AsString()), value.AsString(), name)
				continue
			}
			for _, part := range value.Slice().All() {
				assert.Equal(t, text.Value(part.Str()), part.Str(), name)
			}
		}
	}
}

func TestTheUIDOfARecordIsNotThatOfAnotherOne(t *testing.T) {
	for uid, want := range map[string]bool{"uid": true, strings.Repeat("u", text.MaxValue-2): true, strings.Repeat("u", text.MaxValue-1): false} {
		ev := podEvent("1", "a")
		ev.UID = types.UID(uid)
		_, has := convert(of(ev)).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().Get("log.record.uid")
		assert.Equal(t, want, has, len(uid))
	}
}

// Loki accepts 128 attributes, five of which are its own, and three those of a trace context.
func TestTagsThatHaveNoRoomAreLeftOutAlsoIfNobodyWantsToKnow(t *testing.T) {
	o := of(podEvent("e", "p"))
	for i := range 200 {
		o.Tags.Record = append(o.Tags.Record, extract.Tag{Name: fmt.Sprint("tag", i), Value: "v"})
	}
	assert.Less(t, convert(o).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().Len(), maxAttributes)
}

func TestARecordAndItsResourceHaveAtMost120Attributes(t *testing.T) {
	tags := func(prefix string, n int) (all []extract.Tag) {
		for i := range n {
			all = append(all, extract.Tag{Name: fmt.Sprint(prefix, i), Value: "v"})
		}
		return all
	}
	ev := podEvent("e", "p")
	ev.Reason, ev.Type, ev.Action, ev.ReportingController, ev.ReportingInstance = "R", "Warning", "A", "c", "i"
	ev.InvolvedObject.FieldPath, ev.InvolvedObject.ResourceVersion, ev.FirstTimestamp = "spec.containers{c}", "1", metav1.NewTime(seenAt)
	ev.Related = &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "r", UID: "u"}
	ev.Namespace = "default"
	own := of(ev)
	own.Details = &observation.Details{
		Resolution: resolver.ResolutionTimeout, ConfigMaps: []string{"c"}, Changes: []string{"c"}, DeployedBy: "d", ChangedBy: "c", ChangedAt: seenAt,
		Ended: &observation.Termination{Reason: "OOMKilled", Signal: 9, StartedAt: seenAt, FinishedAt: seenAt, MemoryLimit: 1},
	}
	without := convert(own).ResourceLogs().At(0)
	ownOfResource := without.Resource().Attributes().Len()
	assert.Equal(t, ownOfRecord, without.ScopeLogs().At(0).LogRecords().At(0).Attributes().Len(), "this is the record with the most attributes")

	for name, test := range map[string]struct {
		resource, record         int // tags
		wantResource, wantRecord int
		leftOut                  int
	}{
		"what fits":                      {120 - ownOfRecord - ownOfResource, 0, 120 - ownOfRecord, ownOfRecord, 0},
		"too many of the objects":        {120, 0, 120 - ownOfRecord, ownOfRecord, 1},
		"too many of the Event":          {0, 128, ownOfResource, 120 - ownOfResource, 1},
		"too many of both":               {128, 128, 120 - ownOfRecord, ownOfRecord, 2},
		"what fits, with few of objects": {10, 3, ownOfResource + 10, ownOfRecord + 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			leftOut := 0
			o := own
			o.Tags.Resource, o.Tags.Record = tags("a", test.resource), tags("b", test.record)
			resource := Converter{TagsLeftOut: func() { leftOut++ }}.Convert(semconv.Cluster{}, []observation.Observation{o}).ResourceLogs().At(0)
			record := resource.ScopeLogs().At(0).LogRecords().At(0)
			assert.Equal(t, test.wantResource, resource.Resource().Attributes().Len())
			assert.Equal(t, test.wantRecord, record.Attributes().Len())
			assert.Equal(t, test.leftOut, leftOut)
			for attribute := range without.Resource().Attributes().All() {
				_, kept := resource.Resource().Attributes().Get(attribute)
				assert.True(t, kept, attribute)
			}
		})
	}
}

func TestAStartIsNotAfterTheNewestOccurrence(t *testing.T) {
	ev := podEvent("e", "p")
	ev.LastTimestamp = metav1.NewTime(seenAt)
	ev.CreationTimestamp = metav1.NewTime(seenAt.Add(time.Hour))
	began, _ := convert(of(ev)).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().Get("k8s.event.start_time")
	assert.Equal(t, seenAt.Format(time.RFC3339Nano), began.Str())
}
