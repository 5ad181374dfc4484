// SPDX-License-Identifier: Apache-2.0

// Package rights reports which permissions are missing for the lookup of owners.
package rights

import (
	"fmt"
	"sync"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Missing logs missing permissions. It may be used concurrently.
type Missing struct {
	logger *zap.Logger

	mu       sync.Mutex
	reported map[schema.GroupResource]bool // guarded by mu
}

// NewMissing returns a Missing that has logged nothing.
func NewMissing(logger *zap.Logger) *Missing {
	return &Missing{logger: logger, reported: map[schema.GroupResource]bool{}}
}

// builtIn are the resources on the way from a pod to its workload in each cluster, and those that
// extract reads. Without permission for one of them, the workload of records is an object below the
// right one, or tags are missing.
var builtIn = map[schema.GroupResource]bool{
	{Resource: "pods"}:                        true,
	{Resource: "namespaces"}:                  true,
	{Resource: "nodes"}:                       true,
	{Resource: "replicationcontrollers"}:      true,
	{Group: "apps", Resource: "replicasets"}:  true,
	{Group: "apps", Resource: "deployments"}:  true,
	{Group: "apps", Resource: "statefulsets"}: true,
	{Group: "apps", Resource: "daemonsets"}:   true,
	{Group: "batch", Resource: "jobs"}:        true,
	{Group: "batch", Resource: "cronjobs"}:    true,
}

// confidential are resources that nobody should grant for the sake of events about them.
var confidential = map[schema.GroupResource]bool{{Resource: "configmaps"}: true, {Resource: "secrets"}: true}

// Forbidden logs a missing permission for owners, once. Users may omit it on purpose, and no event
// is lost, so the status stays OK. An object that may not be read is the workload, so that what a
// custom resource lacks is no reason for a warning.
func (m *Missing) Forbidden(verb string, resource schema.GroupResource, namespace string) {
	if confidential[resource] || verb == "list" && !builtIn[resource] {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reported[resource] {
		return
	}
	m.reported[resource] = true
	fields := []zap.Field{
		zap.String("verb", verb), zap.String("resource", resource.String()), zap.String("namespace", namespace),
		zap.String("rule_to_add", fmt.Sprintf("{apiGroups: ['%s'], resources: [%s], verbs: [get, list]}", resource.Group, resource.Resource)),
	}
	if builtIn[resource] {
		m.logger.Warn("Missing permission for this kind of owner. Without get, chains end at such an object, and its labels are missing; without list, each object is one request", fields...)
		return
	}
	m.logger.Info("No permission to read this kind of owner; such an object is the workload. With the rule, records also have its labels and its own owners", fields...)
}
