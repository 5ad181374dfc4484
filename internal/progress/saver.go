// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"time"
)

// saver writes in a goroutine of its own, one write at a time. A write has everything that came since
// the last one. An error only delays it: the loop never waits for a write.
type saver struct {
	// every is the least time between two writes. Each error in a row doubles it, up to most.
	every, most time.Duration
	// write writes what waits. After an error, it is called again.
	write func(context.Context) error

	waits chan struct{} // has an element while something waits
	hurry chan struct{} // has an element if the next write is not to wait
	ends  chan struct{} // closed by end
	done  chan struct{} // closed when the goroutine has returned
	stop  context.CancelFunc
}

// start starts the goroutine.
func (s *saver) start() {
	s.waits, s.hurry = make(chan struct{}, 1), make(chan struct{}, 1)
	s.ends, s.done = make(chan struct{}), make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() {
		defer close(s.done)
		s.run(ctx)
	}()
}

func (s *saver) run(ctx context.Context) {
	pause := s.every
	for next := time.Now(); ctx.Err() == nil; next = time.Now().Add(pause) {
		select {
		case <-s.waits:
			s.pauseUntil(next)
		case <-s.ends:
			s.writeLast(ctx)
			return
		}
		if pause = min(2*pause, s.most); s.writeOnce(ctx) {
			pause = s.every
		}
	}
}

// writeLast writes what waits, until it is written.
func (s *saver) writeLast(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-s.waits:
		default:
			return
		}
		if !s.writeOnce(ctx) {
			Pause(ctx, s.every)
		}
	}
}

func (s *saver) writeOnce(ctx context.Context) (ok bool) {
	ctx, cancel := context.WithTimeout(ctx, Slow)
	defer cancel()
	if s.write(ctx) != nil {
		s.signal()
		return false
	}
	return true
}

// Pause waits until the duration is over, or the context ends.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// signal lets the goroutine write what waits.
func (s *saver) signal() {
	select {
	case s.waits <- struct{}{}:
	default:
	}
}

// signalAtOnce lets the goroutine write what waits as soon as the write before has ended.
func (s *saver) signalAtOnce() {
	select {
	case s.hurry <- struct{}{}:
	default:
	}
	s.signal()
}

// pauseUntil returns early at the end, and if the write is not to wait.
func (s *saver) pauseUntil(next time.Time) {
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.hurry:
	case <-s.ends:
	}
}

// end writes what waits, and returns when it is written, or when the context ends.
func (s *saver) end(ctx context.Context) {
	close(s.ends)
	defer s.stop()
	select {
	case <-s.done:
	case <-ctx.Done():
	}
}
