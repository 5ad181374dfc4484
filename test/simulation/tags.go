// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The keys that rules of extract name, and the attributes that they give. Rules without tag_name
// give the attributes that OpenTelemetry's conventions name.
const (
	teamLabel, teamTag   = "team", "tenant"
	costsAnnotation      = "costs-center" // matches costs-(.*)
	costsTag             = "costs.center"
	zoneLabel, zoneTag   = "topology.kubernetes.io/zone", "k8s.node.label.topology.kubernetes.io/zone"
	appLabel, appTag     = "app", "k8s.event.label.app"
	styleAnnotation      = "written-by"
	styleTag             = "writer"
	fromNamespace        = "namespace"
	fromNode             = "node"
	fromEvent            = "event"
	nodes, existingNodes = 4, 3 // Of the last one, a kubelet reports, but there is no Node.
)

// addTags configures from where, other than the chain, tags come.
func (p *Plan) addTags() {
	r := draw(p.Seed, "tags", 0)
	for _, from := range []string{fromNamespace, fromNode, fromEvent} {
		if chance(r, 3) {
			p.TagsFrom = append(p.TagsFrom, from)
		}
	}
}

// extract returns the setting, with the default tag.
func (p *Plan) extract(tagsFrom []string) map[string]any {
	type rule = map[string]any
	labels, annotations := []any{rule{"tag_name": "tilt.manifest", "key": "tilt-manifest"}}, []any{}
	for _, from := range tagsFrom {
		switch from {
		case fromNamespace:
			labels = append(labels, rule{"tag_name": teamTag, "key": teamLabel, "from": from})
			annotations = append(annotations,
				rule{"tag_name": "costs.$1", "key_regex": "costs-(.*)", "from": from})
		case fromNode:
			labels = append(labels, rule{"key": zoneLabel, "from": from})
		case fromEvent:
			labels = append(labels, rule{"key": appLabel, "from": from})
			annotations = append(annotations,
				rule{"tag_name": styleTag, "key": styleAnnotation, "from": from})
		}
	}
	// The last rule: beyond a number of tags, the rest is left out.
	if slices.ContainsFunc(p.Apps, func(a AppPlan) bool { return a.Kind == manyAnnotations }) {
		annotations = append(annotations, rule{"tag_name": "$1", "key_regex": "odd/(.*)"})
	}
	return map[string]any{"labels": labels, "annotations": annotations}
}

// nodeOf returns the name of a pod's node, which depends on the pod alone.
func nodeOf(pod string) string {
	sum := 0
	for _, letter := range []byte(pod) {
		sum += int(letter)
	}
	return fmt.Sprint("node-", sum%nodes)
}

// createOutside creates the Namespaces and Nodes that tags are taken from. No other object has a
// reference to them. One namespace in four has no label.
func (e *environment) createOutside() {
	create := func(o *object) {
		e.outside[o.kind+"/"+o.name] = o
		o.create(e.server)
	}
	a := &app{}
	for i := range e.plan.Namespaces {
		o := a.newObject("Namespace", namespace(i))
		if i%4 != 3 {
			o.labels = map[string]string{teamLabel: fmt.Sprint("team-of-", i%5)}
			o.annotations = map[string]string{costsAnnotation: fmt.Sprint(i), "other": "annotation"}
		}
		create(o)
	}
	// Events of cluster-scoped objects are in the namespace default, which is not the object's.
	other := a.newObject("Namespace", metav1.NamespaceDefault)
	other.labels = map[string]string{teamLabel: "nobody"}
	create(other)
	for i := range existingNodes {
		o := a.newObject("Node", fmt.Sprint("node-", i))
		o.labels = map[string]string{zoneLabel: fmt.Sprint("zone-", i), "other": "label"}
		create(o)
	}
}

// valueOf returns the label or annotation of an object outside of chains; empty: it has none.
func (e *environment) valueOf(kind, name string, of func(*object) map[string]string, key string) string {
	if o := e.outside[kind+"/"+name]; o != nil {
		return of(o)[key]
	}
	return ""
}

func labelsOf(o *object) map[string]string      { return o.labels }
func annotationsOf(o *object) map[string]string { return o.annotations }

// tag is an attribute that rules give.
type tag struct {
	name, from, want string
	resource         string // of the requests for what it is taken from
}

// tagsOf returns the tags that a record, or a point of the metric, must have. Those whose value is
// empty must be absent.
func (e *environment) tagsOf(resource pcommon.Map, c *Configured) []tag {
	namespace, node := text(resource, "k8s.namespace.name"), text(resource, "k8s.node.name")
	tags := []tag{
		{teamTag, fromNamespace, e.valueOf("Namespace", namespace, labelsOf, teamLabel), "namespaces"},
		{costsTag, fromNamespace, e.valueOf("Namespace", namespace, annotationsOf, costsAnnotation), "namespaces"},
		{zoneTag, fromNode, e.valueOf("Node", node, labelsOf, zoneLabel), "nodes"},
	}
	for i := range tags {
		if c.NoOwners || !slices.Contains(c.TagsFrom, tags[i].from) {
			tags[i].want = ""
		}
	}
	return tags
}

// checkTags checks what records have from outside of their chains.
func (t *truth) checkTags() {
	for _, r := range t.env.records() {
		// What a window of dedup_interval holds has the tags of its event from the process that read
		// it, and the others from the process that ends the window.
		t.checkEach(r, t.wrongTags)
		t.checkEach(r, t.wrongTagsOfEvent)
	}
}

// checkEach checks that nothing is wrong with a record under the configuration of its process.
func (t *truth) checkEach(r *record, wrong func(*record, *Configured) []Violation) {
	for _, v := range wrong(r, r.process.configured()) {
		t.env.violate(v.Promise, t.eventOf(r), "%s", v.Text)
	}
}

// wrongTags returns how the tags from outside of the chain differ from what is configured.
func (t *truth) wrongTags(r *record, c *Configured) (found []Violation) {
	for _, tag := range t.env.tagsOf(r.resource, c) {
		got := text(r.resource, tag.name)
		switch {
		case got == tag.want:
		case got != "":
			found = append(found, Violation{Promise: ownersRight, Text: fmt.Sprintf("%s: %s is %q, not %q", r.uid, tag.name, got, tag.want)})
		case !t.mayMissTag(r, tag):
			found = append(found, Violation{Promise: ownersComplete, Text: fmt.Sprintf("%s has no %s, which is %q", r.uid, tag.name, tag.want)})
		}
	}
	return found
}

// mayMissTag reports whether a fault may have kept the process from reading what the tag is of.
func (t *truth) mayMissTag(r *record, tag tag) bool {
	return t.env.epochAt(r.at) > 0 || t.env.disturbed(r.observed().Add(-lookBack), r.at, func(f *Fault) bool {
		isMissed := f.Verb == "" || t.env.plan.QPS > 0
		fails := !f.is(GroupStale) && slices.Contains([]string{"", ofDiscovery, tag.resource}, f.Resource)
		return f.Kind.isOfAPI() && isMissed && fails &&
			f.concerns(r.process.replica.index)
	})
}

// wrongTagsOfEvent returns how tags are wrong that need no lookup: one of the event's states has them.
func (t *truth) wrongTagsOfEvent(r *record, c *Configured) []Violation {
	if len(t.states[r.uid]) == 0 {
		return nil // Another check reports such a record.
	}
	isConfigured := slices.Contains(c.TagsFrom, fromEvent)
	has := func(ev *corev1.Event) bool {
		app, style := ev.Labels[appLabel], ev.Annotations[styleAnnotation]
		if !isConfigured {
			app, style = "", ""
		}
		attributes := r.log.Attributes()
		return text(attributes, appTag) == attributeOf(app) && text(attributes, styleTag) == attributeOf(style)
	}
	if slices.ContainsFunc(t.states[r.uid], has) {
		return nil
	}
	return []Violation{{Promise: ownersRight, Text: fmt.Sprintf("%s has %s %q and %s %q, and no state of the event does",
		r.uid, appTag, text(r.log.Attributes(), appTag), styleTag, text(r.log.Attributes(), styleTag))}}
}

// wrongTags returns which tag of a point of the metric is wrong, or "". The contract: attributes of
// the point are "the extracted tags, except those with from: node or from: event". Switches leave
// attributes out.
func (e *environment) wrongTags(point pcommon.Map, c *Configured) string {
	for _, tag := range e.tagsOf(point, c) {
		if tag.from != fromNamespace {
			tag.want = ""
		}
		if got := text(point, tag.name); got != "" && got != tag.want {
			return fmt.Sprintf("with %s %q", tag.name, got)
		}
	}
	for _, name := range append([]string{appTag, styleTag}, c.Without...) {
		if got := text(point, name); got != "" {
			return fmt.Sprintf("with %s %q", name, got)
		}
	}
	return ""
}
