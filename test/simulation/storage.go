// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// storageContent is what a storage extension holds. It outlives processes.
type storageContent struct {
	mu     sync.Mutex // guards values
	values map[string][]byte
}

// storageExtension is a process's way to the content. Its faults are those of the plan. It works
// only while its process lives.
type storageExtension struct {
	component.StartFunc
	component.ShutdownFunc
	process *process
	calls   counter
	closed  atomic.Bool
	mu      sync.Mutex           // guards tries
	tries   map[string]time.Time // when an entry was first written, by key
}

func (s *storageExtension) GetClient(
	context.Context, component.Kind, component.ID, string,
) (storage.Client, error) {
	return &storageClient{s}, nil
}

type storageClient struct{ *storageExtension }

var errStorage = errors.New("storage does not work")

func (c *storageClient) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := c.Batch(ctx, op)
	return op.Value, err
}

func (c *storageClient) Set(ctx context.Context, key string, value []byte) error {
	return c.Batch(ctx, storage.SetOperation(key, value))
}

func (c *storageClient) Delete(ctx context.Context, key string) error {
	return c.Batch(ctx, storage.DeleteOperation(key))
}

func (c *storageClient) Close(context.Context) error {
	c.closed.Store(true)
	return nil
}

func (c *storageClient) Batch(ctx context.Context, operations ...*storage.Operation) error {
	began, isEntry := c.firstTry(operations[0])
	err := c.batch(ctx, operations)
	if isEntry {
		c.process.noted(began, err)
	}
	return err
}

// firstTry reports whether an operation appends an entry to the checkpoint, and when it was first
// tried: it is repeated as it is. What a snapshot has is not known here.
func (c *storageClient) firstTry(op *storage.Operation) (began time.Time, isEntry bool) {
	generation, _, isKey := strings.Cut(op.Key, "/")
	head := c.process.replica.env.storage.value("head")
	if !isKey || op.Type != storage.Set || !strings.Contains(string(head), `"generation":`+generation+",") {
		return time.Time{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	began, isRepeated := c.tries[op.Key]
	if !isRepeated {
		began = time.Now()
		c.tries[op.Key] = began
	}
	return began, true
}

func (c *storageClient) batch(ctx context.Context, operations []*storage.Operation) error {
	p, number := c.process, c.calls.next()
	if c.closed.Load() && !p.isDead() {
		p.replica.env.violate(shutsDown, "", "%s uses the storage after it closed it", p.name)
	}
	hit := func(kind FaultKind) *Fault { return p.hit(kind, "storage", number, 0) }
	if f := hit(StorageSlow); f != nil {
		if err := sleep(ctx, f.Delay); err != nil {
			return err
		}
	}
	writes := slices.ContainsFunc(operations, func(op *storage.Operation) bool { return op.Type != storage.Get })
	kill := writes && p.reaches(AtStorage)
	switch {
	case kill && !p.kill.Acted:
		p.die("at a write, before it acted")
	case !writes && hit(StorageUnreadable) != nil, writes && hit(StorageUnwritable) != nil:
		return errStorage
	}
	if p.isDead() {
		return errStorage
	}
	p.replica.env.storage.apply(operations)
	if kill {
		p.die("at a write, after it acted")
		return errStorage
	}
	if hit(StorageAnswerLost) != nil && writes {
		p.note("storage applies %d operations, its answer is lost", len(operations))
		return fmt.Errorf("%w: deadline exceeded", errStorage)
	}
	return nil
}

func (s *storageContent) value(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key]
}

func (s *storageContent) apply(operations []*storage.Operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, op := range operations {
		switch op.Type {
		case storage.Get:
			op.Value = bytes.Clone(s.values[op.Key])
		case storage.Set:
			s.values[op.Key] = bytes.Clone(op.Value)
		case storage.Delete:
			delete(s.values, op.Key)
		}
	}
}
