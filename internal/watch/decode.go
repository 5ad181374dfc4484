// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bufio"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	kwatch "k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
)

// Decoder decodes a watch message by message. Its error is io.EOF at the end of the stream.
type Decoder interface {
	Decode() (kwatch.EventType, runtime.Object, error)
}

// NewDecoder returns a decoder that reads a watch in its caller's goroutine. client-go's own watch
// passes each message from another goroutine, which costs about as much as decoding it.
func NewDecoder(body io.ReadCloser) (Decoder, error) {
	buffered := bufio.NewReaderSize(body, readBuffer)
	mediaType := runtime.ContentTypeProtobuf
	// A server that does not know protobuf answers with JSON. A frame of protobuf begins with its
	// length, far below this.
	if first, err := buffered.Peek(1); err == nil && first[0] == '{' {
		mediaType = runtime.ContentTypeJSON
	}
	info, ok := runtime.SerializerInfoForMediaType(event.Codecs.SupportedMediaTypes(), mediaType)
	if !ok || info.StreamSerializer == nil {
		return nil, fmt.Errorf("cannot read a watch in %s", mediaType)
	}
	objects := event.Codecs.WithoutConversion().DecoderToVersion(info.Serializer, corev1.SchemeGroupVersion)
	if mediaType == runtime.ContentTypeProtobuf {
		return &protobufDecoder{stream: buffered, others: objects}, nil
	}
	frames := info.StreamSerializer.NewFrameReader(readCloser{buffered, body})
	return restwatch.NewDecoder(streaming.NewDecoder(frames, info.StreamSerializer.Serializer), objects), nil
}

// readBuffer is how many bytes of a stream are read at once.
const readBuffer = 32 << 10

// readCloser reads from a buffer and closes the connection behind it.
type readCloser struct {
	io.Reader
	io.Closer
}
