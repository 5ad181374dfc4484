// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

const protobufType = runtime.ContentTypeProtobuf

// known are the types of the documents that are read.
var known = func() *runtime.Scheme {
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		panic(err)
	}
	if err := metav1.AddMetaToScheme(known); err != nil {
		panic(err)
	}
	return known
}()

// parse reads a document in the encoding of its content type.
func parse(contentType string, document []byte) any {
	mediaType, _, _ := mime.ParseMediaType(contentType)
	if mediaType == protobufType {
		document = protobufToJSON(document)
	}
	var parsed any
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	if mediaType == "text/plain" || decoder.Decode(&parsed) != nil {
		return strings.TrimSpace(string(document))
	}
	return parsed
}

var codec = protobuf.NewSerializer(known, known)

func protobufToJSON(document []byte) []byte {
	object, _, err := codec.Decode(document, nil, nil)
	if err != nil {
		return fmt.Appendf(nil, "%q", err.Error())
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return fmt.Appendf(nil, "%q", err.Error())
	}
	return encoded
}

// jsonToProtobuf encodes an object of the core group. What is encoded here is valid.
func jsonToProtobuf(document []byte, kind string) []byte {
	object, err := known.New(schema.GroupVersionKind{Version: "v1", Kind: kind})
	if err != nil {
		panic(err)
	}
	var encoded bytes.Buffer
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
	if err := errors.Join(json.Unmarshal(document, object), codec.Encode(object, &encoded)); err != nil {
		panic(err)
	}
	return encoded.Bytes()
}

// nextMessage reads a message of a watch.
func nextMessage(stream io.Reader) (change string, object any, err error) {
	var length [4]byte
	if _, err := io.ReadFull(stream, length[:]); err != nil {
		return "", nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(stream, frame); err != nil {
		return "", nil, err
	}
	message := metav1.WatchEvent{}
	if err := message.Unmarshal(frame); err != nil {
		return "", nil, err
	}
	return message.Type, parse(protobufType, message.Object.Raw), nil
}

// normalize replaces in a document what two servers cannot have in common: versions by the number
// of the test's own writes until then, UIDs by the number of the object, texts for people by
// nothing.
func (s *server) normalize(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			v[name] = s.normalizeField(name, field)
		}
		delete(v, "managedFields")
		if v["kind"] == "Status" {
			delete(v, "message")
			details, _ := v["details"].(map[string]any)
			if len(details) == 0 {
				delete(v, "details")
			}
			if metadata, ok := v["metadata"].(map[string]any); ok {
				delete(metadata, "continue") // No test reads where the rest of a list could be.
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = s.normalize(v[i])
		}
	}
	return value
}

func (s *server) normalizeField(name string, value any) any {
	text, isText := value.(string)
	switch {
	case name == "retryAfterSeconds":
		return "some" // It may be random.
	case !isText || text == "":
		return s.normalize(value)
	case name == "resourceVersion":
		return s.writesUntil(text)
	case name == "uid" && s.uids[text] != "":
		return s.uids[text]
	case name == "creationTimestamp":
		return "a time"
	case name == "continue":
		return s.normalizeToken(text)
	}
	return value
}

// writesUntil returns how many of the test's own writes there were at a version.
func (s *server) writesUntil(version string) string {
	parsed, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return version
	}
	n := 0
	for n < len(s.versions) && s.versions[n] <= parsed {
		n++
	}
	return fmt.Sprintf("after write %d", n)
}

func (s *server) normalizeToken(token string) any {
	data, err := base64.RawURLEncoding.DecodeString(token)
	var decoded map[string]any
	if err != nil || json.Unmarshal(data, &decoded) != nil {
		return token
	}
	if version, _ := decoded["rv"].(float64); version > 0 {
		decoded["rv"] = s.writesUntil(strconv.FormatInt(int64(version), 10))
	}
	if start, ok := decoded["start"].(string); ok {
		decoded["start"] = strings.TrimPrefix(start, "/") // That of a watch cache has a slash.
	}
	return decoded
}
