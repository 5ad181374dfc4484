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
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/distribution/statusextension"
)

// The bounds of what viewers can take.
const (
	maxWaiting = 64       // requests that wait for an answer
	maxAnswer  = 4 << 20  // bytes
	maxCached  = 8        // answers that are shared
	maxHeld    = 32 << 20 // bytes of answers that are being written: a slow reader keeps its answer in memory
	// shareFor is the time for which viewers share an answer, and shareQuietFor the time if nothing has
	// happened since.
	shareFor      = 500 * time.Millisecond
	shareQuietFor = 5 * time.Second
)

// maxLook is the time that a look may take. It holds other looks, but not the answers that are shared.
const maxLook = 5 * time.Second

// board has answers about the model. It may be used concurrently: one viewer computes an answer at a
// time, and records never wait for viewers.
type board struct {
	clock     func() time.Time
	delivery  func() statusextension.Delivery  // whether the receiver works
	incidents func() statusextension.Incidents // of a connector that gets the same records; it can return nil
	news      atomic.Int64                     // how often records have come
	arrived   atomic.Int64                     // Unix time in ns of the last records, or of the start
	requests  atomic.Int64                     // that wait for an answer
	turn      chan struct{}                    // taken by the viewer who computes: a lock that a viewer can stop waiting for
	maxLook   time.Duration
	own       atomic.Pointer[incident.Live] // the page's own model; nil: it uses that of a connector
	shares    func(*incident.Live)          // is called when the page begins to use that of a connector

	sharing sync.Mutex // for the cache
	cache   map[request]*answer
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
		clock: clock, delivery: unknown, incidents: func() statusextension.Incidents { return nil }, turn: make(chan struct{}, 1), maxLook: maxLook,
		cache: map[request]*answer{}, shares: func(*incident.Live) {},
	}
	b.own.Store(incident.NewLive(clock))
	b.arrived.Store(clock().UnixNano())
	return b
}

// live returns the model. A connector that gets the same records has one: then the page needs none of its own.
func (b *board) live() (live *incident.Live, isOwn bool) {
	own := b.own.Load() // Before the question: it goes only after a connector is known.
	known := b.incidents()
	if known == nil {
		return own, true
	}
	if b.own.Swap(nil) != nil {
		b.shares(known.Live())
	}
	return known.Live(), false
}

// add adds records. While the model is in use, they wait.
func (b *board) add(logs plog.Logs) {
	b.news.Add(1)
	b.arrived.Store(b.clock().UnixNano())
	live, isOwn := b.live()
	if !isOwn {
		return
	}
	live.Begin(b.delivery().Since)
	facts := incident.FactsOf(record.Read(logs, live.Harmless...), b.clock(), false)
	live.AddUnlessUsed()
	for some := range slices.Chunk(facts, 1000) {
		live.Take(some)
		live.AddUnlessUsed()
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
func (b *board) compute(ctx context.Context, of request, compute func(*view) ([]byte, error)) (made *answer, err error) {
	live, _ := b.live()
	live.Begin(b.delivery().Since)
	news, missed := b.news.Load(), live.Missed() // Those that come from now on may be in the answer, or not.
	live.Use(func(m *incident.Model) {
		v := &view{
			incidents: b.incidents(), model: m, now: b.clock().UTC(), filter: of.filter, delivery: of.delivery,
			arrived: timeAt(b.arrived.Load()), missed: missed, ctx: ctx,
		}
		if err = v.inTime(); err != nil {
			return
		}
		var body []byte
		body, err = compute(v)
		sum := sha256.Sum256(body)
		made = &answer{body: body, etag: `"` + hex.EncodeToString(sum[:12]) + `"`, at: v.now, news: news}
	})
	return made, err
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
