// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/internal/text"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Tag is an attribute taken from an object.
type Tag struct{ Name, Value string }

// newTag makes a tag of texts that may be put together from several ones.
func newTag(name, value string) Tag { return Tag{text.Value(name), text.Value(value)} }

// Tags are the tags of one event, by where they belong.
type Tags struct {
	Resource []Tag // of the log record's resource
	Record   []Tag // of the log record itself
	// Metric are those of the metric. Rules that take tags from the Node or from the Event do not
	// apply to it: series would not belong to a workload, but to a Node or an Event. Nor does it have
	// what names a service or a revision: two pods of a workload may differ in it. They are in the
	// order of their names: the same tags are the same series, wherever on the chain they are.
	Metric []Tag
}

// Sources are the objects that tags are taken from. nil: there is none, or it is not known.
type Sources struct {
	Chain     []*resolver.Object // the involved object and its owners
	Known     bool               // whether the involved object was read, and not only named by the Event
	Namespace *resolver.Object   // the Namespace of the involved object
	Node      *resolver.Object   // the Node that k8s.node.name names
	Event     *resolver.Object   // the Event itself
	Container string             // the container that the Event is about; empty: it names none
}

// Joined returns tags in a form that can be compared.
func Joined(tags []Tag) string {
	if len(tags) == 0 {
		return ""
	}
	var joined strings.Builder
	for _, tag := range tags {
		// An annotation's value may hold any character.
		joined.WriteString(strconv.Itoa(len(tag.Name)) + " " + strconv.Itoa(len(tag.Value)) + " " + tag.Name + tag.Value)
	}
	return joined.String()
}

// Tags returns the tags that the rules find. If two rules give the same name, the first rule that
// finds a value wins, so that a second rule can be a fallback. An empty value gives no tag. The rules
// come before what names the service, so that a rule can give it another name. In the list, tags that
// key_regex matches are the last ones: a record has room for a number of tags only.
func (e *Extractor) Tags(from Sources) Tags {
	var all found
	all.apply(e.rules, from)
	tags := Tags{Metric: all.ofMetric()}
	if e.inMetric != nil {
		inMetric := found{inMetric: true}
		inMetric.apply(e.inMetric, from)
		tags.Metric = inMetric.ofMetric()
	}
	e.service.find(from, &all)
	tags.Resource, tags.Record = all.resource.inOrder(), all.record.inOrder()
	return tags
}

// byName returns the tags in the order of their names.
func byName(tags []Tag) []Tag {
	compare := func(a, b Tag) int { return strings.Compare(a.Name, b.Name) }
	if slices.IsSortedFunc(tags, compare) {
		return tags
	}
	return slices.SortedFunc(slices.Values(tags), compare)
}

func withValues(tags []Tag) []Tag {
	return slices.DeleteFunc(tags, func(t Tag) bool { return t.Value == "" })
}

// found are the tags so far. Their names are distinct.
type found struct {
	resource, record tagList
	// inMetric is set if the tags are for the metric, and so must not tell revisions apart.
	inMetric bool
}

// tagList has tags, the most important ones first: what names the service, the keys that a rule
// names, and what key_regex matches.
type tagList struct{ service, named, matched []Tag }

func (l *tagList) has(name string) bool {
	isSame := func(t Tag) bool { return t.Name == name }
	return slices.ContainsFunc(l.service, isSame) || slices.ContainsFunc(l.named, isSame) || slices.ContainsFunc(l.matched, isSame)
}

func (l *tagList) inOrder() []Tag {
	return withValues(slices.Concat(l.service, l.named, l.matched))
}

func (f *found) ofMetric() []Tag { return byName(f.resource.inOrder()) }

func (f *found) apply(rules []rule, from Sources) {
	for _, r := range rules {
		r.find(from, f)
	}
}

// add adds the tag unless its name is already there.
func (f *found) add(t Tag, origin string, isMatched bool) {
	if f.resource.has(t.Name) || f.record.has(t.Name) {
		return
	}
	list := &f.resource
	if origin == FromEvent {
		list = &f.record
	}
	switch {
	case isMatched && !slices.Contains(serviceAttributes, t.Name):
		if len(list.matched) < text.MaxEntries { // It may match the keys of many objects on a chain.
			list.matched = append(list.matched, t)
		}
	case origin == involved:
		list.service = append(list.service, t)
	default:
		list.named = append(list.named, t)
	}
}

func (r rule) find(from Sources, f *found) {
	switch r.origin {
	case FromNamespace:
		r.findIn(from.Namespace, f)
	case FromNode:
		r.findIn(from.Node, f)
	case FromEvent:
		r.findIn(from.Event, f)
	case involved:
		r.findIn(from.Chain[0], f)
	default:
		for _, o := range from.Chain {
			if r.origin == "" && !r.kind.Matches(o.GroupKind()) {
				continue
			}
			if done := r.findIn(o, f); done {
				return
			}
		}
	}
}

// findIn adds the tags of one object. It reports whether the rule is done, because it is about one
// key and the object has it.
func (r rule) findIn(o *resolver.Object, f *found) (done bool) {
	if o == nil {
		return false
	}
	if r.regex != nil {
		r.findMatching(o, f)
		return false
	}
	value, ok := r.part.entries(o)[r.key]
	if ok && (!f.inMetric || !r.tellsRevisions(r.key)) {
		f.add(newTag(r.name(o, r.key), value), r.origin, false)
	}
	return ok
}

// findMatching goes through the keys in order, so that two keys with the same name always give the
// same tag. A name from a key is only known here. If the receiver itself writes an attribute of
// this name, the key gives no tag.
func (r rule) findMatching(o *resolver.Object, f *found) {
	values := r.part.entries(o)
	if len(values) == 0 {
		return
	}
	keys := make([]string, 0, len(values))
	for key := range values {
		if r.regex.MatchString(key) && (!f.inMetric || !r.tellsRevisions(key)) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if tag := newTag(r.name(o, key), values[key]); !semconv.Own(tag.Name) {
			f.add(tag, r.origin, true)
		}
	}
}

// tellsRevisions reports whether the rule takes a label that tells the revisions, the pods or the runs
// of a workload apart without giving it a name. As an attribute of the metric, it would begin a series
// with each of them. A rule with a tag_name asks for this.
func (r rule) tellsRevisions(key string) bool {
	return r.part == label && r.tagName == "" && slices.Contains(revisionLabels, key)
}

// revisionLabels are the labels that Kubernetes' controllers, and that of Argo Rollouts, write on
// the pods of a revision or of a run, and on single pods.
var revisionLabels = []string{
	"controller-revision-hash", "pod-template-generation", podTemplateHash, "rollouts-pod-template-hash",
	"job-name", "controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid",
	"batch.kubernetes.io/job-completion-index", "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index",
}

func (r rule) name(o *resolver.Object, key string) string {
	switch {
	case r.tagName == "":
		return "k8s." + strings.ToLower(o.Kind) + "." + string(r.part) + "." + key
	case r.regex == nil:
		return r.tagName
	default:
		return string(r.regex.ExpandString(nil, r.tagName, key, r.regex.FindStringSubmatchIndex(key)))
	}
}
