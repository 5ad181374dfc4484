// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// errNoFact reports that something else was stored.
var errNoFact = errors.New("it is no fact")

// StoredFact is a fact without what is computed from it. It can be encoded as JSON. Its times are Unix times in
// nanoseconds: as texts, they took a third of the time to encode it.
type StoredFact struct {
	Record          record.Record
	First, At, Last int64
	Resource        map[string]string `json:",omitempty"`
	Moments         []StoredMoment
	// Begun are the revisions of the workload that began before what is known of them, and Scaled is when one was scaled
	// of which nothing else is known; 0: none was.
	Begun  []string `json:",omitempty"`
	Scaled int64    `json:",omitempty"`
}

// StoredMoment is a Moment that can be encoded as JSON.
type StoredMoment struct {
	At      int64
	N       int64
	Until   int64           `json:",omitempty"` // 0: see Moment
	Record  string          `json:",omitempty"`
	Details *record.Details `json:",omitempty"`
}

// Stored returns the fact without what is computed from it.
func (f *Fact) Stored() *StoredFact {
	s := &StoredFact{
		Record: f.Record, First: f.First.UnixNano(), At: f.At.UnixNano(), Last: f.Last.UnixNano(), Resource: f.Resource,
		Moments: make([]StoredMoment, 0, len(f.Moments)),
	}
	for _, m := range f.Moments {
		stored := StoredMoment{At: m.At.UnixNano(), N: m.N, Record: m.record, Details: m.details}
		if !m.Until.IsZero() {
			stored.Until = m.Until.UnixNano()
		}
		s.Moments = append(s.Moments, stored)
	}
	if f.before != nil {
		s.Begun = slices.Sorted(maps.Keys(f.before.begun))
	}
	if f.before != nil && !f.before.scaled.IsZero() {
		s.Scaled = f.before.scaled.UnixNano()
	}
	return s
}

// Fact returns the fact that was stored. It returns an error if something else was.
func (s *StoredFact) Fact() (*Fact, error) {
	if s.Record.Subject == nil || len(s.Record.Chain) == 0 || len(s.Moments) == 0 {
		return nil, errNoFact
	}
	r := s.Record
	r.Attributes, r.First, r.At = pcommon.Map{}, timeAt(s.First), timeAt(s.At)
	f := &Fact{
		Record: r, Node: r.NodeOfPod(), Key: Key{Cluster: r.Cluster, Namespace: r.Namespace, Top: r.Chain[0]},
		Last: timeAt(s.Last), Resource: s.Resource,
	}
	for _, m := range s.Moments {
		moment := Moment{At: timeAt(m.At), N: m.N, record: m.Record, details: m.Details}
		if m.Until != 0 {
			moment.Until = timeAt(m.Until)
		}
		f.Moments = append(f.Moments, moment)
	}
	if len(s.Begun) > 0 || s.Scaled != 0 {
		f.before = &forgotten{begun: map[string]bool{}}
		for _, revision := range s.Begun {
			f.before.begun[revision] = true
		}
		if s.Scaled != 0 {
			f.before.scaled = timeAt(s.Scaled)
		}
	}
	f.judge()
	return f, nil
}

// maxResource bounds the attributes that are kept of a resource, in bytes.
const maxResource = 4 << 10

// ResourceOf returns the attributes of a resource that are the same for all that a workload owns.
func ResourceOf(attributes pcommon.Map) map[string]string {
	all, size := map[string]string{}, 0
	for name, value := range attributes.All() {
		text := value.AsString()
		if size+len(name)+len(text) > maxResource || !record.IsOfWorkload(name) || strings.HasPrefix(name, "k8s.replicaset.") {
			continue
		}
		all[name], size = text, size+len(name)+len(text)
	}
	return all
}

func sizeOf(attributes map[string]string) (size int) {
	for name, value := range attributes {
		size += 48 + len(name) + len(value)
	}
	return size
}
