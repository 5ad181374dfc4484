// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// status reports how the streams fare, as the component's status and in the log: at a change, not at each attempt.
type status struct {
	logger    *zap.Logger
	telemetry *telemetry

	// mu guards the following.
	mu      sync.Mutex
	hosts   []component.Host // one for each pipeline's instance of the receiver
	failing map[string]failure
}

type failure struct {
	cause watch.Cause
	err   error
}

func newStatus(logger *zap.Logger, telemetry *telemetry) *status {
	return &status{logger: logger, telemetry: telemetry, failing: map[string]failure{}}
}

func (s *status) addHost(host component.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts = append(s.hosts, host)
}

// Healthy implements watch.Observer.
func (s *status) Healthy(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, failed := s.failing[namespace]; !failed {
		return
	}
	delete(s.failing, namespace)
	s.logger.Info("Watching events again", zap.String("of", where(namespace)))
	s.reportLocked()
}

// Restarting implements watch.Observer.
func (s *status) Restarting(namespace string, cause watch.Cause, err error) {
	s.telemetry.restarted(cause)
	if cause == watch.Ended || cause == watch.Expired {
		return // Ordinary ends, after which the stream goes on where it was or lists again.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing[namespace].cause == cause {
		return
	}
	explained := explain(namespace, cause, err)
	s.failing[namespace] = failure{cause, explained}
	s.logger.Warn("Cannot watch events; trying again until it works", zap.Error(explained))
	s.reportLocked()
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

func where(namespace string) string {
	if namespace == "" {
		return "the cluster"
	}
	return "namespace " + namespace
}
