// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package ownersprocessor is the Collector processor `kube_owners`. It adds to each resource the workload of the
// Kubernetes object that the resource names, with the attributes that the kube_events receiver writes for the
// same object.
//
// A resource names an object (subject.go). What is known of it is in a table (table.go). What is not is looked up
// in the background, while the data waits for a moment (enrich.go).
package ownersprocessor
