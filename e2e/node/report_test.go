// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/account"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// row is what a fault did to the events that one release delivers.
type row struct {
	account.Outcome

	fault   string
	release *release
	metric  int64
	counted int64         // occurrences in all records, also those that were repeated
	missed  int64         // occurrences of events that the API server still has
	pause   time.Duration // the longest time without a record
}

// check checks that the row is as promised.
func (r row) check(t *testing.T) {
	t.Helper()
	t.Logf("%s, %s: %+v, metric %d, pause %s", r.fault, r.release.mode(), r.Outcome, r.metric, r.pause)
	assert.Positive(t, r.Made)
	assert.Zero(t, r.missed, "lost occurrences of events that have not expired")
	assert.Zero(t, r.Surplus, "occurrences that come twice without the same log.record.uid")
	// A kill loses what was counted after the last collection.
	assert.LessOrEqual(t, r.metric, r.counted, "the metric's total")
}

// mode is the value `mode` of the release, with its replicas where there can be several.
func (r *release) mode() string {
	if mode, ok := r.values["mode"]; ok {
		return fmt.Sprintf("`%s`", mode)
	}
	if replicas, ok := r.values["replicas"]; ok {
		return fmt.Sprintf("`ha`, %d replicas", replicas)
	}
	return "`ha`, 1 replica"
}

// report collects the rows of all tests of a cluster.
type report struct {
	mu   sync.Mutex
	rows []row
}

func (r *report) add(result row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, result)
}

// write puts the table into a section of the page that CLUSTER_REPORT names, sorted by mode.
func (c *cluster) write(t *testing.T, section, introduction string) {
	t.Helper()
	path := os.Getenv("CLUSTER_REPORT")
	if path == "" || t.Failed() {
		return
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\n", introduction)
	text.WriteString("| Fault | `mode` | Occurred | Delivered | Lost | Records repeated | Not recognisable | Time to the next record |\n" +
		"|---|---|--:|--:|--:|--:|--:|--:|\n")
	slices.SortStableFunc(c.report.rows, func(a, b row) int { return -strings.Compare(a.release.mode(), b.release.mode()) })
	for _, r := range c.report.rows {
		fmt.Fprintf(&text, "| %s | %s | %d | %d | %d | %d | %d | %.1f s |\n", r.fault, r.release.mode(),
			r.Made, r.Delivered, r.Lost, r.Repeated, r.Surplus, r.pause.Seconds())
	}
	harness.ReplaceSection(t, path, section, func(string) string { return text.String() })
}

// environment says when and where the tests ran.
func (c *cluster) environment(t *testing.T) string {
	t.Helper()
	node, err := c.CoreV1().Nodes().Get(t.Context(), c.node.Name(), metav1.GetOptions{})
	require.NoError(t, err)
	info := node.Status.NodeInfo
	return fmt.Sprintf("Run on %s at commit %s, with kubelet %s and %s.",
		time.Now().UTC().Format(time.DateOnly), harness.Commit(t), info.KubeletVersion, strings.Replace(info.ContainerRuntimeVersion, "://", " ", 1))
}
