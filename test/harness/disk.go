// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// ErrDisk is what a storage returns that fails.
var ErrDisk = errors.New("input/output error")

// Disk is a storage extension whose content outlives the receivers that use it. While a receiver
// runs, tests use only its methods, and its fields after Settle.
type Disk struct {
	component.StartFunc
	component.ShutdownFunc

	// Values is the content by key.
	Values map[string][]byte
	ID     component.ID // of the component that has opened it
	// Answer is called for each write that was applied, and returns what the storage answers.
	Answer  func() error
	Calls   int // of reads and writes
	Writes  int
	Largest int // the most bytes that a write set

	mu         sync.Mutex // guards all fields
	unreadable error
	unwritable error
}

// NewDisk returns a storage without content.
func NewDisk() *Disk { return &Disk{Values: map[string][]byte{}} }

// GetClient returns the storage itself.
func (d *Disk) GetClient(_ context.Context, _ component.Kind, id component.ID, _ string) (storage.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ID = id
	return d, nil
}

// Get returns the value of a key.
func (d *Disk) Get(_ context.Context, key string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Calls++
	return bytes.Clone(d.Values[key]), d.unreadable
}

// Set writes the value of a key.
func (d *Disk) Set(ctx context.Context, key string, value []byte) error {
	return d.Batch(ctx, storage.SetOperation(key, value))
}

// Delete removes a key.
func (d *Disk) Delete(ctx context.Context, key string) error {
	return d.Batch(ctx, storage.DeleteOperation(key))
}

// Batch reads and writes in one transaction.
func (d *Disk) Batch(_ context.Context, operations ...*storage.Operation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Calls++
	written, size := false, 0
	for _, op := range operations {
		if op.Type == storage.Get {
			op.Value = bytes.Clone(d.Values[op.Key])
			if d.unreadable != nil {
				return d.unreadable
			}
			continue
		}
		if d.unwritable != nil {
			return d.unwritable
		}
		written, size = true, size+len(op.Value)
		if op.Type == storage.Set {
			d.Values[op.Key] = bytes.Clone(op.Value)
		} else {
			delete(d.Values, op.Key)
		}
	}
	if !written {
		return nil
	}
	d.Writes++
	d.Largest = max(d.Largest, size)
	if d.Answer != nil {
		return d.Answer()
	}
	return nil
}

// Close leaves the content as it is.
func (d *Disk) Close(context.Context) error { return nil }

// Fail makes reads and writes fail; nil: they work.
func (d *Disk) Fail(unreadable, unwritable error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unreadable, d.unwritable = unreadable, unwritable
}

// Copied returns a copy of the content at this moment, as a crash would leave it.
func (d *Disk) Copied() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Disk{Values: maps.Clone(d.Values)}
}

// Content returns a copy of the values.
func (d *Disk) Content() map[string][]byte { return d.Copied().Values }

// Size returns the sum of the values' sizes.
func (d *Disk) Size() (total int) {
	for _, value := range d.Content() {
		total += len(value)
	}
	return total
}
