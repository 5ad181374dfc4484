// SPDX-License-Identifier: Apache-2.0

// mdatagen names the package of generated tests after the folder. go generate therefore runs it
// through a symlink that has the package's name.
//
//go:generate mkdir -p build
//go:generate ln -sfn .. build/kubeeventsreceiver
//go:generate mdatagen build/kubeeventsreceiver/metadata.yaml
//
// The schema of the options: mdatagen writes it next to what it would generate in Go, so it runs in
// a folder that is thrown away. There, it needs a module and a package. It cannot refuse unknown keys.
//
//go:generate mkdir -p build/schema
//go:generate cp config.metadata.yaml build/schema/metadata.yaml
//go:generate cp go.mod go.sum doc.go build/schema
//go:generate ln -sfn ../../resolver build/schema/resolver
//go:generate mdatagen build/schema/metadata.yaml
//go:generate sh -c "sed 's/\"properties\": {/\"additionalProperties\": false, &/' build/schema/config.schema.json > config.schema.json"
//go:generate rm -r build/schema

// Package kubeeventsreceiver is a receiver of the OpenTelemetry Collector. It watches the Events of
// a Kubernetes cluster, turns each new observation into a log record whose resource names the
// owners of the involved object, and counts the occurrences per reason as a metric.
//
// The receiver is one loop (internal/loop), which takes a batch at a time. It delivers, and then notes
// progress:
//
//	watch ─▶ batch ─▶ ledger ─▶ owners ─▶ records ─▶ deliver ─▶ note progress
//	         taken    what is   who owns  OTLP       until      in the background:
//	                  new       it                   accepted   nowhere, checkpoint or ConfigMap
//
// Progress is what was delivered: a resource version for each stream and, with storage, the counts of
// the events. A start, a restart and a failover are one case: load the progress, list or watch from
// there, and reconcile with the counts.
package kubeeventsreceiver
