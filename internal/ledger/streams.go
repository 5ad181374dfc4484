// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

// Coverage is which events the streams bring.
type Coverage struct {
	Namespaces    []string // of the streams; "" is the whole cluster
	FieldSelector string   // the same for all streams; empty selects everything
}

// stream is what is remembered of a stream: one that runs, or that ran before.
type stream struct {
	Namespace       string `json:"namespace"`
	ResourceVersion string `json:"resourceVersion,omitempty"` // where it resumes; empty: it lists
	Scope           int    `json:"scope,omitempty"`           // the ledger's number of the stream plus 1; 0: none
	// Listed is whether the stream has ever been listed completely, and Selector the field selector
	// of the last complete listing.
	Listed   bool   `json:"listed,omitempty"`
	Selector string `json:"selector,omitempty"`
	// Covers is whether the stream is part of the last coverage: that of the streams that run, once
	// all of them have been listed, and until then also that of the streams before.
	Covers bool `json:"covers,omitempty"`
}

// includes reports whether the last complete listing of the stream had an event of its namespace.
func (s *stream) includes(ev *corev1.Event) bool {
	if s.Selector == "" {
		return true
	}
	selector, err := fields.ParseSelector(s.Selector)
	return err == nil && selector.Matches(fields.Set{"type": ev.Type})
}

// streams remembers all streams that have ever run. None is removed.
type streams struct {
	coverage    Coverage
	byNamespace map[string]*stream
	numbered    int // how many streams the counts had when they were numbered last
	// changed are the streams that have changed since they were last noted; nil: nobody asks.
	changed map[string]bool
	// held has, for the streams of which windows hold something, the version that was noted.
	held map[string]uint64
}

func newStreams(coverage Coverage) *streams {
	return &streams{coverage: coverage, byNamespace: map[string]*stream{}, held: map[string]uint64{}}
}

// of returns the stream of the namespace, which it adds if need be.
func (s *streams) of(namespace string) *stream {
	found, ok := s.byNamespace[namespace]
	if !ok {
		found = &stream{Namespace: namespace}
		s.byNamespace[namespace] = found
	}
	return found
}

func (s *streams) note(of *stream) {
	if s.changed != nil {
		s.changed[of.Namespace] = true
	}
}

func (s *streams) advance(namespace, version string) {
	of := s.of(namespace)
	if version == "" || version == of.ResourceVersion {
		return
	}
	of.ResourceVersion = version
	s.note(of)
}

// resume returns where a stream resumes: it does so only with the selector of its last listing.
func (s *streams) resume(namespace string) string {
	of := s.of(namespace)
	if !of.Listed || of.Selector != s.coverage.FieldSelector || !of.Covers {
		if of.ResourceVersion != "" {
			reached.State("a stream lists because its filter or its coverage has changed")
		}
		return ""
	}
	return of.ResourceVersion
}

func (s *streams) reached(namespace string) uint64 {
	return event.Version(s.of(namespace).ResourceVersion)
}

// listed notes that a stream has been listed completely. It reports whether this ended the coverage
// before.
func (s *streams) listed(namespace string) (ended bool) {
	of := s.of(namespace)
	if of.Listed && of.Covers && of.Selector == s.coverage.FieldSelector {
		return false
	}
	of.Listed, of.Covers, of.Selector = true, true, s.coverage.FieldSelector
	s.note(of)
	return s.settle()
}

// settle ends the coverage before, once all streams that run have been listed. It reports whether
// they have.
func (s *streams) settle() bool {
	runs := map[string]bool{}
	for _, namespace := range s.coverage.Namespaces {
		of := s.of(namespace)
		if !of.Listed || !of.Covers || of.Selector != s.coverage.FieldSelector {
			return false
		}
		runs[namespace] = true
	}
	for namespace, of := range s.byNamespace {
		if of.Covers && !runs[namespace] {
			of.Covers, of.ResourceVersion = false, ""
			s.note(of)
		}
	}
	return true
}

// any reports whether a condition holds for a stream that brings, or brought, the events of a
// namespace: its own, or that of the cluster.
func (s *streams) any(namespace string, holds func(*stream) bool) bool {
	own, cluster := s.byNamespace[namespace], s.byNamespace[""]
	return own != nil && holds(own) || cluster != nil && holds(cluster)
}

// covers reports whether the last coverage included the event.
func (s *streams) covers(ev *corev1.Event) bool {
	return s.any(ev.Namespace, func(of *stream) bool { return of.Covers && of.includes(ev) })
}

// watched reports whether events of the namespace were ever watched.
func (s *streams) watched(namespace string) bool {
	return s.any(namespace, func(of *stream) bool { return of.Listed })
}

func (s *streams) forgetVersion(namespace string) {
	of := s.of(namespace)
	of.ResourceVersion = ""
	s.note(of)
}

// versions returns where the streams that run have got to, of those that have been listed.
func (s *streams) versions() map[string]uint64 {
	versions := make(map[string]uint64, len(s.coverage.Namespaces))
	for _, namespace := range s.coverage.Namespaces {
		of := s.of(namespace)
		if version := event.Version(of.ResourceVersion); version > 0 && of.Covers {
			versions[namespace] = version
		}
	}
	return versions
}

// number notes the ledger's numbers of the streams.
func (s *streams) number(scopes map[string]uint16) {
	s.numbered = len(scopes)
	for namespace, scope := range scopes {
		if of := s.of(namespace); of.Scope != int(scope)+1 {
			of.Scope = int(scope) + 1
			s.note(of)
		}
	}
}

func (s *streams) scopes() map[string]uint16 {
	scopes := make(map[string]uint16, len(s.byNamespace))
	for namespace, of := range s.byNamespace {
		if of.Scope > 0 {
			scopes[namespace] = uint16(of.Scope - 1)
		}
	}
	return scopes
}

// value is a stream in the form that restore takes. upTo is the version that windows hold it back to;
// 0: none does.
func (s *stream) value(upTo uint64) []byte {
	noted := *s
	if version := event.Version(s.ResourceVersion); upTo > 0 && version >= upTo {
		noted.ResourceVersion = versionText(upTo - 1)
	}
	written, _ := json.Marshal(noted)
	return written
}

// versionText writes a version. Before the first one, a stream lists.
func versionText(version uint64) string {
	if version == 0 {
		return ""
	}
	return strconv.FormatUint(version, 10)
}

func (s *streams) restore(namespace string, value []byte) error {
	if value == nil {
		return nil // None is ever removed.
	}
	of := &stream{}
	if err := json.Unmarshal(value, of); err != nil {
		return err
	}
	if of.Namespace != namespace || of.Scope < 0 || of.Scope > math.MaxUint16 {
		return fmt.Errorf("the stream of namespace %q has the key of another one, or no valid number", of.Namespace)
	}
	s.byNamespace[namespace] = of
	return nil
}
