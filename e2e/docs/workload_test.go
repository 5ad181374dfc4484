// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// TestSameWorkload: what an agent sends about a pod gets the workload that the pod's events have, with the rights of
// the chart.
func TestSameWorkload(t *testing.T) {
	t.Parallel()
	backend, gateway := harness.NewBackend(t), freeAddress(t)
	collector := harness.Run(t, harness.Otelcol(t), harness.InRepository(file("same-workload", "gateway.yaml")),
		"KUBECONFIG="+kubeconfigFor(t, "same-workload"), "OTLP_ENDPOINT="+backend.URL, "GATEWAY_ENDPOINT="+gateway)
	kube.Apply(t, file("same-workload", "workload.yaml"))
	event := backend.Await(t, "k8s.event.reason", "Scheduled", "k8s.namespace.name", "same-workload")

	logs := plog.NewLogs()
	resource := logs.ResourceLogs().AppendEmpty()
	for _, name := range []string{"k8s.namespace.name", "k8s.pod.name", "k8s.pod.uid"} {
		resource.Resource().Attributes().PutStr(name, event.Get(name).(string))
	}
	resource.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("a line")
	var line harness.Record
	lines := 0
	harness.Eventually(t, func() bool { // What comes before the workload is known waits for 200 ms, not longer.
		lines++
		path := fmt.Sprint("line ", lines)
		resource.Resource().Attributes().PutStr("log.file.path", path)
		send(t, gateway, logs)
		line = backend.Await(t, "log.file.path", path)
		return line.Get("k8s.workload.uid") != nil
	}, "a line with its workload")
	collector.Stop(t)

	for _, name := range []string{"k8s.workload.api_version", "k8s.workload.kind", "k8s.workload.name", "k8s.workload.uid"} {
		require.NotNil(t, event.Get(name), name)
		assert.Equal(t, event.Get(name), line.Get(name), name)
	}
	assert.Equal(t, "Deployment", line.Get("k8s.workload.kind"))
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// send sends logs as an agent does.
func send(t *testing.T, gateway string, logs plog.Logs) {
	t.Helper()
	connection, err := grpc.NewClient(gateway, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	_, err = plogotlp.NewGRPCClient(connection).Export(t.Context(), plogotlp.NewExportRequestFromLogs(logs), grpc.WaitForReady(true))
	require.NoError(t, err)
}
