// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	kwatch "k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
)

// Protobuf returns a watch with the events as new ones, in the bytes that an API server sends.
func Protobuf(t testing.TB, events ...*corev1.Event) []byte {
	t.Helper()
	messages := make([]kwatch.Event, len(events))
	for i, ev := range events {
		messages[i] = kwatch.Event{Type: kwatch.Added, Object: ev}
	}
	return ProtobufWatch(t, messages...)
}

// ProtobufWatch returns a watch with the messages, in the bytes that an API server sends.
func ProtobufWatch(t testing.TB, messages ...kwatch.Event) []byte {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(event.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	require.True(t, ok)
	var stream bytes.Buffer
	encoder := restwatch.NewEncoder(
		streaming.NewEncoder(info.StreamSerializer.NewFrameWriter(&stream), info.StreamSerializer.Serializer),
		event.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion),
	)
	for i := range messages {
		require.NoError(t, encoder.Encode(&messages[i]))
	}
	return stream.Bytes()
}
