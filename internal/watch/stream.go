// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
)

// minUptime is the time that a stream must have been open to reset the back-off. Otherwise, the
// receiver would connect without a pause to a proxy that accepts every watch and closes it at once.
const minUptime = 5 * time.Second

// maxUseless is the number of consecutive connections that are a failure if they end at once, or
// expire before a message. One or two do when an API server restarts.
const maxUseless = 3

// errUseless is also the only error of a connection that closes before an answer: client-go converts it
// to an empty watch.
var errUseless = errors.New("watches end at once, or their resource version expires before a message: check proxies before " +
	"the API server, and whether it compacts etcd before a list is complete (--etcd-compaction-interval)")

// Stream is one list-and-watch. Run may be called once.
type Stream struct {
	settings Settings

	// resourceVersion is the version from which the watch resumes. Empty means that a list is due.
	resourceVersion string
	// exactAt is the version of the next list, if it is one at an exact version. A version that expires
	// ends this, too.
	exactAt string
	// highest is the highest version that is known of the cluster.
	highest uint64
	// internalErrorAt is the version at which the last internal error ended a stream.
	internalErrorAt string
	// hasMessage reports whether a message has come over the connection.
	hasMessage bool
	// useless is the number of consecutive connections that ended at once, or expired before a message.
	useless int
	// failed is set from a failure until a watch works.
	failed bool
}

// New returns a stream that has not started.
func New(settings Settings) *Stream {
	settings.Watches = cmp.Or(settings.Watches, settings.Client)
	s := &Stream{settings: settings, resourceVersion: settings.ResourceVersion, exactAt: settings.ExactAt}
	s.observe(s.resourceVersion)
	s.observe(s.exactAt)
	return s
}

// backoff has the delays between attempts, each with a random part of 0 to 100% on top.
var backoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Cap: 15 * time.Second, Jitter: 1, Steps: math.MaxInt}

// Run passes on changes until the context ends. A change waits until the Taker takes it. Until
// then, Run reads nothing from the API server.
func (s *Stream) Run(ctx context.Context) {
	delays := backoff
	for ctx.Err() == nil {
		opened, resumes := time.Now(), s.resourceVersion != "" || s.exactAt != ""
		err := s.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		uptime := time.Since(opened)
		quickEnd := err == nil && uptime < minUptime
		cause := s.afterEnd(err)
		if s.countUseless(quickEnd, cause) {
			cause, err = CauseUnavailable, errors.Join(errUseless, err)
		} else if uptime > minUptime || resumes && cause == CauseExpired {
			// The server answers, and only a list helps: the failures before must not delay it. If a
			// list itself expires, the delays continue.
			delays = backoff
		}
		s.failed = s.failed || cause.IsFailure()
		s.settings.Observer.Restarting(s.settings.Namespace, cause, err)
		if err == nil && !quickEnd {
			continue // The server's own time limit: connect at once.
		}
		pause(ctx, max(delays.Step(), retryAfter(err)))
	}
}

// countUseless counts a connection that has ended, and reports whether too many were useless.
func (s *Stream) countUseless(quickEnd bool, cause Cause) bool {
	if quickEnd || cause == CauseExpired && !s.hasMessage {
		s.useless++
	} else {
		s.useless = 0
	}
	return s.useless >= maxUseless
}

// works reports that the watch works.
func (s *Stream) works() {
	s.failed = false
	s.settings.Observer.Answered(s.settings.Namespace)
}

// retryAfter returns how long the server asks to wait before the next request; 0: it does not ask. A
// longer pause would leave a receiver without events long after the server, or a proxy before it, has
// recovered.
func retryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return min(time.Duration(seconds)*time.Second, responseTimeout)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// connect lists if a list is due, and then watches until the stream ends. A nil error is a normal
// end.
func (s *Stream) connect(ctx context.Context) error {
	s.hasMessage = false
	if err := s.checkVersion(ctx); err != nil {
		return err
	}
	if s.resourceVersion == "" {
		if err := s.listPages(ctx); err != nil {
			if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
				s.exactAt = "" // It is not a version.
			}
			return err
		}
	}
	return s.watch(ctx)
}

// afterEnd returns the cause of an end and resets what the next attempt must not use.
func (s *Stream) afterEnd(err error) Cause {
	cause := CauseOf(err)
	if cause == CauseExpired {
		s.exactAt = ""
		s.resourceVersion = ""
	}
	return cause
}

// CauseOf returns the cause of an end; nil is a normal end.
func CauseOf(err error) Cause {
	switch {
	case err == nil:
		return CauseEnded
	case isExpired(err):
		return CauseExpired
	case apierrors.IsUnauthorized(err):
		return CauseUnauthorized
	case apierrors.IsForbidden(err):
		return CauseForbidden
	case errors.Is(err, errNoResponse), errors.Is(err, context.DeadlineExceeded):
		return CauseSilent
	case errors.Is(err, errIdle):
		return CauseIdle
	default:
		return CauseUnavailable
	}
}

// isExpired reports whether the server does not have the resource version: it no longer has it, or
// the version is above the newest one.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) ||
		apierrors.IsTimeout(err) && strings.Contains(err.Error(), "Too large resource version")
}

func (s *Stream) endList(ctx context.Context, resourceVersion string) error {
	if err := s.put(ctx, Change{Kind: KindListEnded, ResourceVersion: resourceVersion}); err != nil {
		return err
	}
	s.setVersion(resourceVersion)
	return nil
}

// setVersion sets where the stream resumes.
func (s *Stream) setVersion(resourceVersion string) {
	s.resourceVersion = resourceVersion
	s.observe(resourceVersion)
}

func (s *Stream) observe(version string) { s.highest = max(s.highest, event.Version(version)) }

// put puts a change into the queue.
func (s *Stream) put(ctx context.Context, change Change) error {
	change.Namespace = s.settings.Namespace
	change.SeenAt = time.Now()
	if change.Event == nil {
		return s.settings.Taker.Put(ctx, change)
	}
	if s.settings.Keep != nil {
		s.settings.Keep(change.Event)
	}
	event.Normalize(change.Event)
	s.settings.Observer.Arrived()
	s.observe(change.Event.ResourceVersion)
	if err := s.settings.Taker.Put(ctx, change); err != nil {
		s.settings.Observer.Withdrawn()
		return err
	}
	return nil
}
