// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	kwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

func decoderOf(stream io.Reader) *decoder { return newDecoder(io.NopCloser(stream)) }

func TestACorruptEventIsNotTheEndOfTheStream(t *testing.T) {
	stream := apitest.Protobuf(t, newEvent("e", 1))
	at := bytes.LastIndex(stream, []byte("\x0a")) // A length within the event.
	stream[at+1] = 0x7f
	_, _, err := decoderOf(bytes.NewReader(stream)).decode()
	require.Error(t, err)
	assert.False(t, isEnd(err), err)
}

func TestAServerThatDoesNotKnowProtobufIsReadInJSON(t *testing.T) {
	const stream = `{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"count":3}}` + "\n"
	d := decoderOf(strings.NewReader(stream))
	kind, object, err := d.decode()
	require.NoError(t, err)
	assert.Equal(t, kwatch.Modified, kind)
	require.IsType(t, &corev1.Event{}, object)
	assert.Equal(t, int32(3), object.(*corev1.Event).Count)
	_, _, err = d.decode()
	assert.Equal(t, io.EOF, err)
}

func TestWhatIsDecodedDoesNotChangeWithTheNextMessage(t *testing.T) {
	d := decoderOf(bytes.NewReader(apitest.Protobuf(t, newEvent("first", 1), newEvent("other", 2))))
	_, object, err := d.decode()
	require.NoError(t, err)
	before := object.DeepCopyObject()
	_, _, err = d.decode()
	require.NoError(t, err)
	assert.Equal(t, before, object)
}

// A decoder has the whole message in memory. Any number of messages has any number of bytes.
func TestAMessageIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		begin string
		want  error
	}{
		"in JSON":                         {`{"type":"ADDED","object":{"message":"`, errEventTooLarge},
		"in protobuf":                     {"\x10\x00\x00\x00", errEventTooLarge},
		"with a length that nobody means": {"<html>", streaming.ErrObjectTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			body := &endless{begin: strings.NewReader(tt.begin)}
			_, _, err := decoderOf(body).decode()
			require.Error(t, err)
			assert.False(t, isEnd(err), err)
			assert.LessOrEqual(t, body.read, maxEvent+readBuffer)
		})
	}
	large := newEvent("large", 1)
	large.Message = strings.Repeat("m", maxEvent/3)
	d := decoderOf(bytes.NewReader(apitest.Protobuf(t, large, large, large, large)))
	for range 4 {
		_, _, err := d.decode()
		require.NoError(t, err)
	}
}

// endless never ends.
type endless struct {
	begin io.Reader
	read  int
}

func (e *endless) Read(b []byte) (int, error) {
	n, err := e.begin.Read(b)
	if err == io.EOF {
		for i := range b {
			b[i] = 'x'
		}
		n = len(b)
	}
	e.read += n
	return n, nil
}

func TestAStreamWithAnObjectThatIsNoEvent(t *testing.T) {
	err := (&Stream{}).take(t.Context(), kwatch.Event{Type: kwatch.Added, Object: &metav1.Status{}})
	require.EqualError(t, err, "the API server sent a *v1.Status in a stream of events")
}
