// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
)

// encoding is how documents go over the wire.
type encoding int

const (
	inJSON encoding = iota
	inProtobuf
	encodings // how many there are
)

const protobufType = "application/vnd.kubernetes.protobuf"

// accepted is the first encoding that the request would take.
func accepted(r *http.Request) encoding {
	if strings.HasPrefix(strings.TrimSpace(r.Header.Get("Accept")), protobufType) {
		return inProtobuf
	}
	return inJSON
}

func (e encoding) contentType(stream bool) string {
	switch {
	case e == inJSON:
		return "application/json"
	case stream:
		return protobufType + ";stream=watch"
	default:
		return protobufType
	}
}

// toProtobuf needs to know no types, because every object that it is given names its own.
var toProtobuf = protobuf.NewSerializer(nil, nil)

// encode gives what an API server would write for the object. It panics on an object that cannot be
// encoded: there are no such objects here.
func (e encoding) encode(object runtime.Object) []byte {
	if e == inJSON {
		return must(json.Marshal(object))
	}
	var out bytes.Buffer
	if err := toProtobuf.Encode(object, &out); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// frame returns the message of a watch for a change.
func (e encoding) frame(change watch.EventType, object runtime.Object) []byte {
	event := metav1.WatchEvent{Type: string(change), Object: runtime.RawExtension{Raw: e.encode(object)}}
	if e == inJSON {
		return append(must(json.Marshal(event)), '\n')
	}
	var out bytes.Buffer
	must(protobuf.LengthDelimitedFramer.NewFrameWriter(&out).Write(must(event.Marshal())))
	return out.Bytes()
}

func must[V any](value V, err error) V {
	if err != nil {
		panic(err)
	}
	return value
}
