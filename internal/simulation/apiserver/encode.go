// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/binary"
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// format is how objects are encoded.
type format int

const (
	protobufWhole format = iota
	protobufMeta         // their metadata only
	jsonWhole
	jsonMeta
	formats // how many there are
)

func (f format) isJSON() bool     { return f >= jsonWhole }
func (f format) isMetadata() bool { return f == protobufMeta || f == jsonMeta }

func (f format) contentType() string {
	if f.isJSON() {
		return runtime.ContentTypeJSON
	}
	return runtime.ContentTypeProtobuf
}

// accepted is one clause of an Accept header that the server can serve.
type accepted struct {
	format
	// kind of the transformation: PartialObjectMetadata, PartialObjectMetadataList, or none
	as string
}

// accept returns the first clause of the header that can be served. Qualities (q=) are not looked
// at. Objects can be transformed to their metadata, errors cannot.
func accept(header string, transform bool) (accepted, bool) {
	if header == "" {
		return accepted{format: jsonWhole}, true
	}
	for clause := range strings.SplitSeq(header, ",") {
		mediaType, parameters, err := mime.ParseMediaType(clause)
		as := schema.GroupVersionKind{
			Group: parameters["g"], Version: parameters["v"], Kind: parameters["as"],
		}
		isMeta := as.Group == metav1.GroupName && as.Version == "v1" &&
			strings.HasPrefix(as.Kind, "PartialObjectMetadata")
		stream := parameters["stream"]
		if err != nil || !as.Empty() && (!isMeta || !transform) ||
			stream != "" && stream != "watch" {
			continue
		}
		found := accepted{format: jsonWhole, as: as.Kind}
		switch mediaType {
		case runtime.ContentTypeProtobuf:
			found.format = protobufWhole
		case runtime.ContentTypeJSON, "application/*", "*/*":
		default:
			continue
		}
		if isMeta {
			found.format++
		}
		return found, true
	}
	return accepted{format: jsonWhole}, false
}

// body returns the object of a record without its type, as it is an item of a list.
func (r *record) body(f format) []byte {
	if known := r.encoded[f].Load(); known != nil {
		return *known
	}
	object := runtime.Object(r.object)
	if f.isMetadata() {
		object = partial(r.object)
	}
	encoded := body(object, f)
	r.encoded[f].Store(&encoded)
	return encoded
}

func partial(object Object) *metav1.PartialObjectMetadata {
	if known, ok := object.(*metav1.PartialObjectMetadata); ok {
		return known
	}
	only := meta.AsPartialObjectMetadata(object.(metav1.ObjectMetaAccessor).GetObjectMeta())
	only.TypeMeta = metav1.TypeMeta{}
	return only
}

func body(object runtime.Object, f format) []byte {
	if f.isJSON() {
		return must(json.Marshal(object))
	}
	return must(object.(interface{ Marshal() ([]byte, error) }).Marshal())
}

// document returns a whole answer, or the object in a message of a watch.
func document(gvk schema.GroupVersionKind, body []byte, f format) []byte {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	if f.isJSON() {
		return append(append(typeOf(gvk), body[1:]...), '\n')
	}
	named := runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}
	unknown := runtime.Unknown{TypeMeta: named, Raw: body}
	return append([]byte("k8s\x00"), must(unknown.Marshal())...)
}

// typeOf returns the begin of an object in JSON.
func typeOf(gvk schema.GroupVersionKind) []byte {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	if apiVersion == "" {
		return []byte(`{"kind":"` + kind + `",`)
	}
	return []byte(`{"kind":"` + kind + `","apiVersion":"` + apiVersion + `",`)
}

// listBody returns a list without its type. All lists have the same fields.
func listBody(list metav1.ListMeta, items [][]byte, f format) []byte {
	if !f.isJSON() {
		out := appendField(nil, 1, must(list.Marshal()))
		for _, item := range items {
			out = appendField(out, 2, item)
		}
		return out
	}
	whole := struct {
		metav1.ListMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}{ListMeta: list}
	if !f.isMetadata() {
		// Lists of metadata are null if they are empty, as those of the real server.
		whole.Items = []json.RawMessage{}
	}
	for _, item := range items {
		if f.isMetadata() {
			item = document(partialKind, item, f)
		}
		whole.Items = append(whole.Items, item)
	}
	return must(json.Marshal(whole))
}

// appendField appends a field of a protobuf message that has a length.
func appendField(out []byte, number byte, value []byte) []byte {
	out = binary.AppendUvarint(append(out, number<<3|2), uint64(len(value)))
	return append(out, value...)
}

// frame returns a message of a watch.
func frame(change string, document []byte, f format) []byte {
	if f.isJSON() {
		out := append([]byte(`{"type":"`+change+`","object":`), document[:len(document)-1]...)
		return append(out, "}\n"...)
	}
	message := metav1.WatchEvent{Type: change, Object: runtime.RawExtension{Raw: document}}
	encoded := must(message.Marshal())
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(encoded))), encoded...)
}

func must[V any](value V, err error) V {
	if err != nil {
		panic(err) // What the server stores can be encoded.
	}
	return value
}

func write(w http.ResponseWriter, code int, f format, gvk schema.GroupVersionKind, body []byte) {
	w.Header().Set("Content-Type", f.contentType())
	w.WriteHeader(code)
	_, _ = w.Write(document(gvk, body, f))
}
