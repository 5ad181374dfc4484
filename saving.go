// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/checkpoint"
	"github.com/kubeevents/kubeeventsreceiver/internal/ledger"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/offer"
	"github.com/kubeevents/kubeeventsreceiver/internal/repeat"
	"github.com/kubeevents/kubeeventsreceiver/internal/tally"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// storagePart is the part of the receiver that the component's status names if storage does not work.
const storagePart = "storage"

const (
	// saveAgain is how long a storage that did not take a checkpoint is left in peace.
	saveAgain = time.Second
	// loadAttempts is how often a storage is asked for the checkpoint, saveAgain apart, before the receiver goes on
	// without.
	loadAttempts = 3
)

// saving keeps what the receiver remembers in a storage. It belongs to the loop.
type saving struct {
	store *checkpoint.Store
	last  time.Time // of the last checkpoint
	again time.Time // not before then; zero unless the storage failed
	moved bool      // whether the place to resume from has moved since
	// behind says that something was delivered since, so that the note of what was offered must not be written over.
	behind bool
}

// state is what is saved beside the entries.
type state struct {
	Streams map[string]streamState `json:"streams"` // by namespace; empty for the whole cluster
	Scopes  map[string]uint16      `json:"scopes"`
	Epoch   time.Time              `json:"epoch"`
	Offers  []byte                 `json:"offers,omitempty"`
}

// streamState is where a stream resumes.
type streamState struct {
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Listed says that the first listing is complete, so that start_at has had its say.
	Listed bool `json:"listed,omitempty"`
}

// openStorage gets the client of the storage extension that the configuration names.
func (r *eventsReceiver) openStorage(ctx context.Context, host component.Host) (*checkpoint.Store, error) {
	id := *r.config.Storage
	extension, ok := host.GetExtensions()[id]
	if !ok {
		return nil, fmt.Errorf("storage: %q is not among the extensions that run; add it to extensions and to service.extensions, or remove storage", id)
	}
	storageExtension, ok := extension.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("storage: %q is no storage extension; name one, such as file_storage", id)
	}
	client, err := storageExtension.GetClient(ctx, component.KindReceiver, r.settings.ID, "")
	if err != nil {
		return nil, fmt.Errorf("storage: %q gives no client: %w; the file of a file_storage is held by one Collector at a time: give each its own directory", id, err)
	}
	return checkpoint.New(client), nil
}

// restore takes up what the last checkpoint holds. One that cannot be used is set aside, and the receiver goes on as at a
// first start.
func (r *eventsReceiver) restore(ctx context.Context) {
	r.forgetAll()
	if r.saving == nil {
		return
	}
	now := time.Now()
	r.saving.last = now
	state, found, err := r.load(ctx)
	switch {
	case errors.Is(err, checkpoint.ErrDamaged):
		r.settings.Logger.Error("The checkpoint in the storage cannot be used. It is set aside under the key set-aside, and the receiver goes on as at a first start: "+
			"start_at decides about events that exist, and the metric starts at 0", zap.Error(err))
		r.forgetAll()
		err = r.saving.store.SetAside(ctx)
	case found:
		r.resume(state, now)
	case err == nil && r.leadership != nil:
		r.settings.Logger.Warn("Leading without a checkpoint. Unless nobody led before, this storage is not one that all replicas share: " +
			"what happened since the last leader ended is not emitted. Share the storage, or remove it: without, a standby follows")
	case r.offers.Len() > 0:
		r.settings.Logger.Info("Resuming before the first checkpoint", zap.Int("records offered before", r.offers.Len()))
	}
	if err != nil {
		r.status.failed(storagePart, "unavailable", "The storage does not work; going on without", err)
	}
}

// forgetAll begins with an empty memory.
func (r *eventsReceiver) forgetAll() {
	r.ledger = ledger.New()
	r.windows = repeat.New(r.config.DedupInterval)
	r.tally = tally.New(tally.Config{MaxSeries: r.config.Metrics.MaxSeries, SeriesTTL: r.config.Metrics.SeriesTTL}, time.Now())
	r.streams = map[string]streamState{}
	r.offers = &offer.Offers{}
	if r.saving != nil {
		r.ledger.Track()
		r.windows.Track()
		r.tally.Track()
	}
}

// load reads the checkpoint, again if the storage fails.
func (r *eventsReceiver) load(ctx context.Context) (saved state, found bool, err error) {
	for attempt := range loadAttempts {
		if attempt > 0 && !sleep(ctx, saveAgain) {
			return state{}, false, ctx.Err()
		}
		r.forgetAll()
		saved, found, err = r.loadOnce(ctx)
		if err == nil || errors.Is(err, checkpoint.ErrDamaged) {
			return saved, found, err
		}
	}
	return state{}, false, err
}

func (r *eventsReceiver) loadOnce(ctx context.Context) (saved state, found bool, err error) {
	written, found, err := r.saving.store.Load(ctx, r.restoreEntry)
	if err != nil {
		return state{}, false, err
	}
	if found {
		if err := json.Unmarshal(written, &saved); err != nil {
			return state{}, false, fmt.Errorf("%w: %w", checkpoint.ErrDamaged, err)
		}
	}
	note, err := r.saving.store.LoadNote(ctx)
	if err != nil {
		return state{}, false, err
	}
	for _, offers := range [][]byte{saved.Offers, note} {
		if err := r.offers.Restore(offers); err != nil {
			return state{}, false, fmt.Errorf("%w: %w", checkpoint.ErrDamaged, err)
		}
	}
	return saved, found, nil
}

// resume makes what was restored ready for the streams that run now.
func (r *eventsReceiver) resume(saved state, now time.Time) {
	r.ledger.Settle(saved.Scopes, r.config.streams(), now)
	r.windows.Settle(r.offers)
	r.tally.RestoreEpoch(saved.Epoch)
	for _, namespace := range r.config.streams() {
		r.streams[namespace] = saved.Streams[namespace]
	}
	r.settings.Logger.Info("Resuming from the checkpoint", zap.Int("events remembered", r.ledger.Len()))
}

// The first byte of a checkpoint's key says what the entry is.
const (
	ofLedger  = 'e'
	ofWindows = 'w'
	ofTally   = 's'
)

func checkpointKey(of byte, key []byte) (k checkpoint.Key) {
	k[0] = of
	copy(k[1:], key)
	return k
}

func (r *eventsReceiver) restoreEntry(key checkpoint.Key, value []byte) error {
	rest := [16]byte(key[1:])
	err := fmt.Errorf("an entry of kind %q is not known", key[0])
	switch key[0] {
	case ofLedger:
		err = r.ledger.Restore(ledger.Key(rest[:]), value)
	case ofWindows:
		err = r.windows.Restore(rest, value)
	case ofTally:
		err = r.tally.Restore(rest, value)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", checkpoint.ErrDamaged, err)
	}
	return nil
}

// Value implements checkpoint.Source.
func (r *eventsReceiver) Value(key checkpoint.Key) []byte {
	rest := [16]byte(key[1:])
	switch key[0] {
	case ofLedger:
		return r.ledger.Value(ledger.Key(rest[:]))
	case ofWindows:
		return r.windows.Value(rest)
	default:
		return r.tally.Value(rest)
	}
}

// Len implements checkpoint.Source.
func (r *eventsReceiver) Len() int { return r.ledger.Len() + r.windows.Len() + r.tally.Len() }

// unsaved says whether there is something that the last checkpoint does not hold.
func (r *eventsReceiver) unsaved() bool {
	return r.saving != nil && (r.saving.moved || r.ledger.Changed() > 0 || r.windows.Changed() > 0 || r.tally.Changed() > 0)
}

// moveTo notes where the streams resume, now that the batch is delivered.
func (r *eventsReceiver) moveTo(batch []watch.Change) {
	for _, c := range batch {
		s := r.streams[c.Namespace]
		if c.ResourceVersion == "" || c.ResourceVersion == s.ResourceVersion {
			continue
		}
		s.ResourceVersion = c.ResourceVersion
		r.streams[c.Namespace] = s
		if r.saving != nil {
			r.saving.moved = true
		}
	}
}

// saveIfDue saves a checkpoint if there is something to save, unless the storage has just failed. It is called for each
// batch: a crash repeats what was delivered since the last checkpoint, with the same log.record.uid, and a first listing
// must not be taken for the first again.
func (r *eventsReceiver) saveIfDue(ctx context.Context, now time.Time) {
	if !r.unsaved() {
		return
	}
	r.saving.behind = true
	r.telemetry.unsaved(r.saving.last)
	if !now.Before(r.saving.again) && r.mayEmit() {
		r.save(ctx, now)
	}
}

// save writes what changed in one transaction. What cannot be saved now is saved with the next checkpoint.
func (r *eventsReceiver) save(ctx context.Context, now time.Time) {
	entries, windows, series := r.ledger.TakeChanged(), r.windows.TakeChanged(), r.tally.TakeChanged()
	changed := make([]checkpoint.Key, 0, len(entries)+len(windows)+len(series))
	for _, k := range entries {
		changed = append(changed, checkpointKey(ofLedger, k[:]))
	}
	for _, k := range windows {
		changed = append(changed, checkpointKey(ofWindows, k[:]))
	}
	for _, k := range series {
		changed = append(changed, checkpointKey(ofTally, k[:]))
	}
	written, _ := json.Marshal(state{Streams: r.streams, Scopes: r.ledger.Scopes(), Epoch: r.tally.Epoch(), Offers: r.offers.Encode(nil)})
	if err := r.saving.store.Save(ctx, written, changed, r); err != nil {
		r.ledger.PutBack(entries)
		r.windows.PutBack(windows)
		r.tally.PutBack(series)
		r.storageFailed(now, err)
		return
	}
	r.tally.Saved(series)
	r.saving.last, r.saving.moved, r.saving.behind = now, false, false
	r.telemetry.saved()
	r.status.recovered(storagePart, "Checkpoints are saved again")
}

// announce notes in the storage which records are about to be offered to the pipeline, so that after a crash they are
// offered again as the same records, whatever has become of their events. What is delivered while the storage does not
// work is not noted: the note that stands tells of something older, which is in no checkpoint yet.
func (r *eventsReceiver) announce(stop, work context.Context, records []observation.Observation) {
	if r.saving == nil || r.saving.behind || r.logs == nil || len(records) == 0 || !r.awaitCertainty(stop) {
		return
	}
	if err := r.saving.store.Note(work, r.offers.Encode(records)); err != nil {
		r.saving.behind = true
		r.storageFailed(time.Now(), err)
	}
}

func (r *eventsReceiver) storageFailed(now time.Time, err error) {
	r.saving.again = now.Add(saveAgain)
	r.telemetry.notSaved()
	r.status.failed(storagePart, "unavailable", "The storage takes no checkpoint; going on without, a crash would repeat events", err)
}

// closeStorage lets the storage go.
func (r *eventsReceiver) closeStorage(ctx context.Context) {
	if r.saving == nil {
		return
	}
	if err := r.saving.store.Close(ctx); err != nil {
		r.settings.Logger.Warn("The storage could not be closed", zap.Error(err))
	}
}
