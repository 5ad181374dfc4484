// SPDX-License-Identifier: Apache-2.0

package linesexporter

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// eventRecord describes a log record as the kube_events receiver emits it.
type eventRecord struct {
	severity plog.SeverityNumber
	typ      string
	object   map[string]any
	event    map[string]any
	message  string
	observed bool // whether only the time of observation is known
}

func (r eventRecord) logs(t *testing.T) plog.Logs {
	t.Helper()
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	require.NoError(t, rl.Resource().Attributes().FromRaw(r.object))
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	require.NoError(t, record.Attributes().FromRaw(r.event))

	at := pcommon.NewTimestampFromTime(time.Date(2026, 3, 1, 7, 31, 2, 0, time.Local))
	if r.observed {
		record.SetObservedTimestamp(at)
	} else {
		record.SetTimestamp(at)
	}
	record.SetSeverityNumber(r.severity)
	record.SetSeverityText(r.typ)
	record.Body().SetStr(r.message)
	return logs
}

func TestLines(t *testing.T) {
	stuckPod := map[string]any{
		"k8s.namespace.name":     "demo",
		"k8s.object.api_version": "v1",
		"k8s.object.kind":        "Pod",
		"k8s.object.name":        "stuck-5d9f-abc",
		"k8s.owner.chain":        []any{"replicaset.apps/stuck-5d9f", "deployment.apps/stuck"},
		"tilt.manifest":          "stuck",
	}
	tests := map[string]struct {
		record eventRecord
		color  bool
		want   string
	}{
		"everything that a line can hold": {
			record: eventRecord{
				severity: plog.SeverityNumberWarn, typ: "Warning", object: stuckPod, message: "0/3 nodes are available",
				event: map[string]any{"k8s.event.reason": "FailedScheduling", "k8s.event.occurrences": 3, "k8s.event.count": 3},
			},
			want: "07:31:02 Warning FailedScheduling     demo pod/stuck-5d9f-abc ← replicaset.apps/stuck-5d9f ← deployment.apps/stuck [stuck] ×3  0/3 nodes are available\n",
		},
		"two of eleven occurrences": {
			record: eventRecord{
				severity: plog.SeverityNumberWarn, typ: "Warning", object: map[string]any{"k8s.object.kind": "Pod", "k8s.object.name": "p"}, message: "m",
				event: map[string]any{"k8s.event.reason": "BackOff", "k8s.event.occurrences": 2, "k8s.event.count": 11},
			},
			want: "07:31:02 Warning BackOff              pod/p ×11 (+2)  m\n",
		},
		"the eleventh occurrence": {
			record: eventRecord{
				severity: plog.SeverityNumberWarn, typ: "Warning", object: map[string]any{"k8s.object.kind": "Pod", "k8s.object.name": "p"}, message: "m",
				event: map[string]any{"k8s.event.reason": "BackOff", "k8s.event.occurrences": 1, "k8s.event.count": 11},
			},
			want: "07:31:02 Warning BackOff              pod/p ×11  m\n",
		},
		"a cluster-scoped object of a named group, once": {
			record: eventRecord{
				severity: plog.SeverityNumberInfo, typ: "Normal", message: "made",
				object: map[string]any{"k8s.object.api_version": "apiextensions.k8s.io/v1", "k8s.object.kind": "CustomResourceDefinition", "k8s.object.name": "shops.demo"},
				event:  map[string]any{"k8s.event.reason": "Installed", "k8s.event.occurrences": 1, "k8s.event.count": 1},
			},
			want: "07:31:02 Normal  Installed            customresourcedefinition.apiextensions.k8s.io/shops.demo  made\n",
		},
		"an event with nothing in it, observed at a known time": {
			record: eventRecord{observed: true},
			want:   "07:31:02\n",
		},
		"a long reason is not cut": {
			record: eventRecord{typ: "Normal", event: map[string]any{"k8s.event.reason": "SuccessfulRescaleOfEverything"}, message: "m"},
			want:   "07:31:02 Normal  SuccessfulRescaleOfEverything  m\n",
		},
		"colours": {
			record: eventRecord{
				severity: plog.SeverityNumberWarn, typ: "Warning", object: stuckPod, message: "m",
				event: map[string]any{"k8s.event.reason": "Failed"},
			},
			color: true,
			want: "07:31:02 \x1b[33mWarning\x1b[0m Failed               demo pod/stuck-5d9f-abc " +
				"\x1b[2m← replicaset.apps/stuck-5d9f ← deployment.apps/stuck\x1b[0m \x1b[36m[stuck]\x1b[0m  m\n",
		},
		"a hostile event": {
			record: eventRecord{
				typ:     "Nor\x1b[31mmal",
				object:  map[string]any{"k8s.object.kind": "Pod", "k8s.object.name": "a\nb\x00c"},
				event:   map[string]any{"k8s.event.reason": "Re\x07ason"},
				message: "one\r\ntwo\t\x1b]0;title\x07three \x1b[2Jfour\u202e five\u009b six\xff\x1b",
			},
			want: "07:31:02 Normal  Reason               pod/a bc  one two three four five six\ufffd\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			exp := &linesExporter{out: &out, format: lineFormat{color: tt.color}}
			require.NoError(t, exp.ConsumeLogs(context.Background(), tt.record.logs(t)))
			assert.Equal(t, tt.want, out.String())
		})
	}
}

func TestLongMessageIsCut(t *testing.T) {
	var out bytes.Buffer
	exp := &linesExporter{out: &out}
	record := eventRecord{message: strings.Repeat("é", 10*maxMessage)}
	require.NoError(t, exp.ConsumeLogs(context.Background(), record.logs(t)))

	_, message, _ := strings.Cut(strings.TrimSuffix(out.String(), "\n"), "é")
	assert.Equal(t, strings.Repeat("é", maxMessage-2)+"…", message)
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestFailingWriteIsPermanent(t *testing.T) {
	exp := &linesExporter{out: brokenWriter{}}
	err := exp.ConsumeLogs(context.Background(), eventRecord{}.logs(t))
	require.ErrorContains(t, err, "standard output: broken pipe")
	assert.True(t, consumererror.IsPermanent(err))
}

func TestFactory(t *testing.T) {
	factory := NewFactory()
	exp, err := factory.CreateLogs(context.Background(), exportertest.NewNopSettings(factory.Type()), factory.CreateDefaultConfig())
	require.NoError(t, err)
	require.NoError(t, exp.Start(context.Background(), componenttest.NewNopHost()))
	assert.False(t, exp.Capabilities().MutatesData)
	require.NoError(t, exp.Shutdown(context.Background()))
}

func TestConfig(t *testing.T) {
	for _, color := range []Color{ColorAuto, ColorAlways, ColorNever} {
		cfg := NewFactory().CreateDefaultConfig().(*Config)
		require.NoError(t, confmap.NewFromStringMap(map[string]any{"color": string(color)}).Unmarshal(cfg))
		require.NoError(t, cfg.Validate())
		assert.Equal(t, color, cfg.Color)
	}
	require.EqualError(t, (&Config{Color: "red"}).Validate(), `color: "red" is not a valid value: use auto, always or never`)
}

func TestAutomaticColorIsForTerminals(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "out")
	require.NoError(t, err)
	defer file.Close()
	assert.False(t, ColorAuto.enabled(file))
	assert.True(t, ColorAlways.enabled(file))
	assert.False(t, ColorNever.enabled(file))
}
