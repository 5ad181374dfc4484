// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/image"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// brokenImage is an image whose program ends at once.
const brokenImage = "example.com/broken:1"

// judge compares what the page says of stages with what was done.
type judge struct {
	*cluster
	collector                   *harness.Collector
	page                        string // its URL
	records                     string // the file of the file exporter
	emitted, forbidden, without *harness.Backend
}

// changes stages changes before crashes, and asks the page for the causes.
func (c *cluster) changes(t *testing.T) {
	j := c.newJudge(t)
	for _, ofTools := range []string{"argocd", "flux-system"} {
		c.newNamespace(t, ofTools)
	}
	var all []*staged
	for _, stage := range changeStages {
		s := &staged{cluster: c, stage: stage, all: t.Context()}
		s.create(t)
		t.Cleanup(func() { // Its containers end again and again.
			require.NoError(t, c.CoreV1().Namespaces().Delete(context.Background(), s.name, metav1.DeleteOptions{}))
		})
		all = append(all, s)
	}
	for _, s := range all {
		s.awaitAvailable(t)
	}
	require.True(t, t.Run("staged", func(t *testing.T) {
		for _, s := range all {
			t.Run(s.name, func(t *testing.T) { t.Parallel(); s.change(t, s) })
		}
	}))
	unknown := 0
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) { unknown += j.judge(t, s) })
	}
	assert.LessOrEqual(t, unknown, len(all)/10, "causes that are not known")
	t.Run("without permissions", j.assertForbidden)
	t.Run("no values", j.assertNoValues)
}

func (c *cluster) newJudge(t *testing.T) *judge {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "broken.tar")
	require.NoError(t, image.Pack(archive, filepath.Join(c.Binaries(), "node"), brokenImage))
	require.NoError(t, c.node.ImportImage(t.Context(), archive))
	addresses, err := process.FreeAddresses(1)
	require.NoError(t, err)
	events := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"get", "list", "watch"}}
	forbidden, err := c.RestrictedKubeconfig(t.Context(), "only-events", events)
	require.NoError(t, err)
	j := &judge{
		cluster: c, page: "http://" + addresses[0], records: filepath.Join(t.TempDir(), "records.json"),
		emitted: harness.NewBackend(t), forbidden: harness.NewBackend(t), without: harness.NewBackend(t),
	}
	j.collector = harness.Run(t, harness.Otelcol(t), harness.InRepository("e2e", "node", "testdata", "changes", "collector.yaml"),
		"KUBECONFIG="+c.KubeconfigFor(t, "changes", "deploy/manifests/default.yaml", "e2e/node/testdata/changes/configmaps.yaml"), "FORBIDDEN="+forbidden,
		"PAGE="+addresses[0], "RECORDS="+j.records,
		"BACKEND="+j.emitted.URL, "BACKEND_FORBIDDEN="+j.forbidden.URL, "BACKEND_WITHOUT="+j.without.URL)
	harness.Eventually(t, func() bool {
		response, err := http.Get(j.page + "/api/problems")
		return err == nil && response.Body.Close() == nil
	}, "the page")
	return j
}

// told is what the page says of a problem.
type told struct {
	Workload struct{ Namespace, Name string }
	Class    string
	Ended    string
	Count    int
	Causes   []struct{ Text string }
	Unknown  string
	Members  []any
}

// get reads an answer of the page.
func (j *judge) get(t *testing.T, path string) []byte {
	t.Helper()
	response, err := http.Get(j.page + path)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", answer)
	return answer
}

func (j *judge) problems(t *testing.T, namespace string) (all []told) {
	t.Helper()
	var answer struct{ Problems []told }
	require.NoError(t, json.Unmarshal(j.get(t, "/api/problems?namespace="+namespace), &answer))
	return answer.Problems
}

// workloads returns the IDs of all workloads.
func (j *judge) workloads(t *testing.T) (ids []string) {
	t.Helper()
	var answer struct {
		Workloads []struct{ Workload struct{ ID string } }
	}
	require.NoError(t, json.Unmarshal(j.get(t, "/api/workloads?limit=1000"), &answer))
	for _, w := range answer.Workloads {
		ids = append(ids, w.Workload.ID)
	}
	return ids
}

// judge waits until the page knows how the container of a stage ended, and that it did so again. It
// returns 1 if the page does not name a cause, and another one than the stage's fails the test.
func (j *judge) judge(t *testing.T, s *staged) (unknown int) {
	var problem *told
	found := harness.Poll(waitTimeout, func() bool {
		time.Sleep(time.Second) // The page also answers others.
		for _, p := range j.problems(t, s.name) {
			isWhole := p.Count >= 2*max(1, len(p.Members)) && len(p.Members) >= s.shared
			isEndKnown := p.Ended != "" || p.Class == "start" // The message of such a problem says why.
			if isEndKnown && isWhole && (p.Workload.Name == "web" || len(p.Members) > 0) {
				problem = &p
			}
		}
		return problem != nil
	})
	require.True(t, found, "a problem of %s, in:\n%s", s.name, j.get(t, "/api/problems?namespace="+s.name))
	var texts []string
	for _, c := range problem.Causes {
		texts = append(texts, c.Text)
	}
	t.Logf("%s, %d causes: %s; %s", problem.Ended, len(texts), strings.Join(texts, " | "), problem.Unknown)
	if s.never != "" {
		assert.NotContains(t, strings.Join(texts, "\n"), s.never)
	}
	if len(texts) == 0 {
		assert.Contains(t, problem.Unknown, s.unknown)
		return min(1, len(s.first))
	}
	if assert.NotEmpty(t, s.first, "no cause is right: %s", texts) {
		assert.Contains(t, texts[0], s.first)
		assert.Contains(t, strings.Join(texts, "\n"), s.also)
	}
	return 0
}

// assertForbidden compares the records of a receiver that may read nothing else than Events with those of one
// without details.
func (j *judge) assertForbidden(t *testing.T) {
	const resolution = "k8s.details.resolution"
	var expected, got map[any]harness.Record
	harness.Eventually(t, func() bool {
		time.Sleep(time.Second) // Each look at the records takes a while.
		expected, got = byUID(j.without), byUID(j.forbidden)
		return len(expected) > 0 && len(expected) == len(got)
	}, "the same number of records with forbidden details")
	count := 0
	for uid, record := range got {
		if value, ok := record.Attributes[resolution]; ok {
			assert.Equal(t, "forbidden", value)
			delete(record.Attributes, resolution)
			count++
		}
		assert.Equal(t, expected[uid].Attributes, record.Attributes)
		assert.Equal(t, expected[uid].Resource, record.Resource)
		assert.Equal(t, expected[uid].Log.Body().AsString(), record.Log.Body().AsString())
	}
	assert.Positive(t, count, "records of which the details are forbidden")
	t.Logf("%d records, %d with forbidden details", len(got), count)
}

func byUID(b *harness.Backend) map[any]harness.Record {
	all := map[any]harness.Record{}
	for _, r := range b.Records() {
		all[r.Get("log.record.uid")] = r
	}
	return all
}

// assertNoValues checks that no value is in what the Collector wrote.
func (j *judge) assertNoValues(t *testing.T) {
	records, err := os.ReadFile(j.records)
	require.NoError(t, err)
	outputs := map[string]string{"records": string(records), "log": j.collector.Output.String()}
	for _, path := range []string{"/", "/api/problems", "/api/changes", "/api/workloads", "/api/events"} {
		outputs[path] = string(j.get(t, path+"?limit=1000"))
	}
	for _, id := range j.workloads(t) {
		outputs["/api/workloads/ID"] += string(j.get(t, "/api/workloads/"+id))
	}
	for name, b := range map[string]*harness.Backend{"backend": j.emitted, "backend of what is forbidden": j.forbidden} {
		for _, r := range b.Records() {
			outputs[name] += fmt.Sprint(r.Resource, r.Attributes, r.Log.Body().AsString())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		assert.NotEmpty(t, outputs[name], name)
		assert.Zero(t, strings.Count(outputs[name], "s3cret"), "values in %s", name)
		t.Logf("%s: %d bytes", name, len(outputs[name]))
	}
	assert.Contains(t, outputs["records"], "env app DO changed", "what changed is there, by name")
}
