// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"io"
	"net/http"
	"path"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// kept are the objects that clients of leader election write.
type kept struct {
	mu      sync.Mutex
	writes  int // the last one's number is its object's resource version
	objects map[string]runtime.Object
}

// serveKept answers a request to read, create or update one object that clients write.
func (s *Server) serveKept(w http.ResponseWriter, r *http.Request, t target) {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	if r.Method == http.MethodGet {
		if found := s.kept.objects[t.place()]; found != nil {
			answer(w, accepted(r), found)
		} else {
			notFound(w, r)
		}
		return
	}
	body, errRead := io.ReadAll(r.Body)
	object, _, errDecode := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	written, isObject := object.(metav1.Object)
	if errRead != nil || errDecode != nil || !isObject {
		invalid(w, r)
		return
	}
	t.name = written.GetName()
	existing, exists := s.kept.objects[t.place()].(metav1.Object)
	switch updates := r.Method == http.MethodPut; {
	case updates && !exists:
		notFound(w, r)
	case updates && written.GetResourceVersion() != existing.GetResourceVersion(), !updates && exists:
		w.WriteHeader(http.StatusConflict)
	default:
		if r.URL.Query().Get("dryRun") == "" {
			s.kept.put(t.place(), object, written)
		}
		answer(w, accepted(r), object)
	}
}

func (k *kept) put(place string, object runtime.Object, written metav1.Object) {
	k.writes++
	written.SetResourceVersion(strconv.Itoa(k.writes))
	if k.objects == nil {
		k.objects = map[string]runtime.Object{}
	}
	k.objects[place] = object
}

// place tells the objects that requests are for apart.
func (t target) place() string { return path.Join(t.resource, t.namespace, t.name) }
