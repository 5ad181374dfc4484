// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
	"github.com/kubeevents/kubeeventsreceiver/internal/journal"
)

// entry is a part of what is stored: problems and changes that were told, and records. A later part replaces what it has.
type entry struct {
	Problems []problem.Problem       `json:"p,omitempty"`
	Told     map[string]problem.Told `json:"c,omitempty"`
	Facts    []json.RawMessage       `json:"f,omitempty"`
}

// store keeps what the watch knows in a storage extension. Only its loop uses it. A nil store keeps nothing.
type store struct {
	client  storage.Client
	journal *journal.Journal // nil: the storage does not answer
	logger  *zap.Logger
	failed  func() // counts an error

	unsaved entry
	bytes   int  // of unsaved, about
	behind  bool // something is not saved, and not in unsaved
	backoff time.Duration
	retryAt time.Time
}

// openStore reads what was stored into a watch. An entry that cannot be read costs only this entry.
func openStore(ctx context.Context, host component.Host, id, own component.ID, w *watch, failed func()) (*store, error) {
	s := &store{logger: w.settings.Logger, failed: failed}
	var err error
	if s.client, err = journal.Client(ctx, host, id, component.KindConnector, own, "problems"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	problems := map[string]problem.Problem{}
	s.journal, err = journal.Open(ctx, s.client, func(value []byte) error {
		if err := read(value, w, problems); err != nil {
			s.logger.Error("An entry of the stored problems cannot be read; starting without it", zap.Error(err))
		}
		return nil
	})
	if errors.Is(err, journal.ErrCorrupt) {
		s.logger.Error("The stored problems cannot be read; starting without them", zap.Error(err))
		s.journal, _, err = journal.SetAside(ctx, s.client)
	}
	if err != nil {
		s.logger.Error("The storage does not answer; problems are not saved", zap.Error(err))
		s.journal = nil
		failed()
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
	for id, told := range e.Told {
		w.changes.Tell(id, told)
	}
	facts := make([]*incident.Fact, 0, len(e.Facts))
	for _, text := range e.Facts {
		f := &incident.Fact{}
		if err := json.Unmarshal(text, f); err != nil {
			return err
		}
		facts = append(facts, f)
	}
	w.model.AddFacts(facts, time.Now())
	return nil
}

// noteFacts keeps what has come for the next save.
func (s *store) noteFacts(facts []*incident.Fact) {
	if s == nil || s.behind {
		return
	}
	for _, f := range facts {
		text, _ := json.Marshal(f) // It knows no error for these types.
		s.unsaved.Facts = append(s.unsaved.Facts, text)
		s.grow(len(text))
	}
}

// noteItem keeps what was told for the next save.
func (s *store) noteItem(one *item, told map[string]problem.Told) {
	switch {
	case s == nil || s.behind:
	case one.problem != nil:
		s.unsaved.Problems = append(s.unsaved.Problems, *one.problem)
		s.grow(1 << 10)
	default:
		if s.unsaved.Told == nil {
			s.unsaved.Told = map[string]problem.Told{}
		}
		s.unsaved.Told[one.change] = told[one.change]
		s.grow(200)
	}
}

// grow notes that more waits for the storage. If it is too much, a snapshot replaces it.
func (s *store) grow(bytes int) {
	if s.bytes += bytes; s.bytes > maxUnsaved {
		s.unsaved, s.bytes, s.behind = entry{}, 0, true
	}
}

// save writes what waits. After an error, a snapshot of everything is written.
func (s *store) save(ctx context.Context, w *watch) {
	if s == nil || s.journal == nil || s.bytes == 0 && !s.behind || time.Now().Before(s.retryAt) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storageTimeout)
	defer cancel()
	unsaved := s.unsaved
	s.unsaved, s.bytes = entry{}, 0
	err := s.write(ctx, unsaved, w)
	if err == nil {
		s.behind, s.backoff, s.retryAt = false, 0, time.Time{}
		return
	}
	s.failed()
	s.behind, s.backoff = true, min(max(2*s.backoff, interval), maxBackoff)
	s.retryAt = time.Now().Add(s.backoff)
	s.logger.Warn("Cannot save problems; retrying. A restart would repeat records", zap.Error(err))
}

func (s *store) write(ctx context.Context, unsaved entry, w *watch) error {
	if s.behind || s.journal.WantsSnapshot() {
		return s.journal.Snapshot(ctx, w.chunks)
	}
	return s.journal.Append(ctx, encodeEntry(unsaved))
}

func encodeEntry(e entry) []byte {
	text, _ := json.Marshal(e) // It knows no error for these types.
	return text
}

func (s *store) close(ctx context.Context) {
	if s == nil {
		return
	}
	if err := s.client.Close(ctx); err != nil {
		s.logger.Warn("Cannot close the storage of problems", zap.Error(err))
	}
}

// chunks encodes all that was told, and the records of the model. What waits for the pipeline was not told: a restart
// tells it.
func (w *watch) chunks(yield func([]byte) bool) {
	var e entry
	size, goesOn := 0, true
	grow := func(bytes int) {
		if size += bytes; size < chunkBytes || !goesOn {
			return
		}
		goesOn = yield(encodeEntry(e))
		e, size = entry{}, 0
	}
	for _, p := range w.tracker.Open {
		if _, opens := w.outbox.has(p.ID); !opens {
			e.Problems = append(e.Problems, *p)
			grow(1 << 10)
		}
	}
	for _, p := range w.tracker.Closed {
		waits, opens := w.outbox.has(p.ID)
		if waits {
			p.Over = time.Time{}
		}
		if !opens {
			e.Problems = append(e.Problems, p)
			grow(1 << 10)
		}
	}
	for id, told := range w.changes.Told {
		if !w.outbox.hasChange(id) {
			if e.Told == nil {
				e.Told = map[string]problem.Told{}
			}
			e.Told[id] = told
			grow(200)
		}
	}
	w.model.Facts(func(f *incident.Fact) bool {
		text, _ := json.Marshal(f) // It knows no error for these types.
		e.Facts = append(e.Facts, text)
		grow(len(text))
		return goesOn
	})
	if goesOn {
		yield(encodeEntry(e))
	}
}
