// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// status reports how the streams fare, as the component's status and in the log: at a change, not at each attempt.
type status struct {
	logger    *zap.Logger
	telemetry *telemetry

	// mu guards the following.
	mu      sync.Mutex
	hosts   []component.Host   // one for each pipeline's instance of the receiver
	failing map[string]failure // by the part of the receiver that does not work
	hinted  map[string]bool    // the missing permissions for owners that the log has named
}

type failure struct {
	cause string
	err   error
}

func newStatus(logger *zap.Logger, telemetry *telemetry) *status {
	return &status{logger: logger, telemetry: telemetry, failing: map[string]failure{}, hinted: map[string]bool{}}
}

func (s *status) addHost(host component.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts = append(s.hosts, host)
}

// Arrived implements watch.Observer.
func (s *status) Arrived() { s.telemetry.arrived() }

// Healthy implements watch.Observer.
func (s *status) Healthy(namespace string) {
	s.recovered(streamOf(namespace), "Watching events again")
}

// Restarting implements watch.Observer.
func (s *status) Restarting(namespace string, cause watch.Cause, err error) {
	s.telemetry.restarted(cause)
	switch cause {
	case watch.Ended, watch.Expired, watch.Stalled:
		return // Ordinary ends, after which the stream goes on where it was or lists again.
	}
	s.failed(streamOf(namespace), string(cause), "Cannot watch events; retrying", explain(namespace, cause, err))
}

// WentBack implements watch.Observer.
func (s *status) WentBack(_ string, known, now uint64) {
	s.logger.Warn("The resource versions of the cluster have gone back, as after a restore of etcd; listing. Counts and sums are kept",
		zap.Uint64("known_version", known), zap.Uint64("current_version", now))
}

// forget notes that it is no longer known whether a part works: nothing uses it now.
func (s *status) forget(part string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, failed := s.failing[part]; failed {
		delete(s.failing, part)
		s.reportLocked()
	}
}

// failed notes that a part of the receiver does not work. The same cause again is no news.
func (s *status) failed(part, cause, message string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.failing[part]; ok && known.cause == cause {
		return
	}
	s.failing[part] = failure{cause, err}
	s.logger.Warn(message, zap.Error(err))
	s.reportLocked()
}

// set notes that a part of the receiver does not work, without a line in the log.
func (s *status) set(part string, f failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing[part] = f
	s.reportLocked()
}

// recovered notes that a part works, which is no news unless it had failed.
func (s *status) recovered(part, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, failed := s.failing[part]; !failed {
		return
	}
	delete(s.failing, part)
	s.logger.Info(message, zap.String("part", part))
	s.reportLocked()
}

// Forbidden names a permission for owners that is missing, once. It may be missing on purpose, and costs no event, so it
// is no error of the component.
func (s *status) Forbidden(verb string, resource schema.GroupResource, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing := verb + " " + resource.String()
	if s.hinted[missing] {
		return
	}
	s.hinted[missing] = true
	consequence := "owner chains end there"
	if verb == "list" {
		consequence = "falling back to one GET per object"
	}
	s.logger.Warn("Missing permission to look up owners; "+consequence,
		zap.String("verb", verb), zap.String("resource", resource.String()), zap.String("namespace", namespace),
		zap.String("rule_to_add", fmt.Sprintf("{apiGroups: [%q], resources: [%s], verbs: [get, list]}", resource.Group, resource.Resource)))
}

func (s *status) reportLocked() {
	event := componentstatus.NewEvent(componentstatus.StatusOK)
	if len(s.failing) > 0 {
		var errs error
		for _, f := range s.failing {
			errs = errors.Join(errs, f.err)
		}
		event = componentstatus.NewRecoverableErrorEvent(errs)
	}
	for _, host := range s.hosts {
		componentstatus.ReportStatus(host, event)
	}
}

// explain adds the way out to an error of the API server.
func explain(namespace string, cause watch.Cause, err error) error {
	switch cause {
	case watch.Forbidden:
		role := "ClusterRole"
		if namespace != "" {
			role = "Role in namespace " + namespace
		}
		return fmt.Errorf(`no permission to list and watch events of %s: bind a %s with the rule {apiGroups: [""], resources: [events], verbs: [get, list, watch]}: %w`,
			where(namespace), role, err)
	case watch.Unauthorized:
		return fmt.Errorf("the API server does not accept the credentials for events of %s: renew the token or certificate: %w", where(namespace), err)
	default:
		return fmt.Errorf("events of %s: %w", where(namespace), err)
	}
}

// streamOf is the part of the receiver that watches a namespace.
func streamOf(namespace string) string { return "events of " + where(namespace) }

func where(namespace string) string {
	if namespace == "" {
		return "the cluster"
	}
	return "namespace " + namespace
}

// PositionFailed implements election.Observer. Nothing is dropped then, and a failover repeats more.
func (s *status) PositionFailed(err error) {
	cause := "unavailable"
	var forbidden *election.PermissionError
	if errors.As(err, &forbidden) {
		cause = "forbidden"
	}
	var unreadable *election.DataError
	if errors.As(err, &unreadable) {
		cause = "unreadable"
	}
	s.failed(positionPart, cause, "Cannot read or publish the position of the leader; retrying. Until it works, a failover repeats more", err)
}

// PositionWorks implements election.Observer.
func (s *status) PositionWorks() {
	s.recovered(positionPart, "The position of the leader can be read and published again")
}

// logsPipeline is the part of the receiver that the component's status names while it is rejected.
const logsPipeline = "the logs pipeline"

// deliveryObserver reports deliveries as the component's status and the receiver's own telemetry.
type deliveryObserver struct{ *eventsReceiver }

// Accepted implements delivery.Observer.
func (o deliveryObserver) Accepted(records int) { o.telemetry.accepted(records) }

// Rejected implements delivery.Observer.
func (o deliveryObserver) Rejected(records int, _ error) { o.telemetry.refused(records) }

// Dropped implements delivery.Observer.
func (o deliveryObserver) Dropped(records int, _ error, _ bool) { o.telemetry.dropped(records) }

// RejectingLong implements delivery.Observer. The deliverer writes the log.
func (o deliveryObserver) RejectingLong(since time.Duration) {
	o.status.set(logsPipeline, failure{"rejecting",
		fmt.Errorf("the logs pipeline has accepted no events for %v: check the exporters' logs", since.Round(time.Second))})
}

// AcceptingAgain implements delivery.Observer.
func (o deliveryObserver) AcceptingAgain() { o.status.forget(logsPipeline) }
