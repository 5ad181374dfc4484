// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// errNoFact reports that something else was stored.
var errNoFact = errors.New("it is no fact")

// storedFact is a fact without what is computed from it.
type storedFact struct {
	Record   record.Record
	Last     time.Time
	Resource map[string]string `json:",omitempty"`
	Moments  []storedMoment
}

type storedMoment struct {
	At      time.Time
	N       int64
	Until   time.Time       `json:",omitzero"`
	Record  string          `json:",omitempty"`
	Details *record.Details `json:",omitempty"`
}

// MarshalJSON writes the fact without what is computed from it.
func (f *Fact) MarshalJSON() ([]byte, error) {
	s := storedFact{Record: f.Record, Last: f.Last, Resource: f.Resource}
	for _, m := range f.Moments {
		s.Moments = append(s.Moments, storedMoment{m.At, m.N, m.Until, m.record, m.details})
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *Fact) UnmarshalJSON(text []byte) error {
	var s storedFact
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if s.Record.Subject == nil || len(s.Record.Chain) == 0 || len(s.Moments) == 0 {
		return errNoFact
	}
	r := s.Record
	r.Attributes = pcommon.Map{}
	*f = Fact{
		Record: r, Node: r.NodeOfPod(), Key: Key{Cluster: r.Cluster, Namespace: r.Namespace, Top: r.Chain[0]},
		Last: s.Last, Resource: s.Resource,
	}
	for _, m := range s.Moments {
		f.Moments = append(f.Moments, Moment{m.At, m.N, m.Until, m.Record, m.Details})
	}
	f.judge()
	return nil
}

// maxResource bounds the attributes that are kept of a resource, in bytes.
const maxResource = 4 << 10

// ResourceOf returns the attributes of a resource that are the same for all that a workload owns. It keeps
// nothing of the map.
func ResourceOf(attributes pcommon.Map) map[string]string {
	all, size := map[string]string{}, 0
	for name, value := range attributes.All() {
		text := value.AsString()
		if size+len(name)+len(text) > maxResource || !record.IsOfWorkload(name) || strings.HasPrefix(name, "k8s.replicaset.") {
			continue
		}
		all[strings.Clone(name)], size = strings.Clone(text), size+len(name)+len(text)
	}
	return all
}

func sizeOf(attributes map[string]string) (size int) {
	for name, value := range attributes {
		size += 48 + len(name) + len(value)
	}
	return size
}
