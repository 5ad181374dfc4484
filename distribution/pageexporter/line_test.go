// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
)

func TestLines(t *testing.T) {
	at := time.Date(2026, 3, 1, 7, 31, 2, 0, time.Local)
	stuckPod := entry{
		at: at, of: traits{"Warning", "FailedScheduling", "demo", "stuck"}, occurrences: 3, count: 3, message: "0/3 nodes are available",
		chain: []object{{"deployment", "apps", "stuck"}, {"replicaset", "apps", "stuck-5d9f"}, {"pod", "", "stuck-5d9f-abc"}},
	}
	backOff := entry{
		at: at, of: traits{"Warning", "BackOff", "demo"}, occurrences: 2, count: 11, message: "m", chain: []object{{"pod", "", "p"}},
	}
	again := backOff
	again.occurrences = 1
	tests := map[string]struct {
		entry entry
		want  string
	}{
		"everything that a line can hold": {
			stuckPod,
			"07:31:02 Warning FailedScheduling     demo pod/stuck-5d9f-abc ← replicaset.apps/stuck-5d9f ← deployment.apps/stuck [stuck] ×3  0/3 nodes are available\n",
		},
		"two of eleven occurrences": {backOff, "07:31:02 Warning BackOff              demo pod/p ×11 (+2)  m\n"},
		"the eleventh occurrence":   {again, "07:31:02 Warning BackOff              demo pod/p ×11  m\n"},
		"a cluster-scoped object, a long reason": {
			entry{at: at, of: traits{"Normal", "SuccessfulRescaleOfEverything", clusterScoped}, occurrences: 1, count: 1, message: "m", chain: []object{{"node", "", "n"}}},
			"07:31:02 Normal  SuccessfulRescaleOfEverything node/n  m\n",
		},
		"a hostile event": {
			entry{
				at: at, of: traits{"Nor\x1b[31mmal", "Re\x07ason", "demo"}, chain: []object{{"pod", "", "a\nb\x00c"}},
				message: "one\r\ntwo\t\x1b]0;title\x07three four\u202e five\u009b six\xff\x1b",
			},
			"07:31:02 Nor[31mmal Reason              demo pod/a bc  one  two ]0;titlethree four five six\ufffd\n",
		},
		"a long message": {
			entry{at: at, of: traits{"Normal", "Pulled", "demo"}, chain: []object{{"pod", "", "p"}}, message: strings.Repeat("é", maxLineMessage)},
			"07:31:02 Normal  Pulled               demo pod/p  " + strings.Repeat("é", maxLineMessage/2) + "…\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, tt.entry.line())
		})
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestLinesAreAnOption(t *testing.T) {
	var out bytes.Buffer
	e := newPageExporter(createDefaultConfig().(*Config), componenttest.NewNopTelemetrySettings())
	e.out = &out
	require.NoError(t, e.ConsumeLogs(t.Context(), eventLog(t, "BackOff", "one")))
	assert.Empty(t, out.String(), "lines are an option")

	e.config.Lines = true
	require.NoError(t, e.ConsumeLogs(t.Context(), eventLog(t, "BackOff", "two")))
	assert.Regexp(t, `^[0-9:]{8} Warning BackOff .* demo pod/stuck-5d9f-abc .*  two\n$`, out.String())

	e.out = brokenWriter{}
	err := e.ConsumeLogs(t.Context(), eventLog(t, "Failed", "three"))
	require.ErrorContains(t, err, "standard output: broken pipe")
	assert.True(t, consumererror.IsPermanent(err), "a closed standard output stays closed")
	assert.Len(t, e.store.see(filterFrom(nil)).Cards[0].Reasons, 2, "the page has the event")
}
