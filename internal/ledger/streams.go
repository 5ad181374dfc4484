// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
)

// Coverage describes the events that the streams bring.
type Coverage struct {
	Namespaces    []string // of the streams; "" is the whole cluster
	FieldSelector string   // the same for all streams: at most one type; empty selects everything
}

// stream has the state of a stream that runs, or that ran before.
type stream struct {
	streamEntry
	noted streamEntry // as it was last noted

	runs bool
	pass uint16 // the listing pass; never gone
	live int    // its events that are alive
	seen int    // of them, those that were seen in this pass
}

// streamEntry is the entry of a stream in a checkpoint.
type streamEntry struct {
	Namespace       string `json:"namespace"`
	ResourceVersion string `json:"resourceVersion,omitempty"` // where it resumes; empty: it lists
	Number          uint16 `json:"number"`                    // above 0; stands for the stream in the entries of events
	// Listed reports whether the stream has ever been listed completely. Selector is the field
	// selector of the last complete listing.
	Listed   bool   `json:"listed,omitempty"`
	Selector string `json:"selector,omitempty"`
	// Covers reports whether the stream is part of the last coverage. This has the streams that run
	// and, until all of them have been listed, also the streams before.
	Covers bool `json:"covers,omitempty"`
}

// includes reports whether the last complete listing of the stream had an event of its namespace.
func (e *streamEntry) includes(ev *corev1.Event) bool {
	return e.Selector == "" || e.Selector == fields.OneTermEqualSelector("type", ev.Type).String()
}

// heldTo returns the entry to note if windows hold what follows a version; 0: they hold nothing.
func (e streamEntry) heldTo(first uint64) streamEntry {
	if first > 0 && event.Version(e.ResourceVersion) >= first {
		e.ResourceVersion = ""
		if first > 1 { // Before the first version, a stream lists.
			e.ResourceVersion = strconv.FormatUint(first-1, 10)
		}
	}
	return e
}

func (e streamEntry) encode() []byte {
	encoded, _ := json.Marshal(e) // It knows no error for these types.
	return encoded
}

// streams remembers all streams that have ever run. None is removed.
type streams struct {
	coverage    Coverage
	byNamespace map[string]*stream
	byNumber    map[uint16]*stream // the same
}

func newStreams(coverage Coverage) *streams {
	return &streams{coverage: coverage, byNamespace: map[string]*stream{}, byNumber: map[uint16]*stream{}}
}

// get returns the stream of a namespace, which it adds if need be.
func (s *streams) get(namespace string) *stream {
	if found := s.byNamespace[namespace]; found != nil {
		return found
	}
	number := uint16(len(s.byNumber)) + 1
	for s.byNumber[number] != nil { // The entry of another one was corrupt.
		number++
	}
	return s.add(streamEntry{Namespace: namespace, Number: number})
}

func (s *streams) add(e streamEntry) *stream {
	added := &stream{streamEntry: e, runs: slices.Contains(s.coverage.Namespaces, e.Namespace), pass: firstPass}
	s.byNamespace[e.Namespace], s.byNumber[e.Number] = added, added
	return added
}

// resume returns where a stream resumes: it does so only with the selector of its last listing.
func (s *streams) resume(namespace string) string {
	found := s.get(namespace)
	if !s.isCurrent(found) {
		return ""
	}
	return found.ResourceVersion
}

// isCurrent reports whether a stream has been listed with the selector that it has now.
func (s *streams) isCurrent(listed *stream) bool {
	return listed.Listed && listed.Covers && listed.Selector == s.coverage.FieldSelector
}

// reached returns how far a stream has come; 0: it is not known.
func (s *streams) reached(namespace string) uint64 {
	return event.Version(s.get(namespace).ResourceVersion)
}

// endList notes that a stream has been listed completely. It reports whether this ended the coverage
// before.
func (s *streams) endList(namespace string) (ended bool) {
	listed := s.get(namespace)
	if s.isCurrent(listed) {
		return false
	}
	listed.Listed, listed.Covers, listed.Selector = true, true, s.coverage.FieldSelector
	return s.settle()
}

// settle ends the coverage before, once all streams that run have been listed. It reports whether
// they have.
func (s *streams) settle() bool {
	for _, namespace := range s.coverage.Namespaces {
		if !s.isCurrent(s.get(namespace)) {
			return false
		}
	}
	for _, former := range s.byNamespace {
		if !former.runs {
			former.Covers, former.ResourceVersion = false, ""
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
	return s.any(ev.Namespace, func(one *stream) bool { return one.Covers && one.includes(ev) })
}

// watched reports whether events of the namespace were ever watched.
func (s *streams) watched(namespace string) bool {
	return s.any(namespace, func(one *stream) bool { return one.Listed })
}

func (s *streams) restore(namespace string, value []byte) error {
	var e streamEntry
	if err := json.Unmarshal(value, &e); err != nil {
		return err
	}
	if e.Namespace != namespace {
		return fmt.Errorf("the stream of namespace %q has the key of another one", e.Namespace)
	}
	s.add(e).noted = e
	return nil
}
