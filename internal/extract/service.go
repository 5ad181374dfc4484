// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// The attributes of a service.
const (
	ServiceName      = "service.name"
	ServiceNamespace = "service.namespace"
	ServiceVersion   = "service.version"
	InstanceID       = "service.instance.id"
)

var serviceAttributes = []string{ServiceName, ServiceNamespace, ServiceVersion, InstanceID}

// Traceparent is the annotation of an object that names the trace in which it was changed (KEP-5915).
const Traceparent = "tracing.k8s.io/traceparent"

// podTemplateHash is the label with which a Deployment names its ReplicaSets.
const podTemplateHash = "pod-template-hash"

// Service selects the attributes of the service that records are about.
type Service struct {
	Metadata []string // of the attributes above
	// OTelAnnotations makes the attribute NAME from each annotation resource.opentelemetry.io/NAME
	// of the involved object.
	OTelAnnotations bool
}

// otelAnnotation is the prefix of the keys of annotations that name an attribute.
const otelAnnotation = "resource.opentelemetry.io/"

// involved is the origin of rules that users cannot write: the involved object.
const involved = "involved object"

// service finds the attributes of a service as the k8sattributes processor does, and with it
// OpenTelemetry's conventions:
// https://opentelemetry.io/docs/specs/semconv/non-normative/k8s-attributes/
// An annotation comes before a label, and a label before the name of a workload. The version in the
// name of a container's image is missing: the receiver reads metadata only.
type service struct {
	has   map[string]bool // of serviceAttributes
	rules []rule
}

func (s Service) compile() (service, error) {
	c := service{has: map[string]bool{}}
	for i, name := range s.Metadata {
		if !slices.Contains(serviceAttributes, name) {
			return c, fmt.Errorf("metadata[%d]: %q is not possible here; metadata takes only %s. k8s.* attributes need no entry: resource_attributes switches them", i, name, strings.Join(serviceAttributes, ", "))
		}
		c.has[name] = true
	}
	if s.OTelAnnotations {
		c.rules = append(c.rules, rule{
			tagName: "$1", regex: regexp.MustCompile("^" + regexp.QuoteMeta(otelAnnotation) + "(.+)$"), origin: involved, part: annotation,
		})
	}
	for _, l := range []struct{ name, key string }{
		{ServiceName, "app.kubernetes.io/instance"},
		{ServiceName, "app.kubernetes.io/name"},
		{ServiceVersion, "app.kubernetes.io/version"},
	} {
		if c.has[l.name] {
			c.rules = append(c.rules, rule{tagName: l.name, key: l.key, origin: involved, part: label})
		}
	}
	return c, nil
}

// alwaysKept are the keys that the receiver itself reads, and that no rule has.
var alwaysKept = map[part]string{label: podTemplateHash, annotation: Traceparent}

// find adds the attributes of the service that the involved object belongs to. An object that was
// not found, and one outside all namespaces, belong to none.
func (s *service) find(from Sources, f *found) {
	if !from.Known || from.Chain[0].Namespace == "" {
		return
	}
	object := from.Chain[0]
	f.apply(s.rules, from)
	if s.has[ServiceName] {
		f.add(newTag(ServiceName, nameOfWorkload(from.Chain)), involved, false)
	}
	if s.has[ServiceNamespace] {
		f.add(newTag(ServiceNamespace, object.Namespace), involved, false)
	}
	if s.has[InstanceID] && from.Container != "" {
		f.add(newTag(InstanceID, object.Namespace+"."+object.Name+"."+from.Container), involved, false)
	}
}

// nameOfWorkload returns the name of the Deployment, StatefulSet, … that the first object belongs to,
// else that of a pod; empty: the object belongs to none. As in the processor, the kind alone decides:
// a StatefulSet of another group is one, too.
func nameOfWorkload(chain []*resolver.Object) (name string) {
	hash := chain[0].Labels[podTemplateHash]
	for _, o := range chain {
		switch o.Kind {
		case "DaemonSet", "StatefulSet", "Deployment", "CronJob":
			return o.Name
		case "ReplicaSet":
			// Its owner may not be known, or be deleted.
			name = withoutHash(o.Name, hash)
		case "Pod":
			// A pod that owns a pod, such as the driver of Spark's executors, is another service.
			if name != "" {
				return name
			}
			name = o.Name
		case "Job":
			name = o.Name
		default:
			if name != "" {
				return name
			}
		}
	}
	return name
}

// withoutHash returns the name of the Deployment that named a ReplicaSet. No name begins or ends with a
// dash.
func withoutHash(replicaSet, hash string) string {
	return strings.TrimSuffix(replicaSet, "-"+hash)
}
