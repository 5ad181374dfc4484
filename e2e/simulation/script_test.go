// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
)

// script is a random sequence of requests. What a step asks depends on the seed and on the answers
// that both servers gave before, not on one of the servers.
type script struct {
	random     *rand.Rand
	namespaces []string
	steps      []step
}

type step struct {
	name string
	do   func(context.Context, *server) any
}

func newScript(seed uint64, length int) *script {
	// Of these names, that with the hyphen comes first in etcd, and second in a dictionary.
	namespaces := []string{fmt.Sprintf("script%d", seed), fmt.Sprintf("script%d-b", seed)}
	sc := &script{random: rand.New(rand.NewPCG(seed, 0)), namespaces: namespaces}
	for range length {
		sc.add()
	}
	return sc
}

// prepare makes what a script needs to exist.
func (sc *script) prepare(s *server) {
	for _, name := range sc.namespaces {
		body := object{"metadata": object{"name": name}}
		_, made := s.ask(call{method: http.MethodPost, path: "/api/v1/namespaces",
			accept: protobufType, body: body})
		require.Equal(s.t, "Namespace", made["kind"], "%v", made)
	}
}

// clean deletes the script's events.
func (sc *script) clean(s *server) {
	for _, namespace := range sc.namespaces {
		s.remove(namespace, names)
	}
}

type object = map[string]any

func pick[V any](sc *script, from ...V) V { return from[sc.random.IntN(len(from))] }

func (sc *script) chance(percent int) bool { return sc.random.IntN(100) < percent }

var names = []string{"e1", "e-2", "e.3", "f4"}

// kind is one that scripts write.
type kind struct{ root, resource string }

var (
	events     = kind{"/api/v1", "events"}
	configMaps = kind{"/api/v1", "configmaps"}
	leases     = kind{"/apis/coordination.k8s.io/v1", "leases"}
)

func (k kind) path(namespace string, name ...string) string {
	if namespace != "" {
		namespace = "/namespaces/" + namespace
	}
	return strings.Join(append([]string{k.root + namespace, k.resource}, name...), "/")
}

// add adds a random step.
func (sc *script) add() {
	k := pick(sc, events, events, events, configMaps, leases)
	switch n := sc.random.IntN(100); {
	case n < 20:
		sc.create(k)
	case n < 42:
		sc.update(k)
	case n < 47:
		sc.remove()
	case n < 51:
		sc.compact()
	case n < 66:
		sc.list(k)
	case n < 70:
		sc.single()
	case n < 78:
		sc.goOn(k)
	case n < 85:
		sc.get(k)
	case n < 95:
		sc.watch(k)
	default:
		sc.discover()
	}
}

// step adds a request.
func (sc *script) step(request call, do func(context.Context, *server) any) {
	name := fmt.Sprintf("%s %s?%s  %s  %v", request.method, request.path, request.query.Encode(),
		request.accept, request.body)
	sc.steps = append(sc.steps, step{name, do})
}

func (sc *script) create(k kind) {
	namespace, name := pick(sc, sc.namespaces...), pick(sc, names...)
	body := sc.body(k, namespace, name)
	sc.write(call{method: http.MethodPost, path: k.path(namespace), accept: sc.accept(),
		body: body, kind: sc.encoding(k)}, k.path(namespace, name), nil)
}

func (sc *script) update(k kind) {
	namespace, name := pick(sc, sc.namespaces...), pick(sc, names...)
	body, path := sc.body(k, namespace, name), k.path(namespace, name)
	which := pick(sc, "", "current", "current", "current", "first")
	if k == leases && which == "" {
		which = "current" // A Lease cannot be updated without its version.
	}
	sc.write(call{method: http.MethodPut, path: path, accept: sc.accept(), body: body,
		kind: sc.encoding(k)}, path,
		func(s *server, asked call) {
			version := map[string]string{"current": s.current[path]}[which]
			if which == "first" && len(s.versions) > 0 {
				version = strconv.FormatInt(s.versions[0], 10)
			}
			asked.body["metadata"].(object)["resourceVersion"] = version
		})
}

// encoding is the kind of a body that is sent in protobuf, as client-go does; empty: in JSON.
func (sc *script) encoding(k kind) string {
	if k == configMaps && sc.chance(50) {
		return "ConfigMap"
	}
	return ""
}

// write sends an object and remembers its version and UID.
func (sc *script) write(request call, path string, prepare func(*server, call)) {
	sc.step(request, func(_ context.Context, s *server) any {
		asked := request.clone()
		if prepare != nil {
			prepare(s, asked)
		}
		answer, document := s.ask(asked)
		s.remember(path, document)
		return s.normalize(answer)
	})
}

func (sc *script) body(k kind, namespace, name string) object {
	metadata := object{"namespace": namespace, "name": name}
	switch k {
	case configMaps:
		return object{"metadata": metadata, "data": object{"n": strconv.Itoa(sc.random.IntN(3))}}
	case leases:
		holder := strconv.Itoa(sc.random.IntN(3))
		spec := object{"holderIdentity": holder, "renewTime": "2026-01-02T03:04:05.678901Z"}
		return object{"metadata": metadata, "spec": spec}
	}
	metadata["labels"] = object{"team": pick(sc, "a", "b")}
	return object{
		"metadata": metadata, "type": pick(sc, "Normal", "Warning"),
		"reason": pick(sc, "Killing", "Started"), "count": sc.random.IntN(3),
		"involvedObject": object{"kind": pick(sc, "Pod", "Job"), "namespace": namespace,
			"name": "it", "uid": "some"},
		"source": object{"component": "script"}, "lastTimestamp": "2026-01-02T03:04:05Z",
	}
}

// remove deletes events, some of which may not exist, at one version.
func (sc *script) remove() {
	namespace := pick(sc, sc.namespaces...)
	some := names[sc.random.IntN(2) : 2+sc.random.IntN(3)]
	sc.steps = append(sc.steps, step{fmt.Sprint("delete events ", namespace, some),
		func(_ context.Context, s *server) any {
			var existing []string
			for _, name := range some {
				path := events.path(namespace, name)
				if s.current[path] != "" {
					existing = append(existing, name)
					delete(s.current, path)
				}
			}
			if len(existing) > 0 {
				s.versions = append(s.versions, s.remove(namespace, existing))
			}
			return existing
		}})
}

func (sc *script) compact() {
	sc.steps = append(sc.steps, step{"compact", func(_ context.Context, s *server) any {
		if n := len(s.versions); n > 0 && s.compacted < s.versions[n-1] {
			s.compacted = s.versions[n-1]
			s.compact(s.compacted)
		}
		return nil
	}})
}

// version is a way to name a version: each server has others.
type version struct {
	text string  // itself, if it is the same for all
	part float64 // of the script's writes so far
}

func (sc *script) version(k kind) version {
	if sc.chance(60) {
		return version{part: 1 - sc.random.Float64()*sc.random.Float64()}
	}
	text := pick(sc, "", "", "", "0", "0", "0", "0", "0", "999999999")
	if text == "999999999" && k != events && sc.chance(90) {
		text = "0" // A watch cache waits for three seconds.
	}
	return version{text: text}
}

func (v version) of(s *server) string {
	if v.part == 0 || len(s.versions) == 0 {
		return v.text
	}
	i := min(int(v.part*float64(len(s.versions))), len(s.versions)-1)
	if i+1 < len(s.versions) && s.versions[i+1] == s.compacted {
		i++ // Whether a watch from there is too old depends on what others wrote between the two.
	}
	return strconv.FormatInt(s.versions[i], 10)
}

const (
	asJSON     = "application/json"
	asMetadata = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asMetaList = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

func (sc *script) accept() string {
	return pick(sc, protobufType, protobufType+","+asJSON,
		protobufType+asMetadata+","+asJSON+asMetadata+","+asJSON)
}

func (sc *script) acceptList() string {
	return pick(sc, protobufType, protobufType+","+asJSON, protobufType+asMetaList,
		protobufType+asMetaList+","+asJSON+asMetaList+","+asJSON, "text/plain")
}

func (sc *script) selectors(k kind, query url.Values) {
	field := pick(sc, "type=Warning", "type!=Normal,reason=Killing", "involvedObject.kind=Pod",
		"involvedObject.uid=other", "no.such=field", "=", "metadata.name=e1", "metadata.name=none",
		"metadata.name=e-2,type=Warning", "metadata.name!=e1")
	if k != events && strings.Contains(field, "metadata.name") {
		field = "no.such=field" // The simulated server has fields of events only.
	}
	if sc.chance(30) && k == events || sc.chance(3) {
		query.Set("fieldSelector", field)
	}
}

// scope is where to list or watch: all namespaces hold what the test did not write, except events.
func (sc *script) scope(k kind) string {
	if k == events && sc.chance(50) {
		return ""
	}
	return pick(sc, sc.namespaces...)
}

func (sc *script) list(k kind) {
	query := url.Values{}
	sc.selectors(k, query)
	if sc.chance(50) {
		query.Set("limit", pick(sc, "1", "2", "3", "100"))
	}
	if sc.chance(35) {
		query.Set("resourceVersionMatch", pick(sc, "Exact", "Exact", "NotOlderThan", "NotOlderThan",
			"Sometimes"))
	}
	at := version{}
	if sc.chance(60) || query.Has("resourceVersionMatch") && sc.chance(90) {
		at = sc.version(k)
	}
	sc.query(k, call{method: http.MethodGet, path: k.path(sc.scope(k)), query: query,
		accept: sc.acceptList()}, at)
}

// single asks for one event by its name, and so for the store's version.
func (sc *script) single() {
	query := url.Values{"fieldSelector": {"metadata.name=" + pick(sc, append(names, "none")...)}}
	if sc.chance(80) {
		query.Set("limit", "1")
	}
	at := version{}
	if sc.chance(30) {
		query.Set("resourceVersionMatch", pick(sc, "Exact", "NotOlderThan"))
		at = sc.version(events)
	}
	request := call{method: http.MethodGet, path: events.path(sc.scope(events)), query: query,
		accept: sc.acceptList()}
	sc.query(events, request, at)
}

// goOn continues an earlier list, or sends an invalid token.
func (sc *script) goOn(k kind) {
	query := url.Values{"limit": {pick(sc, "0", "1", "2", "100")}}
	request := call{method: http.MethodGet, path: k.path(sc.scope(k)), query: query,
		accept: sc.acceptList()}
	at := version{}
	if sc.chance(15) {
		at = sc.version(k)
	}
	part, bad := sc.random.Float64(), ""
	if sc.chance(15) {
		bad = base64.RawURLEncoding.EncodeToString([]byte(pick(sc, `{`,
			`{"v":"meta.k8s.io/v1","rv":999999999,"start":"e"}`)))
	}
	sc.queryWith(k, request, at, func(s *server, asked *call) {
		asked.query.Set("continue", bad)
		if n := len(s.tokens); n > 0 && bad == "" {
			chosen := s.tokens[int(part*float64(n))]
			asked.path = chosen.path
			asked.query.Set("continue", chosen.token)
		}
	})
}

func (sc *script) query(k kind, request call, at version) { sc.queryWith(k, request, at, nil) }

// queryWith sends a request for a list.
func (sc *script) queryWith(k kind, request call, at version, prepare func(*server, *call)) {
	sc.step(request, func(_ context.Context, s *server) any {
		asked := request.clone()
		if prepare != nil {
			prepare(s, &asked)
		}
		if v := at.of(s); v != "" {
			s.fresh(k, asked.path)
			asked.query.Set("resourceVersion", v)
		}
		answer, document := s.ask(asked)
		if metadata, ok := document["metadata"].(object); ok && metadata["continue"] != nil &&
			document["kind"] != "Status" && len(asked.query["fieldSelector"]) == 0 {
			s.tokens = append(s.tokens, token{asked.path, metadata["continue"].(string)})
		}
		return s.normalize(answer)
	})
}

func (sc *script) get(k kind) {
	namespace, name := pick(sc, sc.namespaces...), pick(sc, names...)
	sc.query(k, call{method: http.MethodGet, path: k.path(namespace, name), accept: sc.accept()},
		version{text: pick(sc, "", "0")})
}

func (sc *script) watch(k kind) {
	query := url.Values{"watch": {pick(sc, "true", "1")}}
	sc.selectors(k, query)
	if k == events && sc.chance(25) {
		query.Set("fieldSelector", pick(sc, "type=Warning", "reason!=Killing", "metadata.name=e1"))
	}
	if sc.chance(60) {
		query.Set("allowWatchBookmarks", "true")
	}
	if sc.chance(5) {
		query.Set("resourceVersionMatch", pick(sc, "Exact", "NotOlderThan", "Sometimes"))
	}
	if sc.chance(10) {
		query.Set("timeoutSeconds", pick(sc, "0", "100", "x"))
	}
	accept := pick(sc, protobufType+";stream=watch", protobufType+","+asJSON,
		protobufType+asMetadata+","+asJSON)
	request := call{method: http.MethodGet, path: k.path(sc.scope(k)), query: query, accept: accept}
	at := sc.version(k)
	sc.step(request, func(ctx context.Context, s *server) any {
		asked := request.clone()
		s.fresh(k, asked.path)
		if v := at.of(s); v != "" {
			asked.query.Set("resourceVersion", v)
		}
		head, opened := s.watch(ctx, asked)
		if opened != nil {
			s.watches = append(s.watches, opened)
		}
		return head
	})
}

func (sc *script) discover() {
	// Discovery is asked for in JSON, and objects in protobuf.
	path := pick(sc, "/apis/nosuch.example.com",
		"/apis/nosuch.example.com/v1", "/apis/apps/v9", "/api/v2", "/nosuch")
	accept := asJSON
	if sc.chance(50) {
		path = pick(sc, "/api/v1/nosuch", "/apis/nosuch.example.com/v1/things",
			"/apis/apps/v1/nosuch", "/api/v1/pods/name", "/api/v1/namespaces/default/nodes",
			"/apis/apps/v9/deployments")
		accept = sc.accept()
	}
	request := call{method: http.MethodGet, path: path, accept: accept}
	sc.step(request, func(_ context.Context, s *server) any {
		answer, _ := s.ask(request)
		return s.normalize(answer)
	})
}
