// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"sync"
	"time"
)

// aloneTimeout is longer than a Collector needs from the first to the last of its receivers' shutdowns.
const aloneTimeout = 2 * time.Minute

// lifecycle lets two pipelines start and shut down the receiver that they share: the first call of
// each counts.
type lifecycle struct {
	start    sync.Once
	startErr error
	stop     sync.Once
	stopErr  error

	mu        sync.Mutex  // guards the following
	pipelines int         // that started the receiver and did not shut it down
	alone     *time.Timer // reports that a pipeline still names the receiver, which has ended

	cancel context.CancelFunc // nil: not started
	// cancelDrain ends lookups and deliveries that outlast the grace.
	cancelDrain context.CancelFunc
	done        chan struct{} // closed when all work has ended
}

func (l *lifecycle) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pipelines++
}

// leave calls alone later, if another pipeline still has the receiver then.
func (l *lifecycle) leave(alone func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pipelines--
	if l.alone != nil {
		l.alone.Stop()
	}
	if l.pipelines > 0 {
		l.alone = time.AfterFunc(aloneTimeout, alone)
	}
}
