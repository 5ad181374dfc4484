// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"

	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// Status reports whether the parts of the receiver work, as the component's status and in the log.
// It reports changes, not each attempt. Its methods may be called concurrently.
type Status struct {
	logger *zap.Logger

	// mu guards the following.
	mu      sync.Mutex
	hosts   []component.Host   // one for each pipeline's instance of the receiver
	failing map[string]failure // by the failing part of the receiver
	standby bool               // another process leads

	tagsLeftOut sync.Once // the log has it
}

type failure struct {
	cause string
	err   error
	// isFirst is set until the part has worked for the first time in a session: it does not work again.
	isFirst bool
}

func newStatus(logger *zap.Logger) *Status {
	return &Status{logger: logger, failing: map[string]failure{}}
}

// AddHost adds the host of a pipeline's instance of the receiver. The status is reported to each.
func (s *Status) AddHost(host component.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts = append(s.hosts, host)
	if len(s.failing) > 0 || s.standby {
		componentstatus.ReportStatus(host, s.eventLocked())
	}
}

// Standby records that another process leads. Of these parts, this one uses none.
func (s *Status) Standby(parts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.standby = true
	for _, part := range parts {
		delete(s.failing, part)
	}
	s.reportLocked()
}

// ErrNoAnswer is the error in the status until the API server has answered for the first time. A
// network that drops packets is a failure only after a timeout; until then, this error keeps the
// Collector from reporting that the receiver works.
var ErrNoAnswer = errors.New("the API server has not answered yet")

// attributeStandby of a status is true while another process leads. A standby is healthy, but it emits
// nothing.
const attributeStandby = "kube_events.standby"

// Waiting records that nobody knows yet whether the streams work. The log does not have it: each start begins with it.
func (s *Status) Waiting(parts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.standby = false
	for _, part := range parts {
		s.failing[part] = failure{"waiting", fmt.Errorf("%s: %w", part, ErrNoAnswer), true}
	}
	s.reportLocked()
}

// Works records that a part works, or is not used now. The message is for the log, if the part works
// again; empty: it is not logged.
func (s *Status) Works(part, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, failed := s.failing[part]
	if !failed {
		return
	}
	delete(s.failing, part)
	if message != "" && !known.isFirst {
		s.logger.Info(message, zap.String("part", part))
	}
	s.reportLocked()
}

// AllWork reports whether all parts work.
func (s *Status) AllWork(parts ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(parts, func(part string) bool { _, failed := s.failing[part]; return failed })
}

// Failed records that a part does not work. It reports the same cause only once. The message is for
// the log; empty: it is not logged.
func (s *Status) Failed(part, cause, message string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.failing[part]
	if known.cause == cause {
		return
	}
	s.failing[part] = failure{cause, err, known.isFirst}
	if message != "" {
		s.logger.Warn(message, zap.Error(err))
	}
	s.reportLocked()
}

// Streams returns the parts that watch the namespaces. One empty name is the whole cluster.
func Streams(namespaces []string) (parts []string) {
	for _, namespace := range namespaces {
		parts = append(parts, streamOf(namespace))
	}
	return parts
}

// Answered implements watch.Observer.
func (s *Status) Answered(namespace string) { s.Works(streamOf(namespace), "Watching events again") }

// WentBack implements watch.Observer.
func (s *Status) WentBack(namespace string, known, now uint64) {
	s.logger.Warn("The resource versions of the cluster have gone back, as after a restore of etcd; listing. Counts are kept",
		zap.String("events_of", where(namespace)), zap.Uint64("known_version", known), zap.Uint64("current_version", now))
}

// TagsLeftOut logs once that records have more tags than they have room for.
func (s *Status) TagsLeftOut() {
	s.tagsLeftOut.Do(func() {
		s.logger.Warn("Records have more labels and annotations than fit into 120 attributes; leaving out those that key_regex of extract matches last. " +
			"Narrow key_regex, or name the keys")
	})
}

func (s *Status) reportLocked() {
	event := s.eventLocked()
	for _, host := range s.hosts {
		componentstatus.ReportStatus(host, event)
	}
}

func (s *Status) eventLocked() *componentstatus.Event {
	if len(s.failing) == 0 {
		ok := componentstatus.NewEvent(componentstatus.StatusOK)
		if s.standby {
			ok.Attributes().PutBool(attributeStandby, true)
		}
		return ok
	}
	errs := make([]error, 0, len(s.failing)) // Not joined one by one: each start has one for each namespace.
	for _, f := range s.failing {
		errs = append(errs, f.err)
	}
	return componentstatus.NewRecoverableErrorEvent(errors.Join(errs...))
}

// explain adds the fix to an error of the API server.
func explain(namespace string, cause watch.Cause, err error) error {
	switch cause {
	case watch.CauseForbidden:
		role := "ClusterRole"
		if namespace != "" {
			role = "Role in namespace " + namespace
		}
		return fmt.Errorf(`no permission to list and watch events of %s: bind a %s with the rule {apiGroups: [''], resources: [events], verbs: [get, list, watch]}: %w`,
			where(namespace), role, err)
	case watch.CauseUnauthorized:
		return fmt.Errorf("the API server does not accept the credentials for events of %s: renew the token or certificate: %w", where(namespace), err)
	default:
		return fmt.Errorf("events of %s: %w%s", where(namespace), err, fixOf(err))
	}
}

// fixOf returns what to check after an error of the network; empty after any other.
func fixOf(err error) string {
	_, isName := errors.AsType[*net.DNSError](err)
	_, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, isConnection := errors.AsType[*net.OpError](err)
	switch {
	case isName:
		return "; check the host name of the API server, and DNS"
	case isCertificate:
		return "; check the address of the API server, and the certificate authority in the kubeconfig or the pod"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "; check the address of the API server, and whether it runs"
	case isConnection, errors.Is(err, context.DeadlineExceeded):
		return "; check the address of the API server, and network policies, firewalls and proxies before it"
	default:
		return ""
	}
}

// streamOf returns the name of the part of the receiver that watches a namespace.
func streamOf(namespace string) string { return "events of " + where(namespace) }

func where(namespace string) string {
	if namespace == "" {
		return "the cluster"
	}
	return "namespace " + namespace
}

// logsPipeline is the name of this part in the component's status while the pipeline rejects
// events.
const logsPipeline = "the logs pipeline"

// RejectingLong implements delivery.Observer. The deliverer writes the log.
func (s *Status) RejectingLong(since time.Duration) {
	s.Failed(logsPipeline, "rejecting", "",
		fmt.Errorf("the logs pipeline has accepted no events for %v: check the exporters' logs", since.Round(time.Second)))
}

// AcceptingAgain implements delivery.Observer.
func (s *Status) AcceptingAgain() { s.Works(logsPipeline, "") }
