// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
)

// minUptime is how long a stream must have stood for the next attempt to start with a short back-off again. A proxy that
// accepts every watch and closes it at once would otherwise be asked without a pause.
const minUptime = 5 * time.Second

// maxQuickEnds is how many connections in a row have to end at once to be taken for a failure. One or two end so when an API
// server is restarted.
const maxQuickEnds = 3

// maxUnfinished is how many streamed listings in a row may end without their bookmark. Some servers
// and proxies accept the option and never send the bookmark.
const maxUnfinished = 2

// errClosedAtOnce is what client-go hides: it turns a connection that is closed before an answer into an empty watch.
var errClosedAtOnce = errors.New("the connection was closed at once")

// Stream is one list-and-watch. Run may be called once.
type Stream struct {
	config Config

	// resourceVersion is where the watch goes on; empty means that a listing is due.
	resourceVersion string
	// brokenAt is where a stream ended with an internal error last.
	brokenAt string
	// paged is set once a streamed listing is not worth another attempt.
	paged bool
	// unfinished is how many streamed listings in a row ended without their bookmark.
	unfinished int
	// listing is set between ListBegan and ListEnded.
	listing bool
	// paused is the sum of the pauses of the listing.
	paused time.Duration
}

// New makes a stream that has not begun.
func New(config Config) *Stream {
	return &Stream{config: config, resourceVersion: config.ResourceVersion}
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 6, Cap: 15 * time.Second}
}

// Run hands over changes until the context ends. A change waits until it is taken, and while it waits nothing is read
// from the API server.
func (s *Stream) Run(ctx context.Context) {
	backoff, closed := newBackoff(), 0
	for s.config.Taker.Await(ctx) == nil {
		opened := time.Now()
		err := s.connect(ctx)
		s.config.Taker.Flush()
		if ctx.Err() != nil {
			return
		}
		brief := err == nil && time.Since(opened) < minUptime
		if !brief {
			closed = 0
		} else if closed++; closed >= maxQuickEnds {
			err = errClosedAtOnce
		}
		cause := s.afterEnd(err)
		s.config.Observer.Restarting(s.config.Namespace, cause, err)
		if time.Since(opened) > minUptime {
			backoff = newBackoff()
		}
		if err == nil && !brief || cause == Stalled {
			continue // The server's own time limit, or the receiver's: go on at once.
		}
		pause(ctx, backoff.Step())
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// connect lists if that is due, and then watches until the stream ends. A nil error is an end in good order.
func (s *Stream) connect(ctx context.Context) error {
	if s.resourceVersion == "" && !s.paged {
		initial := true
		err := s.watch(ctx, metav1.ListOptions{
			SendInitialEvents:    &initial,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
		if !s.listing || !refusesStreaming(err) {
			s.considerPages(err)
			return err
		}
		s.paged = true
	}
	if s.resourceVersion == "" {
		if err := s.listPages(ctx); err != nil {
			return err
		}
	}
	return s.watch(ctx, metav1.ListOptions{ResourceVersion: s.resourceVersion})
}

// considerPages decides, after a streamed listing, whether the next one is paged.
func (s *Stream) considerPages(err error) {
	switch {
	case !s.listing:
		s.unfinished = 0
	case errors.Is(err, errSilent), errors.Is(err, errBrokeOff):
		s.unfinished++
		s.paged = s.unfinished >= maxUnfinished
	case errors.Is(err, errStalled):
		s.paged = true // A stall ends a streamed listing, but not a paged one.
	}
}

// afterEnd names the cause of an end and forgets what the next attempt must not build on.
func (s *Stream) afterEnd(err error) Cause {
	s.listing = false
	switch {
	case err == nil:
		return Ended
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		s.resourceVersion = ""
		return Expired
	case apierrors.IsUnauthorized(err):
		return Unauthorized
	case apierrors.IsForbidden(err):
		return Forbidden
	case errors.Is(err, errSilent):
		return Silent
	case errors.Is(err, errStalled):
		return Stalled
	default:
		return Unavailable
	}
}

// refusesStreaming says whether a server that is older than streaming lists, or has them switched off, refused the
// option: it answers that the request is invalid.
func refusesStreaming(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

func (s *Stream) beginList(ctx context.Context) error {
	s.listing, s.paused = true, 0
	return s.hand(ctx, Change{Kind: ListBegan})
}

func (s *Stream) endList(ctx context.Context, resourceVersion string) error {
	if err := s.hand(ctx, Change{Kind: ListEnded, ResourceVersion: resourceVersion}); err != nil {
		return err
	}
	s.listing = false
	s.resourceVersion = resourceVersion
	s.config.Observer.Healthy(s.config.Namespace)
	return nil
}

// hand hands a change over.
func (s *Stream) hand(ctx context.Context, change Change) error {
	change.Namespace = s.config.Namespace
	change.SeenAt = time.Now()
	if change.Event != nil {
		event.Normalize(change.Event)
		s.config.Observer.Arrived()
	}
	return s.config.Taker.Put(ctx, change)
}
