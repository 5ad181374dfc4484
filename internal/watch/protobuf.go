// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	kwatch "k8s.io/apimachinery/pkg/watch"
)

const (
	// maxMessage is how long a message may be, as in client-go.
	maxMessage = 16 << 20
	// maxKept is how long a message may be whose memory is used again.
	maxKept = 64 << 10
)

// envelope precedes an object that names its own type.
var envelope = []byte("k8s\x00")

// The numbers of fields in Kubernetes' generated.proto files.
const (
	typeOfWatchEvent      = 1
	objectOfWatchEvent    = 2
	rawOfRawExtension     = 1
	typeMetaOfUnknown     = 1
	rawOfUnknown          = 2
	apiVersionOfTypeMeta  = 1
	kindOfTypeMeta        = 2
	metadataOfEvent       = 1
	managedFieldsOfObject = 17
)

// protobufDecoder decodes a watch of events in protobuf. client-go's decoder copies the bytes of
// each event twice, and decodes managedFields, which are a third of the bytes and nobody reads.
type protobufDecoder struct {
	stream  io.Reader
	header  [4]byte
	message []byte
	// others decodes what is not an event, such as the Status of an error, and what this decoder
	// does not understand.
	others runtime.Decoder
}

// Decode implements Decoder.
func (d *protobufDecoder) Decode() (kwatch.EventType, runtime.Object, error) {
	message, err := d.read()
	if err != nil {
		return "", nil, err
	}
	// What is wrong within a message is not the end of the stream, whose errors these look like.
	kind, object, err := parseMessage(message)
	if err != nil {
		return "", nil, fmt.Errorf("cannot decode a message of a watch: %v", err) //nolint:errorlint // See above.
	}
	ev, err := parseEvent(object)
	if err == nil && ev != nil {
		return kind, ev, nil
	}
	other, err := runtime.Decode(d.others, bytes.Clone(object))
	if err != nil {
		return "", nil, fmt.Errorf("cannot decode an object of a watch: %v", err) //nolint:errorlint // See above.
	}
	return kind, other, nil
}

// read returns the next message, which has its length before it. It is valid until the next call.
func (d *protobufDecoder) read() ([]byte, error) {
	if _, err := io.ReadFull(d.stream, d.header[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(d.header[:])
	if size > maxMessage {
		return nil, streaming.ErrObjectTooLarge
	}
	length := int(size)
	message := d.message
	if length > cap(message) {
		message = make([]byte, length)
	}
	if cap(message) <= maxKept {
		d.message = message
	}
	_, err := io.ReadFull(d.stream, message[:length])
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return message[:length], err
}

// parseMessage returns the type of a message, and its object in the form of the API server.
func parseMessage(message []byte) (kwatch.EventType, []byte, error) {
	name, err := field(message, typeOfWatchEvent)
	if err != nil {
		return "", nil, err
	}
	extension, err := field(message, objectOfWatchEvent)
	if err != nil {
		return "", nil, err
	}
	object, err := field(extension, rawOfRawExtension)
	if err != nil {
		return "", nil, err
	}
	for _, known := range []kwatch.EventType{kwatch.Added, kwatch.Modified, kwatch.Deleted, kwatch.Bookmark, kwatch.Error} {
		if string(name) == string(known) {
			return known, object, nil
		}
	}
	return "", nil, fmt.Errorf("%q is not a type of a message in a watch", name)
}

// parseEvent returns an event without managedFields; nil: the object is not an event.
func parseEvent(object []byte) (*corev1.Event, error) {
	unknown, ok := bytes.CutPrefix(object, envelope)
	if !ok {
		return nil, nil
	}
	typeMeta, err := field(unknown, typeMetaOfUnknown)
	if err != nil {
		return nil, err
	}
	apiVersion, err := field(typeMeta, apiVersionOfTypeMeta)
	if err != nil {
		return nil, err
	}
	kind, err := field(typeMeta, kindOfTypeMeta)
	if err != nil || string(apiVersion) != "v1" || string(kind) != "Event" {
		return nil, err
	}
	raw, err := field(unknown, rawOfUnknown)
	if err != nil {
		return nil, err
	}
	ev := &corev1.Event{}
	err = unmarshal(raw, metadataOfEvent, ev.Unmarshal, func(metadata []byte) error {
		return unmarshal(metadata, managedFieldsOfObject, ev.ObjectMeta.Unmarshal, func([]byte) error { return nil })
	})
	return ev, err
}

// field returns the content of the last field with the number, as the generated code does; nil if
// there is none.
func field(message []byte, number protowire.Number) (content []byte, err error) {
	for len(message) > 0 {
		found, wire, length := protowire.ConsumeField(message)
		if length < 0 {
			return nil, protowire.ParseError(length)
		}
		if found == number {
			if wire != protowire.BytesType {
				return nil, fmt.Errorf("field %d has wire type %d", number, wire)
			}
			content = contentOf(message)
		}
		message = message[length:]
	}
	return content, nil
}

// unmarshal passes a message to known, but for the fields with the number, whose content it passes
// to special. Generated code adds what it unmarshals to what is there.
func unmarshal(message []byte, number protowire.Number, known, special func([]byte) error) error {
	begin := 0
	for at := 0; at < len(message); {
		found, wire, length := protowire.ConsumeField(message[at:])
		if length < 0 {
			return protowire.ParseError(length)
		}
		if found == number && wire == protowire.BytesType {
			if err := known(message[begin:at]); err != nil {
				return err
			}
			if err := special(contentOf(message[at:])); err != nil {
				return err
			}
			begin = at + length
		}
		at += length
	}
	return known(message[begin:])
}

// contentOf returns the content of a valid field of bytes at the beginning of a message.
func contentOf(message []byte) []byte {
	_, _, length := protowire.ConsumeTag(message)
	content, _ := protowire.ConsumeBytes(message[length:])
	return content
}
