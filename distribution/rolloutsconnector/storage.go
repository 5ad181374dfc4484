// SPDX-License-Identifier: Apache-2.0

package rolloutsconnector

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
	"github.com/kubeevents/kubeeventsreceiver/internal/journal"
)

// entry is what the journal keeps: what a request said, what was delivered, or a part of a snapshot.
type entry struct {
	At    int64          `json:"t,omitempty"` // when the process had the news; 0: each revision has its own time
	Model *rollout.Model `json:"m"`
}

// saved is the tracker's state in a storage extension.
type saved struct {
	client  storage.Client
	journal *journal.Journal
}

// openStorage reads what was saved, and calls add with each entry.
func openStorage(ctx context.Context, host component.Host, id component.ID, of component.ID, add func(entry)) (*saved, error) {
	extension, ok := host.GetExtensions()[id]
	if !ok {
		return nil, fmt.Errorf("storage: %q is not among the extensions that run; add it to extensions and to service.extensions, or remove storage", id)
	}
	from, ok := extension.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("storage: %q is not a storage extension; name one, such as file_storage", id)
	}
	client, err := from.GetClient(ctx, component.KindConnector, of, "")
	if err != nil {
		return nil, fmt.Errorf("storage: %q cannot be opened: %w; make its directory writable for the Collector, and give each Collector its own", id, err)
	}
	j, err := journal.Open(ctx, client, func(value []byte) error {
		var e entry
		if err := json.Unmarshal(value, &e); err != nil || e.Model == nil {
			return fmt.Errorf("it cannot be read: %w", err)
		}
		add(e)
		return nil
	})
	if err != nil {
		_ = client.Close(ctx) // The first error says more.
		return nil, fmt.Errorf("storage: %q has content that cannot be read: %w; remove the file of %q", id, err, of)
	}
	return &saved{client: client, journal: j}, nil
}

// append saves an entry.
func (s *saved) append(ctx context.Context, at time.Time, m *rollout.Model) error {
	content, err := json.Marshal(entry{At: at.UnixNano(), Model: m})
	if err != nil {
		return err
	}
	return s.journal.Append(ctx, content)
}

// compact replaces the entries by a snapshot, if they have become larger than it.
func (s *saved) compact(ctx context.Context, m *rollout.Model) error {
	if !s.journal.WantsSnapshot() {
		return nil
	}
	var chunks [][]byte
	for key, w := range m.Workloads {
		chunk, err := json.Marshal(entry{Model: &rollout.Model{Workloads: map[string]*rollout.Workload{key: w}}})
		if err != nil {
			return err
		}
		chunks = append(chunks, chunk)
	}
	return s.journal.Snapshot(ctx, chunks)
}

func (s *saved) close(ctx context.Context) error { return s.client.Close(ctx) }
