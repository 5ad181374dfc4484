// SPDX-License-Identifier: Apache-2.0

package semconv

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"
)

// entityType says which attributes of a resource describe an entity.
type entityType struct {
	name        string
	identity    string
	description []string
}

// entityTypes are the entities in metadata.yaml: those of contrib's k8s_cluster receiver that a
// record can be about, with the same identity. Exception: the conventions have no UID of a namespace.
var entityTypes = []entityType{
	{"k8s.cluster", "k8s.cluster.uid", []string{"k8s.cluster.name"}},
	{"k8s.namespace", "k8s.namespace.name", nil},
	named("k8s.node"),
	named("k8s.pod"),
	named("k8s.replicaset"),
	named("k8s.replicationcontroller"),
	named("k8s.deployment"),
	named("k8s.statefulset"),
	named("k8s.daemonset"),
	named("k8s.job"),
	named("k8s.cronjob"),
	{"k8s.workload", Workload.uid, []string{Workload.apiVersion, Workload.kind, Workload.name}},
}

func named(name string) entityType {
	return entityType{name, name + ".uid", []string{name + ".name"}}
}

// WriteEntityRefs makes a resource refer to the entities that its attributes describe. It leaves out
// an entity that the attributes do not identify.
func WriteEntityRefs(resource pcommon.Resource) {
	attributes, refs := resource.Attributes(), entity.ResourceEntityRefs(resource)
	for _, t := range entityTypes {
		if _, known := attributes.Get(t.identity); !known {
			continue
		}
		ref := refs.AppendEmpty()
		ref.SetType(t.name)
		ref.IdKeys().Append(t.identity)
		for _, key := range t.description {
			if _, known := attributes.Get(key); known {
				ref.DescriptionKeys().Append(key)
			}
		}
	}
}
