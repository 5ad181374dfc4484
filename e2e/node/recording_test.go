// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// recording is a file that the golden test of the receiver reads.
type recording struct {
	Objects []metav1.PartialObjectMetadata `json:"objects"`
	States  []corev1.Event                 `json:"states"`
}

// write writes the recording of a situation.
func (r *running) write(t *testing.T, states []corev1.Event) {
	t.Helper()
	version, err := r.Discovery().ServerVersion()
	require.NoError(t, err)
	content, err := yaml.Marshal(r.recording(t, states))
	require.NoError(t, err)
	text := fmt.Sprintf("# %s\n# Recorded from Kubernetes %s by make record-producers.\n%s", r.about, version.GitVersion, content)
	assertNoHost(t, text)
	path := harness.InRepository("testdata", "producers", "kubernetes", r.name+".yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func (r *running) recording(t *testing.T, states []corev1.Event) (all recording) {
	t.Helper()
	slices.SortStableFunc(states, byResourceVersion)
	for _, state := range states {
		if slices.ContainsFunc(all.States, func(s corev1.Event) bool { return s.ResourceVersion == state.ResourceVersion }) {
			continue // two wants that the same event fulfils
		}
		all.States = append(all.States, r.withoutHost(t, state))
		for _, object := range r.recorder.chainOf(&state) {
			if !slices.ContainsFunc(all.Objects, func(o metav1.PartialObjectMetadata) bool { return o.UID == object.UID }) {
				all.Objects = append(all.Objects, object)
			}
		}
	}
	return all
}

func byResourceVersion(a, b corev1.Event) int {
	first, _ := strconv.ParseUint(a.ResourceVersion, 10, 64)
	second, _ := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return int(int64(first) - int64(second))
}

// withoutHost returns an event without what is different on each machine: the scheduler adds the
// machine's name to its own.
func (r *running) withoutHost(t *testing.T, event corev1.Event) corev1.Event {
	t.Helper()
	host, err := os.Hostname()
	require.NoError(t, err)
	event.ManagedFields = nil
	if name, found := strings.CutSuffix(event.ReportingInstance, "-"+host); found {
		event.ReportingInstance = name + "-" + r.node.Name()
	}
	if event.Source.Host == host {
		event.Source.Host = r.node.Name()
	}
	return event
}

// assertNoHost checks that a recording does not name this machine.
func assertNoHost(t *testing.T, text string) {
	t.Helper()
	host, err := os.Hostname()
	require.NoError(t, err)
	assert.NotRegexp(t, `\b`+regexp.QuoteMeta(host)+`\b`, text)
}
