// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEachListIsAFilter(t *testing.T) {
	event := func(namespace, kind, reason, typ string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Reason: reason, Type: typ,
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: namespace},
		}
	}
	pod, claim := event("shop", "Pod", "BackOff", "Warning"), event("dev", "PersistentVolumeClaim", "Resizing", "Normal")
	for config, wantsPod := range map[string]bool{
		"include_kinds: [pod]":         true,
		"exclude_kinds: [pod]":         false,
		"include_reasons: [Back*]":     true,
		"exclude_reasons: [Back*]":     false,
		"event_types: [Warning]":       true,
		"exclude_namespaces: [shop]":   false,
		"exclude_namespaces: ['d*']":   true,
		"include_kinds: [Persistent*]": false,
	} {
		cfg, err := configure(t, config)
		require.NoError(t, err)
		assert.Equal(t, wantsPod, cfg.filter().Wants(pod), config)
		assert.Equal(t, !wantsPod, cfg.filter().Wants(claim), config)
	}
}

func TestWhatTheLoopIsConfiguredWith(t *testing.T) {
	cfg, err := configure(t, `
cluster_name: blue
namespaces: [a, b]
start_at: beginning
dedup_interval: 1m
collection_interval: 2m
series: {max: 7, ttl: 3m, initial_zero: false}
event_types: [Warning]
retry_on_failure: {max_interval: 9s}
`)
	require.NoError(t, err)
	settings := cfg.loop()
	assert.Equal(t, "blue", settings.ClusterName)
	assert.Equal(t, []string{"a", "b"}, settings.Streams)
	assert.True(t, settings.FromBeginning)
	assert.Equal(t, time.Minute, settings.DedupInterval)
	assert.Equal(t, 2*time.Minute, settings.CollectionInterval)
	assert.Equal(t, 7, settings.Series.Max)
	assert.Equal(t, 3*time.Minute, settings.Series.TTL)
	assert.False(t, settings.Series.InitialZero)
	assert.Equal(t, "type=Warning", settings.Filter.FieldSelector())
	assert.Equal(t, time.Second, settings.Retry.InitialInterval, "a short disturbance costs a second")
	assert.Equal(t, 9*time.Second, settings.Retry.MaxInterval)
	assert.Zero(t, settings.Retry.MaxElapsedTime)
}
