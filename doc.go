// SPDX-License-Identifier: Apache-2.0

// mdatagen names the package of generated tests after the folder, so it is shown one of the package's name.
//
//go:generate mkdir -p build
//go:generate ln -sfn .. build/kubeeventsreceiver
//go:generate mdatagen build/kubeeventsreceiver/metadata.yaml

// Package kubeeventsreceiver is a receiver of the OpenTelemetry Collector. It watches the Events of a Kubernetes cluster,
// turns each new observation into a log record whose resource says who owns the involved object, and counts the
// occurrences per reason as a metric.
package kubeeventsreceiver
