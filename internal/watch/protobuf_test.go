// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"encoding/binary"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	kwatch "k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/memorytest"
)

// ofClientGo decodes the messages as client-go does.
func ofClientGo(stream []byte) Decoder {
	info, _ := runtime.SerializerInfoForMediaType(event.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	frames := info.StreamSerializer.NewFrameReader(io.NopCloser(bytes.NewReader(stream)))
	return restwatch.NewDecoder(streaming.NewDecoder(frames, info.StreamSerializer.Serializer),
		event.Codecs.WithoutConversion().DecoderToVersion(info.Serializer, corev1.SchemeGroupVersion))
}

// fill sets every field of a value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("text of " + v.Type().String())
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint('{')
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k"), reflect.ValueOf("v"))
	case reflect.Struct:
		switch v.Interface().(type) {
		case metav1.Time:
			v.Set(reflect.ValueOf(metav1.Unix(1_700_000_000, 0)))
			return
		case metav1.MicroTime:
			v.Set(reflect.ValueOf(metav1.NewMicroTime(time.Unix(1_700_000_000, 5000))))
			return
		}
		for _, field := range v.Fields() {
			if field.CanSet() {
				fill(field)
			}
		}
	}
}

func fullEvent() *corev1.Event {
	ev := &corev1.Event{}
	fill(reflect.ValueOf(ev).Elem())
	ev.TypeMeta = metav1.TypeMeta{}
	return ev
}

func TestACorruptEventIsNotTheEndOfTheStream(t *testing.T) {
	field := func(to []byte, number protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), content)
	}
	typeMeta := field(field(nil, apiVersionOfTypeMeta, []byte("v1")), kindOfTypeMeta, []byte("Event"))
	tooShort := []byte{metadataOfEvent<<3 | byte(protowire.BytesType), 0x7f, 1}
	object := append(bytes.Clone(envelope), field(field(nil, typeMetaOfUnknown, typeMeta), rawOfUnknown, tooShort)...)
	typeMeta = field(field(nil, apiVersionOfTypeMeta, []byte("events.k8s.io/v1")), kindOfTypeMeta, []byte("Event"))
	another := append(bytes.Clone(envelope), field(field(nil, typeMetaOfUnknown, typeMeta), rawOfUnknown, nil)...)
	for name, message := range map[string][]byte{
		"an object":               field(field(nil, typeOfWatchEvent, []byte("ADDED")), objectOfWatchEvent, field(nil, rawOfRawExtension, object)),
		"an event of another API": field(field(nil, typeOfWatchEvent, []byte("ADDED")), objectOfWatchEvent, field(nil, rawOfRawExtension, another)),
		"a message":               tooShort,
	} {
		t.Run(name, func(t *testing.T) {
			frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
			d, err := NewDecoder(io.NopCloser(bytes.NewReader(frame)))
			require.NoError(t, err)
			_, _, err = d.Decode()
			require.Error(t, err)
			assert.False(t, isEnd(err), err)
		})
	}
}

func TestProtobufIsDecodedLikeByClientGo(t *testing.T) {
	large := fullEvent()
	large.Message = strings.Repeat("long ", maxKept)
	stream := apitest.ProtobufWatch(t,
		kwatch.Event{Type: kwatch.Added, Object: fullEvent()},
		kwatch.Event{Type: kwatch.Modified, Object: &corev1.Event{}},
		kwatch.Event{Type: kwatch.Modified, Object: large},
		kwatch.Event{Type: kwatch.Deleted, Object: &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, Series: &corev1.EventSeries{Count: 3}}},
		kwatch.Event{Type: kwatch.Bookmark, Object: &corev1.Event{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}},
		kwatch.Event{Type: kwatch.Error, Object: &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired}},
		kwatch.Event{Type: kwatch.Added, Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "no event"}}},
	)
	theirs := ofClientGo(stream)
	ours, err := NewDecoder(io.NopCloser(bytes.NewReader(stream)))
	require.NoError(t, err)
	require.IsType(t, &protobufDecoder{}, ours)
	for range 7 {
		wantKind, want, err := theirs.Decode()
		require.NoError(t, err)
		if ev, ok := want.(*corev1.Event); ok {
			ev.ManagedFields = nil
		}
		kind, object, err := ours.Decode()
		require.NoError(t, err)
		assert.Equal(t, wantKind, kind)
		assert.Equal(t, want, object)
	}
	_, _, err = ours.Decode()
	assert.Equal(t, io.EOF, err)
}

func TestAServerThatDoesNotKnowProtobufIsReadInJSON(t *testing.T) {
	const stream = `{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"count":3}}` + "\n"
	decoder, err := NewDecoder(io.NopCloser(strings.NewReader(stream)))
	require.NoError(t, err)
	kind, object, err := decoder.Decode()
	require.NoError(t, err)
	assert.Equal(t, kwatch.Modified, kind)
	require.IsType(t, &corev1.Event{}, object)
	assert.Equal(t, int32(3), object.(*corev1.Event).Count)
	_, _, err = decoder.Decode()
	assert.Equal(t, io.EOF, err)
}

func TestWhatIsDecodedDoesNotChangeWithTheNextMessage(t *testing.T) {
	first, second := fullEvent(), fullEvent()
	second.Name, second.Message = "another", strings.Repeat("x", len(first.Message))
	decoder, err := NewDecoder(io.NopCloser(bytes.NewReader(apitest.ProtobufWatch(t,
		kwatch.Event{Type: kwatch.Added, Object: first}, kwatch.Event{Type: kwatch.Added, Object: second}))))
	require.NoError(t, err)
	_, object, err := decoder.Decode()
	require.NoError(t, err)
	before := object.DeepCopyObject()
	_, _, err = decoder.Decode()
	require.NoError(t, err)
	assert.Equal(t, before, object)
}

func TestProtobufThatCannotBeDecoded(t *testing.T) {
	whole := apitest.ProtobufWatch(t, kwatch.Event{Type: kwatch.Added, Object: fullEvent()})
	for name, stream := range map[string][]byte{
		"a length only":      whole[:4],
		"a part of a length": whole[:3],
		"a part":             whole[:len(whole)-1],
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := (&protobufDecoder{stream: bytes.NewReader(stream)}).Decode()
			assert.Equal(t, io.ErrUnexpectedEOF, err)
		})
	}
	_, _, err := (&protobufDecoder{stream: bytes.NewReader([]byte{255, 0, 0, 0})}).Decode()
	require.ErrorIs(t, err, streaming.ErrObjectTooLarge)
	unknownType := bytes.Replace(whole, []byte("ADDED"), []byte("ODDER"), 1)
	_, _, err = (&protobufDecoder{stream: bytes.NewReader(unknownType)}).Decode()
	require.ErrorContains(t, err, `"ODDER" is not a type`)
	number := protowire.AppendVarint(protowire.AppendTag(nil, typeOfWatchEvent, protowire.VarintType), 5)
	_, _, err = (&protobufDecoder{stream: bytes.NewReader(append([]byte{0, 0, 0, byte(len(number) + len("ADDED"))}, append(number, "ADDED"...)...))}).Decode()
	require.ErrorContains(t, err, "field 1 has wire type 0")
}

func TestAStreamWithAnObjectThatIsNoEvent(t *testing.T) {
	err := (&Stream{}).take(t.Context(), kwatch.Event{Type: kwatch.Added, Object: &metav1.Status{}})
	require.EqualError(t, err, "the API server sent a *v1.Status in a stream of events")
}

// What client-go decodes, the receiver's decoder decodes to the same.
func FuzzProtobuf(f *testing.F) {
	f.Add(apitest.ProtobufWatch(f, kwatch.Event{Type: kwatch.Added, Object: fullEvent()})[4:])
	f.Add(apitest.ProtobufWatch(f, kwatch.Event{Type: kwatch.Error, Object: &metav1.Status{Code: 410}})[4:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, message []byte) {
		stream := append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
		wantKind, want, errTheirs := ofClientGo(stream).Decode()
		if len(message) == 0 || errTheirs != nil {
			return
		}
		decoder, err := NewDecoder(io.NopCloser(bytes.NewReader(stream)))
		require.NoError(t, err)
		kind, object, err := decoder.Decode()
		require.NoError(t, err)
		if ev, ok := want.(*corev1.Event); ok {
			ev.ManagedFields = nil
		}
		require.Equal(t, wantKind, kind)
		require.Equal(t, want, object)
	})
}

// kubelets is an event as a kubelet writes it.
func kubelets() *corev1.Event {
	now := metav1.Unix(1_700_000_000, 0)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-1", Name: "app-001-6f5c9d7b4-00010.18a2f1c3d4e5f607", CreationTimestamp: now,
			UID: "5b0e0c5a-0d5e-4a3c-9f00-000000000001", ResourceVersion: "1001",
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &now, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:count":{},"f:firstTimestamp":{},"f:involvedObject":{},"f:lastTimestamp":{}}`),
			}},
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: "team-1", Name: "app-001-6f5c9d7b4-00010", UID: "pod-10",
			FieldPath: "spec.containers{app}", ResourceVersion: "4711",
		},
		Reason: "Unhealthy", Message: "Readiness probe failed: HTTP probe failed with statuscode: 503", Type: "Warning", Count: 1,
		Source:         corev1.EventSource{Component: "kubelet", Host: "node-1"},
		FirstTimestamp: now, LastTimestamp: now, ReportingController: "kubelet", ReportingInstance: "node-1",
	}
}

// The event itself, and each of its 18 strings that is not empty.
func TestAllocationsOfDecoding(t *testing.T) {
	stream := apitest.ProtobufWatch(t, kwatch.Event{Type: kwatch.Added, Object: kubelets()})
	reader := bytes.NewReader(stream)
	decoder, err := NewDecoder(io.NopCloser(readAgain{reader}))
	require.NoError(t, err)
	memorytest.Allocations(t, 19, func() {
		_, object, err := decoder.Decode()
		require.NoError(t, err)
		event.Normalize(object.(*corev1.Event))
	})
}

// readAgain reads from the beginning again at the end.
type readAgain struct{ *bytes.Reader }

func (r readAgain) Read(b []byte) (int, error) {
	if r.Len() == 0 {
		_, _ = r.Seek(0, io.SeekStart)
	}
	return r.Reader.Read(b)
}
