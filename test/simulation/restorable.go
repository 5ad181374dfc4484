// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"maps"
	"strings"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/kubeevents/kubeeventsreceiver/internal/ledger"
	"github.com/kubeevents/kubeeventsreceiver/internal/progress"
)

// restoredOneIn is which share of the writes to storage is restored. It takes longer than a write.
const restoredOneIn = 40

// checkRestorable restores what storage holds into an empty ledger, after a write has been applied. No
// entry may be refused, and nothing set aside.
func (e *environment) checkRestorable() { unnoted(e.restoreStored) }

func (e *environment) restoreStored() {
	held := e.storage.clone()
	size := held.bytes()
	refuses := zap.New(zapcore.NewNopCore(), zap.WrapCore(func(zapcore.Core) zapcore.Core { return refusals{e} }))
	c := progress.NewCheckpoint(held, refusals{e}, refuses)
	fresh := func() *ledger.Ledger {
		return ledger.New(ledger.Config{Coverage: ledger.Coverage{Namespaces: e.plan.Watched}})
	}
	restored := c.Load(context.Background(), "", fresh, nil)
	if most := mostStoredFixed + mostStored*restored.Len(); size > most {
		e.violate(boundedBytes, "", "storage holds %d bytes for %d entries", size, restored.Len())
	}
	c.End(context.Background())
}

// refusals notes what a checkpoint reports that cannot be restored.
type refusals struct{ *environment }

func (r refusals) Failed(_, _, message string, err error) {
	r.violate(restorable, "", "%s: %.300v", message, err)
}
func (refusals) Works(string, string)                {}
func (refusals) Unsaved(time.Time)                   {}
func (refusals) Saved()                              {}
func (refusals) NotSaved()                           {}
func (refusals) Enabled(level zapcore.Level) bool    { return level >= zapcore.WarnLevel }
func (r refusals) With([]zapcore.Field) zapcore.Core { return r }
func (refusals) Sync() error                         { return nil }
func (r refusals) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !r.Enabled(e.Level) {
		return to
	}
	return to.AddCore(e, r)
}

func (r refusals) Write(e zapcore.Entry, fields []zapcore.Field) error {
	var texts []string
	for _, f := range fields {
		texts = append(texts, f.Key+" "+f.String)
	}
	r.violate(restorable, "", "%s: %.300s", e.Message, strings.Join(texts, ", "))
	return nil
}

// clone returns the content as it is. What is written to the clone stays there.
func (s *storageContent) clone() *snapshotClient {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &snapshotClient{content: &storageContent{values: maps.Clone(s.values)}}
}

// snapshotClient is a storage client of a storageContent as it was.
type snapshotClient struct{ content *storageContent }

func (c *snapshotClient) Get(_ context.Context, key string) ([]byte, error) {
	return bytes.Clone(c.content.values[key]), nil
}

func (c *snapshotClient) Set(_ context.Context, key string, value []byte) error {
	c.content.apply([]*storage.Operation{storage.SetOperation(key, value)})
	return nil
}

func (c *snapshotClient) Delete(_ context.Context, key string) error {
	c.content.apply([]*storage.Operation{storage.DeleteOperation(key)})
	return nil
}

func (c *snapshotClient) Batch(_ context.Context, operations ...*storage.Operation) error {
	c.content.apply(operations)
	return nil
}

func (*snapshotClient) Close(context.Context) error { return nil }

func (c *snapshotClient) bytes() (sum int) {
	for _, value := range c.content.values {
		sum += len(value)
	}
	return sum
}
