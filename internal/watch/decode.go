// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bufio"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
)

// NewDecoder reads the messages of a watch in the goroutine of whoever calls it. client-go's own
// watch hands each over from a goroutine of its own, which costs about as much as decoding it.
func NewDecoder(body io.ReadCloser) (*restwatch.Decoder, error) {
	buffered := bufio.NewReaderSize(body, readBuffer)
	mediaType := runtime.ContentTypeProtobuf
	// JSON is what a server answers that does not know protobuf. A frame of protobuf begins with
	// its length, far below this.
	if first, err := buffered.Peek(1); err == nil && first[0] == '{' {
		mediaType = runtime.ContentTypeJSON
	}
	info, ok := runtime.SerializerInfoForMediaType(event.Codecs.SupportedMediaTypes(), mediaType)
	if !ok || info.StreamSerializer == nil {
		return nil, fmt.Errorf("watches in %s cannot be read", mediaType)
	}
	frames := info.StreamSerializer.NewFrameReader(readCloser{buffered, body})
	return restwatch.NewDecoder(
		streaming.NewDecoder(frames, info.StreamSerializer.Serializer),
		event.Codecs.WithoutConversion().DecoderToVersion(info.Serializer, corev1.SchemeGroupVersion),
	), nil
}

const (
	// readBuffer is how many bytes of a stream are read at once.
	readBuffer = 32 << 10
	// flushAfter is how long a read may take that had more available, as it seemed.
	flushAfter = 10 * time.Millisecond
)

// burstReader reads a stream burst by burst, and flushes before it waits.
type burstReader struct {
	io.Reader
	bursts Bursts // nil: there is no telling
	flush  func()

	drained bool   // nothing was left when it was last read; if not, there may be more
	count   uint64 // of the bursts by then
}

func (r *burstReader) Read(b []byte) (int, error) {
	if r.drained {
		r.flush()
		if r.bursts != nil {
			r.bursts.Await(r.count)
		}
	} else {
		// What was left may have filled the buffer to its last byte.
		timer := time.AfterFunc(flushAfter, r.flush)
		defer timer.Stop()
	}
	if r.bursts != nil {
		r.count = r.bursts.Count()
	}
	n, err := r.Reader.Read(b)
	r.drained = n < len(b)
	return n, err
}

// readCloser reads through a buffer and closes what is behind it.
type readCloser struct {
	io.Reader
	io.Closer
}
