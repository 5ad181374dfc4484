// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
)

const (
	// beatInterval is how often the process proves to itself that it was not paused.
	beatInterval = 500 * time.Millisecond
	// pausedAfter is the gap between two beats that counts as a pause.
	pausedAfter = 3 * time.Second
)

// elector is what is used of the extension k8s_leader_elector.
type elector interface {
	// SetCallBackFuncs registers what is called whenever this process starts and stops leading. The extension waits for
	// the calls to return.
	SetCallBackFuncs(started func(context.Context), stopped func())
}

// leadership tells whether this process is the one that emits. Its methods may be called concurrently.
type leadership struct {
	// lease is how long the others take a leader for alive that says nothing, and patience how long a leader takes itself
	// for one that cannot renew its lease.
	lease, patience time.Duration

	// mu guards the following.
	mu       sync.Mutex
	leading  bool
	term     context.Context // ends with the leadership
	endTerm  context.CancelFunc
	changed  chan struct{} // closed when leading changes
	ended    chan struct{} // closed when the work of the last term has ended; nil: none began
	lastBeat time.Time
	doubtful time.Time // until then it is doubtful whether a leader that was paused still is one
}

func newLeadership(lease, patience time.Duration) *leadership {
	return &leadership{lease: lease, patience: patience, changed: make(chan struct{}), lastBeat: time.Now()}
}

// openElector registers with the leader elector that the configuration names.
func (r *eventsReceiver) openElector(host component.Host) (*leadership, error) {
	id := *r.config.LeaderElector
	extension, ok := host.GetExtensions()[id]
	if !ok {
		return nil, fmt.Errorf("k8s_leader_elector: %q is not among the extensions that run; add it to extensions and to service.extensions, or remove k8s_leader_elector", id)
	}
	elector, ok := extension.(elector)
	if !ok {
		return nil, fmt.Errorf("k8s_leader_elector: %q is no leader elector; name one, such as k8s_leader_elector", id)
	}
	l := newLeadership(leaseOf(extension))
	elector.SetCallBackFuncs(func(context.Context) { l.started() }, l.stopped)
	return l, nil
}

// leaseOf reads how long the extension's lease lasts and how long it tries to renew it. The extension does not tell, so
// its configuration is looked at; if that is not as expected, its defaults are assumed.
func leaseOf(extension component.Component) (lease, renewDeadline time.Duration) {
	duration := func(field string, otherwise time.Duration) time.Duration {
		config := reflect.Indirect(reflect.Indirect(reflect.ValueOf(extension)).FieldByName("config"))
		if config.Kind() != reflect.Struct {
			return otherwise
		}
		value := config.FieldByName(field)
		if !value.IsValid() || value.Kind() != reflect.Int64 || value.Int() <= 0 {
			return otherwise
		}
		return time.Duration(value.Int())
	}
	if reflect.Indirect(reflect.ValueOf(extension)).Kind() != reflect.Struct {
		return 15 * time.Second, 10 * time.Second
	}
	return duration("LeaseDuration", 15*time.Second), duration("RenewDuration", 10*time.Second)
}

func (l *leadership) started() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leading {
		return
	}
	l.leading = true
	l.term, l.endTerm = context.WithCancel(context.Background())
	l.doubtful = time.Time{}
	l.announceLocked()
}

// stopped ends the term and waits until its work has ended, so that this process does not run for the next term before.
func (l *leadership) stopped() {
	l.mu.Lock()
	if !l.leading {
		l.mu.Unlock()
		return
	}
	l.leading = false
	l.endTerm()
	ended := l.ended
	l.announceLocked()
	l.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

func (l *leadership) announceLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// begin returns the context of the present term, and what has to be called when its work has ended; ok is false when this
// process does not lead.
func (l *leadership) begin() (term context.Context, end func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.leading {
		return nil, nil, false
	}
	ended := make(chan struct{})
	l.ended = ended
	return l.term, sync.OnceFunc(func() { close(ended) }), true
}

// change is closed when this process starts or stops leading.
func (l *leadership) change() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// beat proves at intervals that the process runs, until the context ends.
func (l *leadership) beat(ctx context.Context) {
	ticker := time.NewTicker(beatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			l.noteBeat(now)
		}
	}
}

// noteBeat takes a gap for a pause of the process. It may have outlasted the lease, and the elector learns of that only
// once it has tried to renew it, so until then nobody knows who leads.
func (l *leadership) noteBeat(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.lastBeat) > pausedAfter {
		l.doubtful = now.Add(l.patience + pausedAfter)
	}
	if now.After(l.lastBeat) {
		l.lastBeat = now
	}
}

// leads says whether this process leads.
func (l *leadership) leads() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leading
}

// certainIn is how long to wait until it is certain that a leader leads; 0 means now.
func (l *leadership) certainIn(now time.Time) time.Duration {
	l.noteBeat(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, l.doubtful.Sub(now))
}
