// SPDX-License-Identifier: Apache-2.0

// Package logrecord writes observations of events as OTLP log records, one resource for each
// involved object.
package logrecord

import (
	"cmp"
	"context"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/internal/text"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// EventName is the name of every record.
const EventName = "k8s.event"

// Converter converts observations to logs. It may be used concurrently.
type Converter struct {
	ScopeName    string
	ScopeVersion string
	// Disabled has the resource attributes that are left out; nil: none.
	Disabled semconv.Disabled
	// TagsLeftOut is called if tags do not fit into a record, or into a resource; nil: nobody wants
	// to know.
	TagsLeftOut func()
}

const (
	// maxAttributes bounds the attributes of a record and of its resource, both together. Loki
	// accepts 128, adds 5 of its own, and 3 for a trace context.
	maxAttributes = 120
	// ownOfRecord is the maximum number of attributes that writeAttributes writes, without tags.
	ownOfRecord = 33
)

// Convert writes one record for each observation. Records of one involved object keep their order.
func (c Converter) Convert(cluster semconv.Cluster, observations []observation.Observation) plog.Logs {
	logs := plog.NewLogs()
	groups := make(map[resourceKey]group, len(observations))
	for i := range observations {
		o := &observations[i]
		key := keyOf(o)
		group, ok := groups[key]
		if !ok {
			group = c.newResource(logs, cluster, o)
			groups[key] = group
		}
		record := group.records.AppendEmpty()
		writeRecord(record, o)
		c.bound(record.Attributes(), maxAttributes-group.attributes)
	}
	return logs
}

// group has the records of one resource.
type group struct {
	records    plog.LogRecordSlice
	attributes int // of the resource
}

// bound removes the last attributes beyond a number of them. These are tags: the receiver's own
// attributes come first, and leave room.
func (c Converter) bound(attributes pcommon.Map, most int) {
	if attributes.Len() <= most {
		return
	}
	n := 0
	attributes.RemoveIf(func(string, pcommon.Value) bool { n++; return n > most })
	if c.TagsLeftOut != nil {
		c.TagsLeftOut()
	}
}

// resourceKey holds everything that a resource's attributes depend on. Events may refer to one
// object in several ways.
type resourceKey struct {
	involved   resolver.Reference
	container  string
	node       string
	last       resolver.Reference
	resolution resolver.Resolution
	tags       string
}

func keyOf(o *observation.Observation) resourceKey {
	objects := o.Chain.Objects
	return resourceKey{
		involved:   involved(o),
		container:  event.ContainerName(o.Event),
		node:       event.KubeletNode(o.Event),
		last:       referenceTo(objects[len(objects)-1]),
		resolution: o.Chain.Resolution,
		tags:       extract.Joined(o.Tags.Resource),
	}
}

// involved returns the event's reference to the involved object. The object that was found fills
// its empty fields.
func involved(o *observation.Observation) resolver.Reference {
	ref, found := event.Involved(o.Event), o.Chain.Objects[0]
	ref.APIVersion = cmp.Or(ref.APIVersion, found.APIVersion)
	ref.UID = cmp.Or(ref.UID, found.UID)
	ref.Namespace = found.Namespace
	return ref
}

func referenceTo(o *resolver.Object) resolver.Reference {
	return resolver.Reference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID}
}

func (c Converter) newResource(logs plog.Logs, cluster semconv.Cluster, o *observation.Observation) group {
	rl := logs.ResourceLogs().AppendEmpty()
	rl.SetSchemaUrl(semconv.SchemaURL)
	attributes := rl.Resource().Attributes()
	writeResource(attributes, cluster, o)
	c.Disabled.RemoveFrom(attributes)
	c.bound(attributes, maxAttributes-ownOfRecord)
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(c.ScopeName)
	sl.Scope().SetVersion(c.ScopeVersion)
	return group{records: sl.LogRecords(), attributes: attributes.Len()}
}

func writeResource(attributes pcommon.Map, cluster semconv.Cluster, o *observation.Observation) {
	attributes.EnsureCapacity(24)
	put := semconv.Writer(attributes)
	put.Cluster(cluster)

	writeInvolved(put, o)
	for i, object := range o.Chain.Objects {
		// A namespace that owns something is not the namespace of the involved object.
		if i == 0 || object.Kind != "Namespace" {
			put.Object(object)
		}
	}
	node, _ := event.Node(o.Event, o.Chain.Objects)
	put.StringIfNew("k8s.node.name", node)
	put.Owners(o.Chain)
	writeTags(put, o.Tags.Resource)
}

func writeInvolved(put semconv.Writer, o *observation.Observation) {
	object := involved(o)
	put.String("k8s.namespace.name", object.Namespace)
	put.String("k8s.object.api_version", object.APIVersion)
	put.String("k8s.object.kind", object.Kind)
	put.String("k8s.object.name", object.Name)
	put.String("k8s.object.uid", string(object.UID))
	put.String("k8s.container.name", event.ContainerName(o.Event))
}

func writeTags(put semconv.Writer, tags []extract.Tag) {
	for _, tag := range tags {
		put.StringIfNew(tag.Name, tag.Value)
	}
}

func writeRecord(record plog.LogRecord, o *observation.Observation) {
	ev := o.Event
	record.SetEventName(EventName)
	record.SetTimestamp(pcommon.Timestamp(event.UnixNano(event.NewestOccurrence(ev))))
	record.SetObservedTimestamp(pcommon.Timestamp(event.UnixNano(o.SeenAt)))
	record.SetSeverityText(ev.Type)
	record.SetSeverityNumber(severity(ev.Type))
	record.Body().SetStr(ev.Message)
	writeTrace(record, o)
	writeAttributes(record.Attributes(), o)
}

// writeTrace writes the trace context of the event, else that of the nearest object on the chain
// that has one.
func writeTrace(record plog.LogRecord, o *observation.Observation) {
	span := traceContext(o.Event.Annotations[event.Traceparent])
	for _, object := range o.Chain.Objects {
		if span.IsValid() {
			break
		}
		span = traceContext(object.Annotations[extract.Traceparent])
	}
	if !span.IsValid() {
		return
	}
	record.SetTraceID(pcommon.TraceID(span.TraceID()))
	record.SetSpanID(pcommon.SpanID(span.SpanID()))
	record.SetFlags(plog.LogRecordFlags(span.TraceFlags()))
}

// traceContext reads the value of W3C's header traceparent. What it returns is not valid if the
// value is not.
func traceContext(value string) trace.SpanContext {
	if value == "" {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{event.Traceparent: value}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

func severity(eventType string) plog.SeverityNumber {
	switch eventType {
	case corev1.EventTypeNormal:
		return plog.SeverityNumberInfo
	case corev1.EventTypeWarning:
		return plog.SeverityNumberWarn
	default:
		return plog.SeverityNumberUnspecified
	}
}

func writeAttributes(attributes pcommon.Map, o *observation.Observation) {
	ev := o.Event
	attributes.EnsureCapacity(16)
	put := semconv.Writer(attributes)
	put.String("k8s.event.name", ev.Name)
	if o.Chain.Objects[0].Namespace != ev.Namespace || o.Chain.Resolution == observation.Foreign {
		put.String("k8s.event.namespace", ev.Namespace)
	}
	put.String("k8s.event.uid", string(ev.UID))
	put.String("k8s.event.reason", ev.Reason)
	put.String("k8s.event.type", ev.Type)
	put.String("k8s.event.action", ev.Action)
	put.Int("k8s.event.count", event.Count(ev))
	put.Int("k8s.event.occurrences", o.Occurrences)
	put.Time("k8s.event.start_time", event.FirstOccurrence(ev))
	put.String("k8s.event.reporting_controller", event.ReportingController(ev))
	put.String("k8s.event.reporting_instance", event.ReportingInstance(ev))
	if related := event.Related(ev); related != nil {
		put.String("k8s.event.related.api_version", related.APIVersion)
		put.String("k8s.event.related.kind", related.Kind)
		put.String("k8s.event.related.namespace", related.Namespace)
		put.String("k8s.event.related.name", related.Name)
		put.String("k8s.event.related.uid", string(related.UID))
	}
	put.String("k8s.object.fieldpath", ev.InvolvedObject.FieldPath)
	put.String("k8s.object.resource_version", ev.InvolvedObject.ResourceVersion)
	put.String("k8s.owner.resolution", string(o.Chain.Resolution))
	put.String("log.record.uid", recordUID(ev))
	writeDetails(put, o.Details)
	writeTags(put, o.Tags.Record)
}

func writeDetails(put semconv.Writer, d *observation.Details) {
	if d == nil {
		return
	}
	put.String("k8s.details.resolution", string(d.Resolution))
	if end := d.Ended; end != nil {
		put.String(semconv.LastTerminatedReason, end.Reason)
		put.Int("process.exit.code", int64(end.ExitCode))
		put.Int("k8s.container.restart_count", int64(end.Restarts))
		if end.Signal != 0 {
			put.Int("k8s.container.last_terminated.signal", int64(end.Signal))
		}
		put.Time("k8s.container.last_terminated.started_at", end.StartedAt)
		put.Time("k8s.container.last_terminated.finished_at", end.FinishedAt)
		if end.MemoryLimit > 0 {
			put.Int("k8s.container.memory.limit", end.MemoryLimit)
		}
	}
	put.Strings("k8s.config_map.changes", d.ConfigMaps)
	put.Strings("k8s.rollout.changes", d.Changes)
	put.String("k8s.workload.deployed_by", d.DeployedBy)
	put.String("k8s.workload.changed_by", d.ChangedBy)
	put.Time("k8s.workload.changed_at", d.ChangedAt)
}

// recordUID returns the same UID for the same event and count in every replica, so that a backend
// can drop duplicates. It is empty if it could be that of another record: the event has no UID, or
// one that was cut.
func recordUID(ev *corev1.Event) string {
	uid := string(ev.UID) + "-" + strconv.FormatInt(event.Count(ev), 10)
	if ev.UID == "" || len(uid) > text.MaxValue {
		return ""
	}
	return uid
}
