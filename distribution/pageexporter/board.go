// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/statusextension"
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

// maxLook is the time that a look may take. It holds other looks, but not the answers that are shared.
const maxLook = 5 * time.Second

// board is the model with its answers. It may be used concurrently: one viewer computes an answer at a
// time, and records never wait for viewers.
type board struct {
	clock    func() time.Time
	delivery func() statusextension.Delivery // whether the receiver works
	history  func() statusextension.History  // what a connector remembers; it can return nil
	missed   atomic.Int64                    // records that were dropped, because the model was in use for too long
	news     atomic.Int64                    // how often records have come
	arrived  atomic.Int64                    // Unix time in ns of the last records, or of the start
	requests atomic.Int64                    // that wait for an answer
	turn     chan struct{}                   // taken by the viewer who computes: a lock that a viewer can stop waiting for
	maxLook  time.Duration

	mu    sync.Mutex // for the model
	model *incident.Model
	began time.Time // the time from which on the model has all records; zero: there is none

	sharing sync.Mutex // for the cache
	cache   map[request]*answer

	waiting    sync.Mutex  // for aside
	aside      []plog.Logs // records that came while the model was in use
	asideBytes int
}

// request is a question of a viewer. Viewers with the same request share an answer.
type request struct {
	name     string
	filter   filter
	delivery statusextension.Delivery
}

// answer is a response that several viewers get.
type answer struct {
	body []byte
	etag string
	at   time.Time
	news int64
}

// unknown is what a page knows of the receiver without the extension.
func unknown() statusextension.Delivery {
	return statusextension.Delivery{Failure: "It is not known whether the receiver works: add kube_events_status to extensions, and to extensions of service."}
}

func newBoard(clock func() time.Time) *board {
	b := &board{
		clock: clock, delivery: unknown, history: func() statusextension.History { return nil }, turn: make(chan struct{}, 1), maxLook: maxLook, model: incident.NewModel(clock()), cache: map[request]*answer{},
	}
	b.arrived.Store(clock().UnixNano())
	return b
}

// add adds records, or puts them aside if the model is in use. The next call, or the next viewer, adds
// them then.
func (b *board) add(logs plog.Logs) {
	b.news.Add(1)
	b.arrived.Store(b.clock().UnixNano())
	if !b.mu.TryLock() {
		b.putAside(logs)
		return
	}
	defer b.mu.Unlock()
	b.addAside()
	b.model.Add(logs, b.clock())
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

// addAside adds what was put aside, after it has told the model since when the receiver works. The
// caller has the lock of the model.
func (b *board) addAside() {
	if since := b.delivery().Since; !since.Equal(b.began) {
		b.began = since
		b.model.Begin(since)
	}
	b.waiting.Lock()
	aside := b.aside
	b.aside, b.asideBytes = nil, 0
	b.waiting.Unlock()
	for _, logs := range aside {
		b.model.Add(logs, b.clock())
	}
}

var (
	// errBusy is the answer to one request too many.
	errBusy = requestError{errors.New("too many requests at once: try again in a moment"), http.StatusServiceUnavailable}
	errSlow = requestError{fmt.Errorf("the answer takes longer than %s: choose a namespace, a workload or a shorter time", maxLook), http.StatusServiceUnavailable}
)

// look returns the answer to a request: one that another viewer got a moment ago, or a new one. A
// viewer who has left computes nothing.
func (b *board) look(ctx context.Context, name string, f filter, compute func(*view) ([]byte, error)) (*answer, error) {
	asked := b.clock()
	if known := b.shared(request{name, f, b.delivery()}, asked); known != nil {
		return known, nil // It waits for nobody.
	}
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
	key := request{name, f, b.delivery()}
	if known := b.shared(key, asked); known != nil {
		return known, nil
	}
	looking, cancel := context.WithTimeoutCause(ctx, b.maxLook, errSlow)
	defer cancel()
	made, err := b.compute(looking, key, compute)
	if err := cmp.Or(context.Cause(looking), err); err != nil {
		return nil, err
	}
	b.sharing.Lock()
	defer b.sharing.Unlock()
	if len(b.cache) >= maxCached {
		clear(b.cache)
	}
	b.cache[key] = made
	return made, nil
}

// compute makes an answer, while no other one is made.
func (b *board) compute(ctx context.Context, of request, compute func(*view) ([]byte, error)) (*answer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	news := b.news.Load() // Those that come from now on may be in the answer, or not.
	b.addAside()
	v := &view{
		history: b.history(),
		model:   b.model, now: b.clock().UTC(), filter: of.filter, delivery: of.delivery,
		arrived: timeAt(b.arrived.Load()), missed: b.missed.Load(), ctx: ctx,
	}
	if err := v.inTime(); err != nil {
		return nil, err
	}
	body, err := compute(v)
	sum := sha256.Sum256(body)
	return &answer{body: body, etag: `"` + hex.EncodeToString(sum[:12]) + `"`, at: v.now, news: news}, err
}

// shared returns an answer that another viewer got, if it is fresh for a viewer who asked at a time. One
// that was computed later is, so that those who waited for a slow answer share it. A clock that was set
// back makes none fresh for long.
func (b *board) shared(key request, asked time.Time) *answer {
	b.sharing.Lock()
	defer b.sharing.Unlock()
	known := b.cache[key]
	if known == nil {
		return nil
	}
	age, isNewest := b.clock().Sub(known.at), known.news == b.news.Load()
	if age >= 0 && (age < shareFor || !known.at.Before(asked) || isNewest && age < shareQuietFor) {
		return known
	}
	return nil
}
