// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"container/list"
	"encoding/json"
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
	position
	noted position // as it was last noted

	namespace string // empty also if only the stream's events are remembered
	id        uint64 // stands for the stream in what is noted of events
	runs      bool
	pass      uint16 // the listing pass; never gone
	events    map[identity]entry
	keeping   list.List // the windows that keep something of the stream, in the order of the first version
}

// oldest returns the window that has kept something for the longest time; nil: none does.
func (s *stream) oldest() *window {
	if s.keeping.Len() == 0 {
		return nil
	}
	return s.keeping.Front().Value.(*window)
}

// toNote returns the position to note: before what windows keep.
func (s *stream) toNote() position {
	p := s.position
	if oldest := s.oldest(); oldest != nil && oldest.kept.first > 0 && event.Version(p.ResourceVersion) >= oldest.kept.first {
		p.ResourceVersion = ""
		if before := oldest.kept.first - 1; before > 0 { // Before the first version, a stream lists.
			p.ResourceVersion = strconv.FormatUint(before, 10)
		}
	}
	return p
}

// position is what is noted of a stream: what it covers, and how far it has come.
type position struct {
	// Listed reports whether the stream was ever listed completely.
	Listed bool `json:"listed,omitempty"`
	// Selector is the field selector of the last complete listing.
	Selector        string `json:"selector,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"` // where it resumes; empty: it lists
}

// selectsNothing is the selector of a stream that no longer covers anything: its events were watched.
const selectsNothing = "none"

// includes reports whether the last complete listing of the stream had an event of its namespace.
func (p position) includes(ev *corev1.Event) bool {
	return p.Listed && (p.Selector == "" || p.Selector == fields.OneTermEqualSelector("type", ev.Type).String())
}

// encode returns the form that restore takes; nil means that the stream covers nothing.
func (p position) encode() []byte {
	if !p.Listed {
		return nil
	}
	encoded, _ := json.Marshal(p) // It knows no error for these types.
	return encoded
}

// streams has the streams that run, and those before them. Until all that run have been listed, what
// the others covered counts, too. An event stays with the stream that brought it last.
type streams struct {
	coverage Coverage
	byID     map[uint64]*stream
}

func newStreams(coverage Coverage) *streams {
	s := &streams{coverage: coverage, byID: map[uint64]*stream{}}
	for _, namespace := range coverage.Namespaces {
		s.get(namespace).runs = true
	}
	return s
}

// get returns the stream of a namespace, which it adds if need be.
func (s *streams) get(namespace string) *stream {
	found := s.withID(digest(namespace))
	found.namespace = namespace
	return found
}

func (s *streams) withID(id uint64) *stream {
	found := s.byID[id]
	if found == nil {
		found = &stream{id: id, pass: firstPass, events: map[identity]entry{}}
		s.byID[id] = found
	}
	return found
}

// bringing returns the streams that may have brought the events of a namespace: its own, and that of
// the cluster. nil: there is none.
func (s *streams) bringing(namespace string) [2]*stream {
	return [...]*stream{s.byID[digest(namespace)], s.byID[digest("")]}
}

// find returns what is remembered of an event, and the stream that brought it: the one that brings it
// now, or one that ran before. The stream is nil if nothing is remembered.
func (s *streams) find(now seen) (*stream, entry) {
	if known, ok := now.from.events[now.identity]; ok {
		return now.from, known
	}
	for _, former := range s.bringing(now.namespace) {
		if former != nil {
			if known, ok := former.events[now.identity]; ok {
				return former, known
			}
		}
	}
	return nil, entry{}
}

// isCurrent reports whether a stream has been listed with the selector that it has now.
func (s *streams) isCurrent(listed *stream) bool {
	return listed.Listed && listed.Selector == s.coverage.FieldSelector
}

// resume returns where a stream resumes: it does so only with the selector of its last listing.
func (s *streams) resume(namespace string) string {
	if found := s.get(namespace); s.isCurrent(found) {
		return found.ResourceVersion
	}
	return ""
}

// reached returns how far a stream has come; 0: it is not known.
func (s *streams) reached(namespace string) uint64 {
	return event.Version(s.get(namespace).ResourceVersion)
}

// Listed returns how many of the streams that run have been listed, by this process or an earlier one.
func (s *streams) Listed() (n int) {
	for _, namespace := range s.coverage.Namespaces {
		if s.isCurrent(s.get(namespace)) {
			n++
		}
	}
	return n
}

// endFormer ends what streams covered that do not run, once all that run have been listed. It reports
// whether they have.
func (s *streams) endFormer() bool {
	if s.Listed() < len(s.coverage.Namespaces) {
		return false
	}
	for _, former := range s.byID {
		if !former.runs {
			former.Selector, former.ResourceVersion = selectsNothing, ""
		}
	}
	return true
}

// covers reports whether the last coverage included the event.
func (s *streams) covers(ev *corev1.Event) bool {
	streams := s.bringing(ev.Namespace)
	return slices.ContainsFunc(streams[:], func(one *stream) bool { return one != nil && one.includes(ev) })
}

// watched reports whether events of the namespace were watched before.
func (s *streams) watched(namespace string) bool {
	streams := s.bringing(namespace)
	return slices.ContainsFunc(streams[:], func(one *stream) bool { return one != nil && one.Listed })
}

func (s *streams) restore(namespace string, value []byte) error {
	var restored position
	if value != nil {
		if err := json.Unmarshal(value, &restored); err != nil {
			return err
		}
	}
	known := s.get(namespace)
	known.position, known.noted = restored, restored
	return nil
}
