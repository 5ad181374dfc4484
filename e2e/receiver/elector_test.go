// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/k8sleaderelector"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/receivertest"

	kubeevents "github.com/kubeevents/kubeeventsreceiver"
	"github.com/kubeevents/kubeeventsreceiver/internal/election"
)

const (
	leaseDuration = 6 * time.Second
	renewDeadline = 5 * time.Second // A term must not end because the API server is slow for a moment.
)

type extensions map[component.ID]component.Component

func (e extensions) GetExtensions() map[component.ID]component.Component { return e }

var electorID = component.MustNewID("k8s_leader_elector")

// startElector starts contrib's extension with a Lease in a namespace. It reaches the API server
// through a gateway.
func startElector(t *testing.T, g *gateway, namespace string) extensions {
	t.Helper()
	t.Setenv("KUBECONFIG", g.kubeconfig)
	factory := k8sleaderelector.NewFactory()
	config := factory.CreateDefaultConfig().(*k8sleaderelector.Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"auth_type": "kubeConfig", "lease_name": "kube-events", "lease_namespace": namespace,
		"lease_duration": leaseDuration, "renew_deadline": renewDeadline, "retry_period": "100ms",
	}).Unmarshal(config))
	settings := extension.Settings{TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	settings.ID = electorID
	created, err := factory.Create(t.Context(), settings, config)
	require.NoError(t, err)
	host := extensions{electorID: created}
	require.NoError(t, created.Start(t.Context(), host))
	t.Cleanup(func() { assert.NoError(t, created.Shutdown(context.Background())) })
	return host
}

// TestTheEndOfATerm: the extension calls its users one after the other, and waits for each. Whatever
// hangs in one of them, no receiver emits after its term, and the next term delivers the rest.
func TestTheEndOfATerm(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, host extensions, emitted *consumertest.LogsSink) (hanging consumer.Logs, release func()){
		"another user of the extension hangs": func(_ *testing.T, host extensions, emitted *consumertest.LogsSink) (consumer.Logs, func()) {
			stop := make(chan struct{})
			host[electorID].(election.Elector).SetCallBackFuncs(func(context.Context) {}, func() { <-stop })
			return emitted, sync.OnceFunc(func() { close(stop) })
		},
		"a delivery of another receiver hangs": func(t *testing.T, _ extensions, _ *consumertest.LogsSink) (consumer.Logs, func()) {
			stop := make(chan struct{})
			hanging, err := consumer.NewLogs(func(context.Context, plog.Logs) error {
				<-stop
				return nil
			})
			require.NoError(t, err)
			return hanging, sync.OnceFunc(func() { close(stop) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			ns, g := kube.newNamespace(t), newGateway(t, kube.Kubeconfig())
			withoutLeases := refuse(http.StatusServiceUnavailable, func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/leases") })
			g.inject(withoutLeases) // Until all users have registered.
			host := startElector(t, g, ns)
			var first, second consumertest.LogsSink
			next, release := test(t, host, &first)
			for i, logs := range []consumer.Logs{next, &second} {
				settings := receivertest.NewNopSettings(kubeevents.NewFactory().Type())
				settings.ID = component.NewIDWithName(settings.ID.Type(), fmt.Sprint(i))
				start(t, settings, kube.parse(t, in(ns), g.config(), "k8s_leader_elector: "+electorID.String(), fmt.Sprintf("progress_config_map: %s/progress-%d", ns, i)), host, logs, nil)
			}
			t.Cleanup(release)
			g.inject(nil)
			has := func(records int) func() bool {
				return func() bool {
					return second.LogRecordCount() == records && (next != consumer.Logs(&first) || first.LogRecordCount() == records)
				}
			}
			kube.makeEvent(t, ns, eventOf("Before", "pod"))
			eventually(t, has(1), "the first record")
			g.inject(withoutLeases)
			time.Sleep(leaseDuration + time.Second) // Another replica may lead now.
			for range 5 {
				kube.makeEvent(t, ns, eventOf("After", "pod"))
				time.Sleep(200 * time.Millisecond)
			}
			assert.True(t, has(1)(), "first has %d, second has %d", first.LogRecordCount(), second.LogRecordCount())
			g.inject(nil)
			release()
			eventually(t, has(6), "the next term delivers it")
		})
	}
}
