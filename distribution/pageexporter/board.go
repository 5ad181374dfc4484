// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

// The bounds of what viewers can take.
const (
	maxWaiting = 64       // requests that wait for an answer
	maxAnswer  = 4 << 20  // bytes
	maxCached  = 8        // answers that are shared
	maxHeld    = 32 << 20 // bytes of answers that are being written: a slow reader keeps its answer in memory
	maxAside   = 4 << 20  // bytes
	// shareFor is the time for which viewers share an answer, and shareQuietFor the time if nothing has
	// happened since.
	shareFor      = 500 * time.Millisecond
	shareQuietFor = 5 * time.Second
)

// board is the model with its answers. It may be used concurrently: one viewer computes an answer at a
// time, and records never wait for viewers.
type board struct {
	clock    func() time.Time
	standby  atomic.Bool   // the receiver emits nothing, because another replica leads
	missed   atomic.Int64  // records that were dropped, because the model was in use for too long
	requests atomic.Int64  // that wait for an answer
	turn     chan struct{} // taken by the viewer who computes: a lock that a viewer can stop waiting for

	mu    sync.Mutex // for the model and the cache
	model *incident.Model
	news  int // how often the model has got records
	cache map[request]*answer

	waiting    sync.Mutex  // for aside
	aside      []plog.Logs // records that came while the model was in use
	asideBytes int
}

// request is a question of a viewer. Viewers with the same request share an answer.
type request struct {
	name    string
	filter  filter
	standby bool
}

// answer is a response that several viewers get.
type answer struct {
	body []byte
	etag string
	at   time.Time
	news int
}

func newBoard(clock func() time.Time) *board {
	return &board{
		clock: clock, turn: make(chan struct{}, 1), model: incident.NewModel(clock()), cache: map[request]*answer{},
	}
}

// add adds records, or puts them aside if the model is in use. The next call, or the next viewer, adds
// them then.
func (b *board) add(logs plog.Logs) {
	if !b.mu.TryLock() {
		b.putAside(logs)
		return
	}
	defer b.mu.Unlock()
	b.addAside()
	b.model.Add(logs, b.clock())
	b.news++
}

func (b *board) putAside(logs plog.Logs) {
	size := (&plog.ProtoMarshaler{}).LogsSize(logs)
	b.waiting.Lock()
	defer b.waiting.Unlock()
	if b.asideBytes+size > maxAside {
		b.missed.Add(int64(logs.LogRecordCount()))
		return
	}
	kept := plog.NewLogs() // The caller may use its records for something else.
	logs.CopyTo(kept)
	b.aside, b.asideBytes = append(b.aside, kept), b.asideBytes+size
}

// addAside adds what was put aside. The caller has the lock of the model.
func (b *board) addAside() {
	b.waiting.Lock()
	aside := b.aside
	b.aside, b.asideBytes = nil, 0
	b.waiting.Unlock()
	for _, logs := range aside {
		b.model.Add(logs, b.clock())
		b.news++
	}
}

// errBusy is the answer to one request too many.
var errBusy = requestError{errors.New("too many requests at once: try again in a moment"), http.StatusServiceUnavailable}

// look returns the answer to a request: one that another viewer got a moment ago, or a new one. A
// viewer who has left computes nothing.
func (b *board) look(ctx context.Context, name string, f filter, compute func(*view) ([]byte, error)) (*answer, error) {
	asked := b.clock()
	defer b.requests.Add(-1)
	if b.requests.Add(1) > maxWaiting {
		return nil, errBusy
	}
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addAside()
	v := &view{model: b.model, now: b.clock().UTC(), filter: f, standby: b.standby.Load(), missed: b.missed.Load(), ctx: ctx}
	if err := v.inTime(); err != nil {
		return nil, err
	}
	key := request{name, f, v.standby}
	if known := b.cache[key]; known != nil && known.isFresh(asked, v.now, b.news) {
		return known, nil
	}
	body, err := compute(v)
	if err := cmp.Or(ctx.Err(), err); err != nil {
		return nil, err
	}
	if len(b.cache) >= maxCached {
		clear(b.cache)
	}
	sum := sha256.Sum256(body)
	b.cache[key] = &answer{body: body, etag: `"` + hex.EncodeToString(sum[:12]) + `"`, at: v.now, news: b.news}
	return b.cache[key], nil
}

// isFresh reports whether a viewer who has asked at a time can have the answer. One that was
// computed later is fresh, so that those who waited for a slow answer share it. A clock that was
// set back makes none fresh for long.
func (a *answer) isFresh(asked, now time.Time, news int) bool {
	age := now.Sub(a.at)
	return age >= 0 && (age < shareFor || !a.at.Before(asked) || a.news == news && age < shareQuietFor)
}
