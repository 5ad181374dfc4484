// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bufio"
	"errors"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	kwatch "k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
)

const (
	// maxEvent is the maximum size of an event. etcd takes objects of up to 1.5 MiB by default.
	maxEvent = 16 << 20
	// readBuffer is small, because each stream has one: most messages do not have many more bytes.
	readBuffer = 1 << 10
)

var errEventTooLarge = errors.New("the API server answers with more than 16 MiB for one event: check proxies before it that ignore the parameter limit")

// decoder decodes a watch message by message. Its error is io.EOF at the end of the stream.
type decoder struct {
	messages *restwatch.Decoder
	body     *messageReader
}

// newDecoder returns a decoder that reads a watch in its caller's goroutine. client-go's own watch
// passes each message from another goroutine, which costs about as much as decoding it.
func newDecoder(body io.ReadCloser) *decoder {
	bounded := &messageReader{ReadCloser: body, left: maxEvent}
	buffered := bufio.NewReaderSize(bounded, readBuffer)
	mediaType := runtime.ContentTypeProtobuf
	// A server that does not know protobuf answers with JSON. A frame of protobuf begins with its
	// length, far below this.
	if first, err := buffered.Peek(1); err == nil && first[0] == '{' {
		mediaType = runtime.ContentTypeJSON
	}
	info, _ := runtime.SerializerInfoForMediaType(event.Codecs.SupportedMediaTypes(), mediaType)
	frames := info.StreamSerializer.NewFrameReader(struct {
		io.Reader
		io.Closer
	}{buffered, body})
	objects := event.Codecs.WithoutConversion().DecoderToVersion(info.Serializer, corev1.SchemeGroupVersion)
	messages := restwatch.NewDecoder(streaming.NewDecoder(frames, info.StreamSerializer.Serializer), objects)
	return &decoder{messages, bounded}
}

func (d *decoder) decode() (kwatch.EventType, runtime.Object, error) {
	d.body.left = maxEvent
	return d.messages.Decode()
}

// messageReader limits the bytes that are read for a message. A decoder keeps all of it in memory.
type messageReader struct {
	io.ReadCloser
	left int
}

func (r *messageReader) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, errEventTooLarge
	}
	n, err := r.ReadCloser.Read(b[:min(len(b), r.left)])
	r.left -= n
	return n, err
}
