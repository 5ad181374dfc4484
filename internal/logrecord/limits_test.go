// SPDX-License-Identifier: Apache-2.0

package logrecord

import (
	"strings"
	"testing"
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
	chain := resolver.Chain{Objects: []*resolver.Object{event.Involved(ev).Object()}, Resolution: resolver.Complete}
	for range owners {
		chain.Objects = append(chain.Objects, object)
	}
	extractor, _ := extract.New(extract.Config{
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
		logs := Converter{ScopeName: "scope", ScopeVersion: "1", EntityRefs: true}.Convert(semconv.Cluster{UID: "uid", Name: "name"}, []observation.Observation{*o})
		check(t, logs)
		size := (&plog.ProtoMarshaler{}).LogsSize(logs)
		assert.LessOrEqual(t, size, MaxSize(o))
		assert.Less(t, size, 256<<10)
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
