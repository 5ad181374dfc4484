// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

// The bounds of what viewers can take.
const (
	maxRequests = 64 // with what they wait for and what they write
	maxAnswers  = 16 // that are shared
	maxAnswer   = 1 << 20
	maxAside    = 4 << 20
	// shareFor is the time for which viewers share an answer, and shareQuietFor the time if nothing has
	// happened since.
	shareFor      = 500 * time.Millisecond
	shareQuietFor = 5 * time.Second
)

// board is the model with its answers. It may be used concurrently: one viewer computes an answer at a
// time, and records never wait for viewers.
type board struct {
	clock   func() time.Time
	standby atomic.Bool   // the receiver emits nothing, because another replica leads
	missed  atomic.Int64  // records that were dropped, because the model was in use for too long
	seats   chan struct{} // taken by requests
	turn    chan struct{} // taken by the viewer who computes: a lock that a viewer can stop waiting for

	mu      sync.Mutex // for the model and the answers
	model   *incident.Model
	news    int // how often the model has got records
	answers map[request]answer

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
	at   time.Time
	news int
}

func newBoard(clock func() time.Time) *board {
	return &board{
		clock: clock, seats: make(chan struct{}, maxRequests), turn: make(chan struct{}, 1),
		model: incident.NewModel(clock()), answers: map[request]answer{},
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
var errBusy = errors.New("too many requests at once: try again in a moment")

// sit takes a place for a request, and returns how to leave it. Requests are bounded until they are
// answered, because a slow reader keeps its answer in memory.
func (b *board) sit() (leave func(), err error) {
	select {
	case b.seats <- struct{}{}:
		return func() { <-b.seats }, nil
	default:
		return nil, errBusy
	}
}

// look returns the answer to a request: one that another viewer got a moment ago, or a new one. A
// viewer who has left computes nothing.
func (b *board) look(ctx context.Context, name string, f filter, compute func(*view) ([]byte, error)) ([]byte, error) {
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addAside()
	v := &view{
		model: b.model, now: b.clock().UTC(), standby: b.standby.Load(), missed: b.missed.Load(),
	}
	key := request{name, f, v.standby}
	if known, ok := b.answers[key]; ok && known.isFresh(v.now, b.news) {
		return known.body, nil
	}
	body, err := compute(v)
	if err != nil {
		return nil, err
	}
	if len(b.answers) >= maxAnswers {
		clear(b.answers)
	}
	if len(body) <= maxAnswer {
		b.answers[key] = answer{body, v.now, b.news}
	}
	return body, nil
}

// isFresh reports whether the answer can be shared. A clock that was set back makes none fresh for long.
func (a answer) isFresh(now time.Time, news int) bool {
	age := now.Sub(a.at)
	return age >= 0 && (age < shareFor || a.news == news && age < shareQuietFor)
}

// view is a board as a viewer sees it. It is valid while the board computes the answer.
type view struct {
	model   *incident.Model
	now     time.Time
	standby bool
	missed  int64
}
