// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKindsThatCannotExist(t *testing.T) {
	for text, fix := range map[string]string{
		"pods":             "kinds are singular, such as pod",
		"Pods":             "kinds are singular, such as pod",
		"deployments":      "kinds are singular, such as deployment",
		"deployments.apps": "kinds are singular, such as deployment",
		"":                 "is not a kind",
		"apps/Deployment":  "is not a kind",
		"deployment.":      "is not a kind",
		"a kind":           "is not a kind",
		"[a.example.com":   "not a valid glob",
		"*.[a":             "not a valid glob",
		".*":               "not a valid glob",
		"pod* ":            "not a valid glob",
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
