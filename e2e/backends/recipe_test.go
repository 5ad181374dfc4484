// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// TestTheQueriesOfTheRecipe: the commands in the README of examples/backends print what it shows.
func TestTheQueriesOfTheRecipe(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("the recipe asks with curl, which is not installed: ", err)
	}
	addresses := strings.NewReplacer("http://127.0.0.1:9090", all.scraped.url, "http://127.0.0.1:3100", all.loki.url,
		"limit=20", "limit=1000") // Other tests also make events.
	sh := func(command string) ([]string, error) {
		output, err := process.Shell(harness.InRepository(), command)
		return strings.Split(output, "\n"), err
	}
	asked := 0
	found := blocks(addresses.Replace(harness.Read(t, "examples", "backends", "README.md")))
	for i, b := range found {
		if b.language == "text" {
			asked++
			q := query{language: "sh", text: found[i-1].text, returns: strings.Split(strings.TrimSpace(b.text), "\n")}
			eventually(t, func() error { return q.check(sh) })
		}
	}
	assert.Equal(t, 2, asked)
}

// TestLokiTakesOldEvents: not only those of the last hour, though there are newer ones in the stream.
func TestLokiTakesOldEvents(t *testing.T) {
	t.Parallel()
	aboutNode := query{text: `{log_source="kube_events"} | k8s_object_kind="Node" | k8s_namespace_name=""`, returns: []string{"Node node-0 event: …"}}
	eventually(t, func() error { return aboutNode.check(all.loki.messages) })
	past := metav1.NewTime(time.Now().Add(-2 * time.Hour))
	_, err := all.cluster.CoreV1().Events(metav1.NamespaceDefault).Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "old-"}, InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node-0"},
		Type: "Normal", Reason: "Old", Message: "two hours ago", Count: 1, FirstTimestamp: past, LastTimestamp: past,
		Source: corev1.EventSource{Component: "recipe-test"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	aboutNode.returns = []string{"two hours ago"}
	eventually(t, func() error { return aboutNode.check(all.loki.messages) })
}

// TestLokiHasAStreamForEachWorkload, and none for each pod.
func TestLokiHasAStreamForEachWorkload(t *testing.T) {
	t.Parallel()
	gone := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "mistakes", Name: "gone"}
	report(t, gone, "Normal", "Killing", "it does not exist")
	for _, one := range []string{`service_name="kube-events"} | k8s_pod_name="gone"`, `service_name="shop"} | k8s_pod_name=~"shop-.*"`} {
		eventually(t, func() error {
			return query{text: `{log_source="kube_events", ` + one, returns: []string{"…"}}.check(all.loki.messages)
		})
	}
	streams, err := all.loki.streams(`{log_source="kube_events"}`)
	require.NoError(t, err)
	for _, labels := range streams {
		assert.NotRegexp(t, `^(gone|alone|(shop|crashing|mistyped)-.*)$`, labels["service_name"])
		for label := range labels { // The rest is structured metadata.
			assert.Contains(t, []string{"log_source", "service_name", "k8s_cluster_name", "k8s_namespace_name"}, label)
		}
	}
}

// TestTheRecipeHasTheStreamsOfThePage: examples/backends configures the streams as docs/queries.md.
func TestTheRecipeHasTheStreamsOfThePage(t *testing.T) {
	t.Parallel()
	type config struct {
		Ingester struct {
			MaxChunkAge string `json:"max_chunk_age"`
		}
		Querier map[string]any
		Limits  struct {
			OTLP map[string]any `json:"otlp_config"`
		} `json:"limits_config"`
		Processors map[string]any
	}
	parse := func(text string) (c config) {
		require.NoError(t, yaml.Unmarshal([]byte(text), &c))
		return c
	}
	page, recipe := parse(all.page.loki), parse(harness.Read(t, "examples", "backends", "loki.yaml"))
	require.NotEmpty(t, page.Limits.OTLP)
	assert.Equal(t, page.Limits.OTLP, recipe.Limits.OTLP)
	require.NotEmpty(t, page.Ingester.MaxChunkAge)
	assert.Equal(t, page.Ingester, recipe.Ingester)
	assert.Equal(t, page.Querier, recipe.Querier)
	page, recipe = parse(all.page.collector), parse(harness.Read(t, "examples", "backends", "collector.yaml"))
	require.NotEmpty(t, page.Processors)
	assert.Equal(t, page.Processors, recipe.Processors)
}
