// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"slices"
	"strings"

	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Tag is an attribute taken from an object.
type Tag struct{ Name, Value string }

// Tags are the tags of one event, by where they belong.
type Tags struct {
	Resource []Tag // of the log record's resource
	Record   []Tag // of the log record itself
	// Metric are those of the metric's resource. Rules that take tags from the Node or from the
	// Event do not apply to the metric: series would not belong to a workload, but to a Node or an
	// Event.
	Metric []Tag
}

// Sources are the objects that tags are taken from. nil: there is none, or it is not known.
type Sources struct {
	Chain     []*resolver.Object // the involved object and its owners
	Namespace *resolver.Object   // the Namespace of the involved object
	Node      *resolver.Object   // the Node that k8s.node.name names
	Event     *resolver.Object   // the Event itself
}

// Joined returns tags in a form that can be compared.
func Joined(tags []Tag) string {
	if len(tags) == 0 {
		return ""
	}
	var joined strings.Builder
	for _, tag := range tags {
		// Neither a label nor its key can hold a NUL byte.
		joined.WriteString(tag.Name + "\x00" + tag.Value + "\x00")
	}
	return joined.String()
}

// Tags returns the tags that the rules find. If two rules give the same name, the first rule that
// finds a value wins, so that a second rule can be a fallback. An empty value gives no tag.
func (e *Extractor) Tags(from Sources) Tags {
	var all found
	all.apply(e.labels, from)
	all.apply(e.annotations, from)
	tags := Tags{Resource: withValues(all.resource), Record: withValues(all.record)}
	if tags.Metric = tags.Resource; e.uses.Node || e.uses.Event {
		var all found
		all.apply(e.inMetric, from)
		tags.Metric = withValues(all.resource)
	}
	return tags
}

func withValues(tags []Tag) []Tag {
	return slices.DeleteFunc(tags, func(t Tag) bool { return t.Value == "" })
}

// found are the tags so far. Their names are distinct.
type found struct{ resource, record []Tag }

func (f *found) apply(rules []rule, from Sources) {
	for _, r := range rules {
		r.find(from, f)
	}
}

// add adds the tag unless its name is already there.
func (f *found) add(t Tag, origin string) {
	sameName := func(have Tag) bool { return have.Name == t.Name }
	switch {
	case slices.ContainsFunc(f.resource, sameName) || slices.ContainsFunc(f.record, sameName):
	case origin == Event:
		f.record = append(f.record, t)
	default:
		f.resource = append(f.resource, t)
	}
}

func (r rule) find(from Sources, f *found) {
	switch r.origin {
	case Namespace:
		r.findIn(from.Namespace, f)
	case Node:
		r.findIn(from.Node, f)
	case Event:
		r.findIn(from.Event, f)
	default:
		for _, o := range from.Chain {
			if r.isKind != nil && !r.isKind(o) {
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
	value, ok := r.part.of(o)[r.key]
	if ok {
		f.add(Tag{r.name(o, r.key), value}, r.origin)
	}
	return ok
}

// findMatching goes through the keys in order, so that two keys with the same name always give the
// same tag. A name from a key is only known here. If the receiver itself writes an attribute of
// this name, the key gives no tag.
func (r rule) findMatching(o *resolver.Object, f *found) {
	values := r.part.of(o)
	if len(values) == 0 {
		return
	}
	keys := make([]string, 0, len(values))
	for key := range values {
		if r.regex.MatchString(key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if name := r.name(o, key); !semconv.Own(name) {
			f.add(Tag{name, values[key]}, r.origin)
		}
	}
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
