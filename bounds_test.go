// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/kubeevents/kubeeventsreceiver/internal/apitest"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
)

func TestWhileThePipelineRejectsTheAPIServerKeepsTheEvents(t *testing.T) {
	for name, tt := range map[string]struct{ events, size, most int }{
		// A batch, what waits for the next, and what the stream holds out, each below 4 MiB.
		"small events": {8000, 10, 1000 + 4<<10 + 1},
		"large events": {120, 100_000, 2 * 4 << 20 / 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, api *apitest.Server) {
				p := &pipeline{rejects: errors.New("the queue is full")}
				ev := eventNamed("", 1)
				ev.Message = strings.Repeat("x", tt.size)
				for i := range tt.events {
					ev.Name = fmt.Sprintf("e%05d", i)
					api.Put(ev)
				}
				of := launch(t, api, options{config: "start_at: beginning", logs: p})
				settle()
				assert.Greater(t, p.attempted(), 5)
				assert.LessOrEqual(t, receiverOf(t, of).Health.Waiting(), int64(tt.most))
				p.reject(nil)
				eventually(t, func() bool { return p.LogRecordCount() == tt.events }, "and nothing is lost")
			})
		})
	}
}

func TestAPipelineThatRejectsForHoursCostsTheAPIServerNoConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		p := launch(t, api, options{config: "start_at: beginning", logs: &pipeline{rejects: errors.New("the queue is full")}})
		for i := range 120 {
			api.Put(eventNamed("a", int32(i+1)))
			time.Sleep(time.Minute)
		}
		assert.LessOrEqual(t, len(api.Requests()), 2, "the watch is closed and nobody connects")
		_, text := p.host.status()
		assert.Contains(t, text, "the logs pipeline has accepted no events")
		p.logs.reject(nil)
		eventually(t, func() bool { return occurrences(p.logs.records()...) == 120 })
		assert.False(t, p.host.fails())
	})
}

func TestANamespaceThatFloodsDoesNotStarveTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, api *apitest.Server) {
		const flood = 10_000
		for i := range flood {
			ev := eventNamed(fmt.Sprintf("flood%05d", i), 1)
			ev.Namespace = "flood"
			api.Put(ev)
		}
		quiet := eventNamed("quiet", 1)
		quiet.Namespace = "quiet"
		api.Put(quiet)
		release := make(chan struct{})
		logs := &pipeline{before: func() { <-release }}
		launch(t, api, options{config: "{start_at: beginning, namespaces: [flood, quiet]}", logs: logs, noMetrics: true})
		settle()
		close(release)
		eventually(t, func() bool { return logs.LogRecordCount() == flood+1 })
		assert.Less(t, slices.Index(logs.names(), "quiet+1"), flood/2,
			"it came long after the flood began and does not wait for its end")
	})
}

func TestSecretsDoNotReachTheLog(t *testing.T) {
	const secret = "do-not-tell-anyone"
	for name, status := range map[string]int{"not accepted": http.StatusUnauthorized, "not allowed": http.StatusForbidden, "broken": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			api := apitest.New(t)
			api.Refuse(func(*http.Request) int { return status })
			cfg := configFor(t, api.URL, "")
			kubeconfig, err := os.ReadFile(cfg.Kubeconfig)
			require.NoError(t, err)
			withToken := strings.Replace(string(kubeconfig), "user: {}", "user: {token: "+secret+"}", 1)
			require.NoError(t, os.WriteFile(cfg.Kubeconfig, []byte(withToken), 0o600))

			settings := receivertest.NewNopSettings(metadata.Type)
			core, logged := observer.New(zap.DebugLevel)
			settings.Logger = zap.New(core)
			launchInto(t, cfg, settings, componenttest.NewNopHost(), consumertest.NewNop(), nil)
			require.Eventually(t, func() bool { return logged.Len() > 0 }, patience, time.Millisecond, "the failure is told")
			for _, entry := range logged.All() {
				assert.NotContains(t, fmt.Sprint(entry.Message, entry.ContextMap()), secret)
			}
		})
	}
}
