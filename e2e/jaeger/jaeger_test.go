// SPDX-License-Identifier: Apache-2.0

// Package jaeger tests the recipe of rollouts with a real Jaeger: it finds the traces that the connector
// sends, and shows them as docs/rollouts.md says.
package jaeger

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
	"github.com/kubeevents/kubeeventsreceiver/e2e/replay"
)

// fleet is one Deployment with two pods.
var fleet = &replay.Fleet{Namespaces: 1, Deployments: 1, Pods: 2}

// The pods of the fleet. Both pull the same image, and only one of them gets it.
const (
	started = 0
	failed  = 1
)

const (
	workload = "app-0000"
	image    = "registry.example.com/app:2"
)

// server has the query API of a Jaeger, and the address where it takes OTLP.
type server struct{ query, otlp string }

func program(t *testing.T) string {
	t.Helper()
	path := harness.InRepository("build", "backends", "jaeger")
	if _, err := os.Stat(path); err != nil && os.Getenv("CI") == "" {
		t.Skip("make backends builds what is missing: ", err)
	}
	return path
}

func startJaeger(t *testing.T) server {
	t.Helper()
	free, err := process.FreeAddresses(3)
	require.NoError(t, err)
	command := exec.Command(program(t), "--config", filepath.Join("testdata", "jaeger.yaml"))
	command.Env = append(os.Environ(), "OTLP="+free[0], "QUERY="+free[1], "QUERY_GRPC="+free[2])
	process := harness.StartProcess(t, command)
	s := server{query: "http://" + free[1], otlp: "http://" + free[0]}
	require.NoError(t, process.WaitUntilReady(t.Context(), 100*time.Millisecond, func() error {
		_, err := s.traces()
		return err
	}))
	return s
}

// trace is a trace as Jaeger's query API has it.
type trace struct {
	TraceID string
	Spans   []span
}

type span struct {
	SpanID, OperationName string
	References            []struct{ RefType, SpanID string }
	StartTime, Duration   int64 // microseconds
	Tags                  []tag
	Logs                  []struct{ Fields []tag }
}

type tag struct {
	Key   string
	Value any
}

func valueOf(tags []tag, key string) any {
	if i := slices.IndexFunc(tags, func(one tag) bool { return one.Key == key }); i >= 0 {
		return tags[i].Value
	}
	return nil
}

// traces returns the rollouts of the workload, as a user searches for them.
func (s server) traces() ([]trace, error) {
	query := url.Values{"service": {workload}, "operation": {"rollout deployment/" + workload}, "lookback": {"1h"}}
	response, err := http.Get(s.query + "/api/traces?" + query.Encode())
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %w", response.Status, body, err)
	}
	var answer struct{ Data []trace }
	return answer.Data, json.Unmarshal(body, &answer)
}

// tree returns the spans as lines: name, error, and the names of events, below their parents.
func (tr trace) tree() string {
	slices.SortFunc(tr.Spans, func(a, b span) int { return strings.Compare(a.OperationName, b.OperationName) })
	var lines strings.Builder
	tr.write(&lines, "", "")
	return lines.String()
}

func (tr trace) write(lines *strings.Builder, parent, indent string) {
	for _, s := range tr.Spans {
		if s.parent() != parent {
			continue
		}
		_, _ = fmt.Fprintf(lines, "%s%s", indent, s.OperationName)
		if valueOf(s.Tags, "error") == true {
			_, _ = fmt.Fprintf(lines, ": %s", valueOf(s.Tags, "otel.status_description"))
		}
		for _, event := range s.Logs {
			_, _ = fmt.Fprintf(lines, " [%s]", valueOf(event.Fields, "event"))
		}
		_, _ = lines.WriteString("\n")
		tr.write(lines, s.SpanID, indent+"  ")
	}
}

func (s span) parent() string {
	for _, reference := range s.References {
		if reference.RefType == "CHILD_OF" {
			return reference.SpanID
		}
	}
	return ""
}

// events returns what kubelets and the scheduler write about the pods, from a time on.
func events(at time.Time) (all []*corev1.Event) {
	put := func(ev *corev1.Event, eventType, reason, message string) {
		ev.Type, ev.Reason, ev.Message = eventType, reason, message
		all = append(all, ev)
	}
	// The names of events have their time, so no two of a pod have the same.
	next := func(pod int) *corev1.Event {
		return fleet.Started(pod, at.Add(time.Duration(len(all))*time.Millisecond))
	}
	for _, pod := range []int{started, failed} {
		all = append(all, fleet.Scheduled(pod, at))
		put(next(pod), corev1.EventTypeNormal, "Pulling", `Pulling image "`+image+`"`)
	}
	put(next(started), corev1.EventTypeNormal, "Pulled", `Successfully pulled image "`+image+`" in 1s (1s including waiting). Image size: 1234 bytes.`)
	put(next(started), corev1.EventTypeNormal, "Created", "Container created")
	put(next(started), corev1.EventTypeNormal, "Started", "Container started")
	put(next(failed), corev1.EventTypeWarning, "Failed", `Failed to pull image "`+image+`": too many requests`)
	put(next(failed), corev1.EventTypeNormal, "BackOff", `Back-off pulling image "`+image+`"`)
	return all
}

// startCollector starts the Collector of the recipe, which waits less for news.
func startCollector(t *testing.T, api *replay.Server, logs, traces string) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, api.WriteKubeconfig(kubeconfig))
	command := exec.Command(harness.Otelcol(t), "--config", harness.InRepository("examples", "rollouts", "collector.yaml"),
		"--config", "yaml:connectors::kube_rollouts::idle_timeout: 3s", "--config", "yaml:connectors::kube_rollouts::settle_time: 1s",
		"--set=service.telemetry.metrics.level=none")
	harness.Start(t, command, "KUBECONFIG="+kubeconfig, "OTLP_ENDPOINT="+logs, "OTLP_ENDPOINT_TRACES="+traces)
	harness.Eventually(t, func() bool {
		asked := api.Requests()
		return asked[replay.EventsWatch]+asked[replay.EventsStream] > 0
	}, "the Collector watches")
}

// startGateway starts the gateway of the recipe, which waits less for spans, and returns its address.
// Jaeger has its components, of an older version.
func startGateway(t *testing.T, backend string) string {
	t.Helper()
	free, err := process.FreeAddresses(1)
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "gateway.yaml")
	content := strings.NewReplacer("otlp_http", "otlphttp", "decision_wait: 30s", "decision_wait: 1s").Replace(harness.Read(t, "examples", "rollouts", "gateway.yaml"))
	require.NoError(t, os.WriteFile(config, []byte(content), 0o600))
	command := exec.Command(program(t), "--config", config, "--set=service.telemetry.metrics.level=none")
	command.Env = append(os.Environ(), "GATEWAY_ENDPOINT="+free[0], "OTLP_ENDPOINT="+backend)
	process := harness.StartProcess(t, command)
	require.NoError(t, process.WaitUntilReady(t.Context(), 100*time.Millisecond, func() error {
		response, err := http.Get("http://" + free[0])
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}))
	return "http://" + free[0]
}

func TestRolloutInJaeger(t *testing.T) {
	for name, gateway := range map[string]bool{"directly": false, "through a gateway that samples": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testRollout(t, gateway)
		})
	}
}

func testRollout(t *testing.T, gateway bool) {
	t.Helper()
	jaeger, backend := startJaeger(t), harness.NewBackend(t)
	traces := jaeger.otlp
	if gateway {
		traces = startGateway(t, jaeger.otlp)
	}
	api, err := replay.Start(replay.Options{Fleet: fleet})
	require.NoError(t, err)
	t.Cleanup(api.Close)
	startCollector(t, api, backend.URL, traces)
	recorder := replay.NewRecorder()
	for _, ev := range events(time.Now()) {
		api.Release(recorder.Frame(watch.Added, ev))
	}

	cause := `Failed to pull image "` + image + `": too many requests`
	pods := []string{events(time.Now())[0].InvolvedObject.Name, events(time.Now())[2].InvolvedObject.Name}
	blocks := map[string]string{
		pods[0]: "  pod " + pods[0] + "\n    pull app\n    schedule\n    start app\n",
		pods[1]: "  pod " + pods[1] + ": " + cause + "\n    pull app: " + cause + " [Failed] [BackOff]\n    schedule\n",
	}
	slices.Sort(pods)
	expected := "rollout deployment/" + workload + ": " + cause + "\n" + blocks[pods[0]] + blocks[pods[1]]
	var found []trace
	harness.Eventually(t, func() bool { // A pod that has started comes earlier than the others.
		found, err = jaeger.traces()
		require.NoError(t, err)
		return len(found) == 1 && found[0].tree() == expected
	}, "the trace")
	requireTags(t, found[0])

	// Each record of the pods leads to the trace.
	record := backend.Await(t, "k8s.event.reason", "Started")
	assert.Equal(t, found[0].TraceID, record.Log.TraceID().String())
}

// requireTags checks what a reader sees first: what failed, and how many pods.
func requireTags(t *testing.T, found trace) {
	t.Helper()
	i := slices.IndexFunc(found.Spans, func(s span) bool { return s.parent() == "" })
	require.GreaterOrEqual(t, i, 0)
	root := found.Spans[i]
	for key, expected := range map[string]any{
		"k8s.rollout.outcome": "failed", "k8s.rollout.pods.planned": 2.0, "k8s.rollout.pods.started": 1.0, "k8s.rollout.pods.failed": 1.0,
	} {
		assert.Equal(t, expected, valueOf(root.Tags, key), key)
	}
	for _, s := range found.Spans {
		for _, event := range s.Logs {
			assert.NotEmpty(t, valueOf(event.Fields, "message"), s.OperationName)
			assert.NotEmpty(t, valueOf(event.Fields, "log.record.uid"), s.OperationName)
		}
	}
}
