// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
)

// entry is a part of what is stored: problems and changes that were reported, and facts. A later part replaces what it
// has.
type entry struct {
	Problems []problem.Problem `json:"p,omitempty"`
	Changes  []problem.Change  `json:"c,omitempty"`
	Facts    []json.RawMessage `json:"f,omitempty"`
}

// store keeps what the watch knows in a storage extension. Facts come from whoever uses the model; the rest belongs to the
// loop of the watch. A nil store keeps nothing.
type store struct {
	log
	backoff time.Duration
	retryAt time.Time

	mu      sync.Mutex // guards the following
	unsaved entry
	bytes   int  // of unsaved, about
	behind  bool // something is not saved, and not in unsaved
}

// openStore reads what was stored into a watch.
func openStore(ctx context.Context, host component.Host, id, own component.ID, w *watch, failed func()) (*store, error) {
	s := &store{log: log{logger: w.settings.Logger, failed: failed}}
	problems := map[string]problem.Problem{}
	if err := s.open(ctx, host, id, own, "problems", "problems", func(value []byte) error { return read(value, w, problems) }); err != nil {
		return nil, err
	}
	for _, p := range problems {
		if p.Over.IsZero() {
			w.tracker.Open = append(w.tracker.Open, &p)
		} else {
			w.tracker.Closed = append(w.tracker.Closed, p)
		}
	}
	slices.SortFunc(w.tracker.Open, func(a, b *problem.Problem) int { return cmp.Or(a.Onset.Compare(b.Onset), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(w.tracker.Closed, func(a, b problem.Problem) int { return cmp.Or(a.Over.Compare(b.Over), cmp.Compare(a.ID, b.ID)) })
	w.live.Keep = s.noteFacts
	return s, nil
}

// read reads an entry.
func read(value []byte, w *watch, problems map[string]problem.Problem) error {
	var e entry
	if err := json.Unmarshal(value, &e); err != nil {
		return err
	}
	for _, p := range e.Problems {
		problems[p.ID] = p
	}
	for _, change := range e.Changes {
		w.changes.Keep(change)
	}
	facts := make([]*incident.Fact, 0, len(e.Facts))
	for _, text := range e.Facts {
		f := &incident.Fact{}
		if err := json.Unmarshal(text, f); err != nil {
			return err
		}
		facts = append(facts, f)
	}
	w.live.Use(func(m *incident.Model) { m.AddFacts(facts, time.Now()) })
	return nil
}

// note keeps something for the next save, if add adds it: add gets what waits, and returns about how many bytes are new.
// If it is too much, a snapshot replaces it.
func (s *store) note(add func(*entry) (bytes int)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.behind {
		return
	}
	if s.bytes += add(&s.unsaved); s.bytes > maxUnsaved {
		s.unsaved, s.bytes, s.behind = entry{}, 0, true
	}
}

// noteFacts keeps what has come for the next save.
func (s *store) noteFacts(facts []*incident.Fact) {
	for _, f := range facts {
		s.note(func(e *entry) int { return e.addFact(f) })
	}
}

// noteItem keeps what was reported for the next save.
func (s *store) noteItem(one *item, changes *problem.Changes) {
	s.note(func(e *entry) int {
		if one.problem != nil {
			e.Problems = append(e.Problems, *one.problem)
			return 1 << 10
		}
		e.Changes = append(e.Changes, changes.Get(one.change))
		return 1 << 9
	})
}

func (e *entry) addFact(f *incident.Fact) (bytes int) {
	text := encode(f)
	e.Facts = append(e.Facts, text)
	return len(text)
}

// save writes what waits. After an error, a snapshot of everything is written.
func (s *store) save(ctx context.Context, w *watch) {
	if s == nil || s.journal == nil || time.Now().Before(s.retryAt) {
		return
	}
	s.mu.Lock()
	unsaved, behind, isSaved := s.unsaved, s.behind, s.bytes == 0 && !s.behind
	s.unsaved, s.bytes, s.behind = entry{}, 0, false
	s.mu.Unlock()
	if isSaved {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storageTimeout)
	defer cancel()
	err := s.write(ctx, unsaved, behind, w)
	if err == nil {
		s.backoff, s.retryAt = 0, time.Time{}
		return
	}
	s.failed()
	s.backoff = min(max(2*s.backoff, interval), maxBackoff)
	s.retryAt = time.Now().Add(s.backoff)
	s.logger.Warn("Cannot save problems; retrying. A restart would repeat records", zap.Error(err))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved, s.bytes, s.behind = entry{}, 0, true
}

func (s *store) write(ctx context.Context, unsaved entry, behind bool, w *watch) error {
	if behind || s.journal.WantsSnapshot() {
		return s.journal.Snapshot(ctx, w.chunks)
	}
	return s.journal.Append(ctx, encode(unsaved))
}

// chunks encodes all that was reported, and the facts of the model, several in a chunk.
func (w *watch) chunks(yield func([]byte) bool) {
	var e entry
	size, goesOn := 0, true
	grow := func(bytes int) bool {
		if size += bytes; size >= chunkBytes {
			goesOn = yield(encode(e))
			e, size = entry{}, 0
		}
		return goesOn
	}
	for p := range w.reported {
		if e.Problems = append(e.Problems, p); !grow(1 << 10) {
			return
		}
	}
	waiting, _ := w.outbox.waiting()
	for change := range w.changes.All {
		if !waiting[change.ID] {
			if e.Changes = append(e.Changes, change); !grow(1 << 9) {
				return
			}
		}
	}
	for f := range w.live.Facts {
		if !grow(e.addFact(f)) {
			return
		}
	}
	yield(encode(e))
}

// reported yields the problems as they were reported. What waits for the pipeline was not: a restart reports it.
func (w *watch) reported(yield func(problem.Problem) bool) {
	waiting, opening := w.outbox.waiting()
	for _, p := range w.tracker.Open {
		if !opening[p.ID] && !yield(*p) {
			return
		}
	}
	for _, p := range w.tracker.Closed {
		if waiting[p.ID] {
			p.Over = time.Time{}
		}
		if !opening[p.ID] && !yield(p) {
			return
		}
	}
}
