// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package kubeeventsreceiver is a receiver of the OpenTelemetry Collector. It watches the Events of a Kubernetes cluster,
// turns each new observation into a log record whose resource says who owns the involved object, and counts the
// occurrences per reason as a metric.
package kubeeventsreceiver
