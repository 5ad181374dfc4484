// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/problem"
)

// part is one of these: a problem or a change that was reported, or a fact. A stored value has some, one after the
// other, compressed; a later part replaces what it has.
type part struct {
	Problem *problem.Problem     `json:"p,omitempty"`
	Change  *problem.Change      `json:"c,omitempty"`
	Fact    *incident.StoredFact `json:"f,omitempty"`
}

// parts are compressed: those of one workload differ little. Uncompressed, the storage takes ten times as much, and its
// pages are a part of the memory of the Collector. The zero value has none.
type parts struct {
	compressed bytes.Buffer
	zip        *gzip.Writer // nil: nothing was added yet
	size       int          // in bytes, before they are compressed
}

// add adds a part. JSON and the buffer know no error for it.
func (p *parts) add(one part) {
	if p.zip == nil {
		p.zip, _ = gzip.NewWriterLevel(&p.compressed, gzip.BestSpeed)
	}
	_ = json.NewEncoder(p).Encode(one)
}

// Write implements io.Writer.
func (p *parts) Write(encoded []byte) (int, error) {
	p.size += len(encoded)
	return p.zip.Write(encoded)
}

// take returns the stored value of the parts, and leaves none. What compresses takes a megabyte, so it is used again.
func (p *parts) take() []byte {
	if p.size == 0 {
		return nil
	}
	_ = p.zip.Close()
	value := p.compressed.Bytes()
	p.compressed, p.size = bytes.Buffer{}, 0
	p.zip.Reset(&p.compressed)
	return value
}

// store keeps what the watch knows in a storage extension. Callers of the model add facts; the rest belongs to the
// loop of the watch. A nil store keeps nothing.
type store struct {
	log
	backoff  time.Duration
	retryAt  time.Time
	appended int       // bytes since the last snapshot, before they were compressed
	snapshot time.Time // when the last one began

	mu      sync.Mutex // guards the following
	unsaved parts
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
	w.live.Use(func(m *incident.Model) { m.AddFacts(nil, time.Now()) }) // What is too old now is forgotten.
	w.live.Keep = s.noteFacts
	return s, nil
}

// read reads parts.
func read(value []byte, w *watch, problems map[string]problem.Problem) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(value))
	if err != nil {
		return err
	}
	var facts []*incident.Fact
	for parts := json.NewDecoder(unzipped); ; {
		var p part
		if err := parts.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		switch {
		case p.Problem != nil:
			problems[p.Problem.ID] = *p.Problem
		case p.Change != nil:
			w.changes.Keep(*p.Change)
		case p.Fact != nil:
			f, err := p.Fact.Fact()
			if err != nil {
				return err
			}
			facts = append(facts, f)
		}
	}
	w.live.Replay(facts)
	return nil
}

// note keeps a part for the next save. If too much waits, a snapshot replaces it.
func (s *store) note(p part) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.behind {
		return
	}
	if s.unsaved.add(p); s.unsaved.compressed.Len() > maxUnsaved {
		_, s.behind = s.unsaved.take(), true
	}
}

// noteFacts keeps what has come for the next save.
func (s *store) noteFacts(facts []*incident.Fact) {
	for _, f := range facts {
		s.note(part{Fact: f.Stored()})
	}
}

// noteItem keeps what was reported for the next save.
func (s *store) noteItem(one *item, changes *problem.Changes) {
	if one.problem != nil {
		s.note(part{Problem: one.problem})
		return
	}
	change := changes.Get(one.change)
	change.IsOver = change.IsOver && !one.opens // Else another item reports it.
	s.note(part{Change: &change})
}

// save writes what waits. After an error, a snapshot of everything is written.
func (s *store) save(ctx context.Context, w *watch) {
	if s == nil || s.journal == nil || time.Now().Before(s.retryAt) {
		return
	}
	s.mu.Lock()
	s.appended += s.unsaved.size
	unsaved, behind := s.unsaved.take(), s.behind
	s.behind = false
	s.mu.Unlock()
	if len(unsaved) == 0 && !behind {
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
	_, s.behind = s.unsaved.take(), true
}

// mostAppended is how many bytes of entries follow a snapshot at most, before they are compressed: a start reads them in
// about half a second. The journal knows only how many are stored.
const mostAppended = 16 << 20

// snapshotEvery is the time after which the next entry becomes a snapshot: only a snapshot removes what is older than
// 30 days.
const snapshotEvery = 24 * time.Hour

func (s *store) write(ctx context.Context, unsaved []byte, behind bool, w *watch) error {
	if behind || s.appended > mostAppended || time.Since(s.snapshot) >= snapshotEvery || s.journal.WantsSnapshot() {
		s.appended, s.snapshot = 0, time.Now()
		return s.journal.Snapshot(ctx, w.chunks)
	}
	return s.journal.Append(ctx, unsaved)
}

// chunks encodes all that was reported, and the facts of the model, several in a chunk.
func (w *watch) chunks(yield func([]byte) bool) {
	var chunk parts
	for p := range w.parts {
		if chunk.add(p); chunk.size >= chunkBytes && !yield(chunk.take()) {
			return
		}
	}
	if chunk.size > 0 {
		yield(chunk.take())
	}
}

// parts yields all that was reported, and the facts of the model.
func (w *watch) parts(yield func(part) bool) {
	waiting, opening := w.outbox.waiting()
	for p := range w.reported(waiting, opening) {
		if !yield(part{Problem: &p}) {
			return
		}
	}
	for change := range w.changes.All {
		change.IsOver = change.IsOver && !waiting[change.ID]
		if !opening[change.ID] && !yield(part{Change: &change}) {
			return
		}
	}
	for f := range w.live.Facts {
		if !yield(part{Fact: f.Stored()}) {
			return
		}
	}
}

// reported yields the problems as they were reported. What waits for the pipeline was not: a restart reports it.
func (w *watch) reported(waiting, opening map[string]bool) iter.Seq[problem.Problem] {
	return func(yield func(problem.Problem) bool) {
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
}
