// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
	"github.com/kubeevents/kubeeventsreceiver/internal/journal"
)

const (
	// storageTimeout is the time that a request to the storage may take.
	storageTimeout = 10 * time.Second
	// maxUnsaved bounds what waits for the storage, in bytes. If it is more, a snapshot of everything replaces it.
	maxUnsaved = 8 << 20
	// chunkBytes is the size of a part of a snapshot.
	chunkBytes = 1 << 20
)

// saved is the model in a storage extension. It is written in the background: nobody waits for it.
type saved struct {
	log
	each iter.Seq[*rollout.Model] // all parts of the model

	mu      sync.Mutex // guards the following
	unsaved *rollout.Model
	behind  bool // something is not saved, and not in unsaved
	wake    chan struct{}
}

// log is a journal in a storage extension.
type log struct {
	client  storage.Client
	journal *journal.Journal // nil: the storage does not answer
	logger  *zap.Logger
	failed  func() // counts an error
}

// open reads what was saved under a name, and calls read with each entry. One that cannot be read costs only this
// entry. what says in the log of the Collector what is stored.
func (l *log) open(ctx context.Context, host component.Host, id, own component.ID, name, what string, read func([]byte) error) (err error) {
	if l.client, err = journal.Client(ctx, host, id, component.KindConnector, own, name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	l.journal, err = journal.Open(ctx, l.client, func(value []byte) error {
		if err := read(value); err != nil {
			l.logger.Error("An entry of the stored "+what+" cannot be read; starting without it", zap.Error(err))
		}
		return nil
	})
	if errors.Is(err, journal.ErrCorrupt) {
		l.logger.Error("The stored "+what+" cannot be read; starting without them", zap.Error(err))
		l.journal, _, err = journal.SetAside(ctx, l.client)
	}
	if err != nil {
		l.logger.Error("The storage does not answer; "+what+" are not saved", zap.Error(err))
		l.journal = nil
		l.failed()
	}
	return nil
}

func (l *log) close(ctx context.Context) {
	if err := l.client.Close(ctx); err != nil {
		l.logger.Warn("Cannot close the storage", zap.Error(err))
	}
}

// encode returns JSON of what knows no error.
func encode(value any) []byte {
	encoded, _ := json.Marshal(value)
	return encoded
}

// open reads what was saved, and calls add with it.
func (s *saved) open(ctx context.Context, host component.Host, id, own component.ID, add func(*rollout.Model)) error {
	return s.log.open(ctx, host, id, own, "", "rollouts", func(value []byte) error {
		m := &rollout.Model{}
		if err := json.Unmarshal(value, m); err != nil {
			return err
		}
		add(m)
		return nil
	})
}

// append saves the entries of a model soon.
func (s *saved) append(m *rollout.Model) {
	if s == nil || s.journal == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.behind {
		s.unsaved.Join(m)
		if s.unsaved.Size() > maxUnsaved {
			s.unsaved, s.behind = &rollout.Model{}, true
		}
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run saves until ctx ends, and then once more.
func (s *saved) run(ctx context.Context) {
	for isLast := s.journal == nil; !isLast; {
		select {
		case <-ctx.Done():
		case <-s.wake:
		}
		isLast = ctx.Err() != nil // What comes during another save is saved, too.
		for backoff := interval; !s.save(context.WithoutCancel(ctx)); backoff = min(2*backoff, maxBackoff) {
			if ctx.Err() != nil {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(backoff):
			}
		}
	}
}

// save reports whether everything is saved. After an error, everything is saved again.
func (s *saved) save(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	s.mu.Lock()
	unsaved, behind := s.unsaved, s.behind
	s.unsaved, s.behind = &rollout.Model{}, false
	s.mu.Unlock()
	err := s.write(ctx, unsaved, behind)
	if err == nil {
		return true
	}
	s.failed()
	s.logger.Warn("Cannot save rollouts; retrying. A restart would lose a part of the traces", zap.Error(err))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved, s.behind = &rollout.Model{}, true
	return false
}

func (s *saved) write(ctx context.Context, unsaved *rollout.Model, behind bool) error {
	if behind || s.journal.WantsSnapshot() {
		return s.journal.Snapshot(ctx, s.chunks)
	}
	if len(unsaved.Workloads) == 0 {
		return nil
	}
	return s.journal.Append(ctx, encode(unsaved))
}

// chunks encodes all workloads, several in a chunk.
func (s *saved) chunks(yield func([]byte) bool) {
	chunk := &rollout.Model{}
	for m := range s.each {
		if chunk.Join(m); chunk.Size() < chunkBytes {
			continue
		}
		if !yield(encode(chunk)) {
			return
		}
		chunk = &rollout.Model{}
	}
	if len(chunk.Workloads) > 0 {
		yield(encode(chunk))
	}
}
