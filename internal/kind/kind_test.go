// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestTheKindsAreThoseThatClientGoKnows(t *testing.T) {
	want := map[string][]string{}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		kind := strings.ToLower(gvk.Kind)
		isObject := !strings.HasSuffix(kind, "list") && !strings.HasSuffix(kind, "options") && kind != "watchevent"
		if isObject && gvk.Version != "__internal" && !slices.Contains(want[gvk.Group], kind) {
			want[gvk.Group] = append(want[gvk.Group], kind)
		}
	}
	got := map[string][]string{}
	for group, kinds := range kindsOf {
		got[group] = strings.Fields(kinds)
		slices.Sort(want[group])
	}
	assert.Equal(t, want, got)
}

func TestKindsThatCannotExist(t *testing.T) {
	for text, fix := range map[string]string{
		"pods":                   "write pod",
		"Pods":                   "write pod",
		"deployments":            "write deployment",
		"deployments.apps":       "write deployment.apps",
		"ingresses":              "write ingress",
		"deploy":                 "write deployment",
		"svc":                    "write service",
		"pod.apps":               "write pod",
		"deployment.batch":       "write deployment.apps",
		"replicasets.batch":      "write replicaset.apps",
		"deployment.v1.apps":     "write deployment.apps",
		"pod.v1":                 "write pod",
		"rollout.v1.argoproj.io": "write rollout.argoproj.io",
		"":                       "is not a kind",
		"apps/Deployment":        "is not a kind",
		"deployment.":            "is not a kind",
		"a kind":                 "is not a kind",
		"[a.example.com":         "not a valid glob",
		"*.[a":                   "not a valid glob",
		".*":                     "not a valid glob",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := ParseGlob(text)
			assert.ErrorContains(t, err, fix)
		})
	}
}

func TestKindsThatMayExist(t *testing.T) {
	for _, text := range []string{
		"pod", "Pod", "endpoints", "componentstatus", "storageclass", "ingress", "ingress.networking.k8s.io",
		"deployment", "deployment.extensions", "podmetrics", "podmetrics.metrics.k8s.io", "prometheus.monitoring.coreos.com",
		"pods.example.com", "gateway.apps", "event", "event.events.k8s.io", "Widget", "v1.example.com",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := Parse(text)
			require.NoError(t, err)
		})
	}
}
