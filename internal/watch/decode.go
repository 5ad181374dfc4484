// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	kwatch "k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
)

const (
	// maxEvent is how many bytes an event may have. etcd takes objects of up to 1.5 MiB by default.
	maxEvent = 16 << 20
	// readBuffer is small, because each stream has one: few messages have more bytes.
	readBuffer = 4 << 10
	// leastPause follows a read after a time without data. Then each pause is twice as long as the one
	// before. So single events are read early.
	leastPause = time.Millisecond
	// worthReading is how much a read should find. If more comes within a pause, the pauses are shorter.
	worthReading = 48 << 10
)

var errEventTooLarge = errors.New("the API server answers with more than 16 MiB for one event: check proxies before it that ignore the parameter limit")

// decoder decodes a watch message by message. Its error is io.EOF at the end of the stream.
type decoder struct {
	messages *restwatch.Decoder
	body     *messageReader
}

// newDecoder returns a decoder that reads a watch in its caller's goroutine. client-go's own watch
// passes each message from another goroutine, which costs about as much as decoding it.
func newDecoder(ctx context.Context, body io.ReadCloser, pause time.Duration) (*decoder, error) {
	bounded := &messageReader{ReadCloser: body, left: maxEvent, ctx: ctx, longest: pause}
	buffered := bufio.NewReaderSize(bounded, readBuffer)
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
	frames := info.StreamSerializer.NewFrameReader(readCloser{buffered, body})
	objects := event.Codecs.WithoutConversion().DecoderToVersion(info.Serializer, corev1.SchemeGroupVersion)
	messages := restwatch.NewDecoder(streaming.NewDecoder(frames, info.StreamSerializer.Serializer), objects)
	return &decoder{messages, bounded}, nil
}

func (d *decoder) decode() (kwatch.EventType, runtime.Object, error) {
	d.body.left = maxEvent
	return d.messages.Decode()
}

// messageReader bounds what is read for a message, because a decoder keeps all of it in memory. While
// data comes all the time, it pauses between reads: waking for each event, and then decoding it with
// cold caches, costs more than all else that is done with it.
type messageReader struct {
	io.ReadCloser
	left int

	ctx     context.Context // ends a pause
	longest time.Duration   // of the pauses
	pause   time.Duration   // the last one
	next    time.Time       // no read before
	drained time.Time       // when a read last left nothing
	read    int             // bytes since then
}

func (r *messageReader) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, errEventTooLarge
	}
	if wait := time.Until(r.next); wait > 0 {
		pause(r.ctx, wait)
	}
	n, err := r.ReadCloser.Read(b[:min(len(b), r.left)])
	r.left -= n
	if r.read += n; n < len(b) && r.longest > 0 {
		r.noteDrained(time.Now())
	}
	return n, err
}

// noteDrained decides when to read again.
func (r *messageReader) noteDrained(now time.Time) {
	within := now.Sub(r.drained)
	if within >= 2*r.longest { // A time without data is over.
		r.pause = leastPause
	} else {
		enough := time.Duration(worthReading * float64(within) / float64(max(r.read, 1)))
		r.pause = min(max(leastPause, 2*r.pause), r.longest, enough)
	}
	r.next, r.drained, r.read = now.Add(r.pause), now, 0
}

// readCloser reads from a buffer and closes the connection behind it.
type readCloser struct {
	io.Reader
	io.Closer
}
