// SPDX-License-Identifier: Apache-2.0

// Package health reports the state of the receiver: as the component's status, in the log, and as
// the receiver's own telemetry.
package health

import (
	"context"

	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/internal/rights"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

// Health observes all parts of the receiver. It implements the observers of the packages watch,
// delivery, election and resolver. Its methods may be called concurrently.
type Health struct {
	*Status
	*Telemetry
	missing *rights.Missing
}

// New returns a Health without failures. The error is that of the meter provider.
func New(settings receiver.Settings) (*Health, error) {
	telemetry, err := newTelemetry(settings)
	if err != nil {
		return nil, err
	}
	return &Health{newStatus(settings.Logger), telemetry, rights.NewMissing(settings.Logger)}, nil
}

// Restarting implements watch.Observer.
func (h *Health) Restarting(namespace string, cause watch.Cause, err error) {
	h.builder.KubeEventsWatchRestarts.Add(context.Background(), 1, h.id, metric.WithAttributes(attribute.String("cause", string(cause))))
	if cause.IsFailure() {
		h.Failed(streamOf(namespace), string(cause), "Cannot watch events; retrying", explain(namespace, cause, err))
	}
}

// Forbidden implements resolver.Observer. The log has each missing permission once, and the metric
// each request.
func (h *Health) Forbidden(verb string, resource schema.GroupResource, namespace string) {
	h.builder.KubeEventsOwnerLookupsForbidden.Add(context.Background(), 1, h.id,
		metric.WithAttributes(attribute.String("verb", verb), attribute.String("resource", resource.String())))
	h.missing.Forbidden(verb, resource, namespace)
}
