// SPDX-License-Identifier: Apache-2.0

// Package extract takes labels and annotations of the objects of an owner chain as resource
// attributes ("tags"). Its rules have the form of the k8sattributes processor's rules.
package extract

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Nearest is the From that takes the first object up the chain that has the key.
const Nearest = "nearest"

// Rule is one rule in a user's configuration.
type Rule struct {
	// TagName may use $1 with KeyRegex. Empty: k8s.<kind>.label.<key> or
	// k8s.<kind>.annotation.<key>.
	TagName  string
	Key      string
	KeyRegex string // must match the whole key
	From     string // Nearest, empty (the same), or a kind: pod, rollout.argoproj.io
}

// Tag is a resource attribute taken from an object.
type Tag struct{ Name, Value string }

// Extractor applies compiled rules. It may be used concurrently.
type Extractor struct {
	labels, annotations []rule
}

type rule struct {
	tagName string
	key     string
	regex   *regexp.Regexp // nil: the key itself
	from    func(*resolver.Object) bool
	part    string // "label" or "annotation", for the default name
}

// New compiles rules. The error names each invalid rule, such as labels[0].key_regex.
func New(labels, annotations []Rule) (*Extractor, error) {
	l, errLabels := compile("labels", "label", labels)
	a, errAnnotations := compile("annotations", "annotation", annotations)
	return &Extractor{l, a}, errors.Join(errLabels, errAnnotations)
}

func compile(list, part string, rules []Rule) (compiled []rule, errs error) {
	for i, r := range rules {
		c, err := r.compile(part)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s[%d]%w", list, i, err))
		}
		compiled = append(compiled, c)
	}
	return compiled, errs
}

func (r Rule) compile(part string) (rule, error) {
	c := rule{tagName: r.TagName, key: r.Key, part: part}
	if semconv.Own(r.TagName) {
		return c, fmt.Errorf(".tag_name: %q is an attribute of the receiver itself; choose another name, or remove tag_name for k8s.<kind>.%s.<key>", r.TagName, part)
	}
	if (r.Key == "") == (r.KeyRegex == "") {
		return c, fmt.Errorf(": key is %q and key_regex is %q; set exactly one of them", r.Key, r.KeyRegex)
	}
	if r.KeyRegex != "" {
		regex, err := regexp.Compile("^(?:" + r.KeyRegex + ")$")
		if err != nil {
			return c, fmt.Errorf(".key_regex: %q is not a valid regular expression (%w); see https://pkg.go.dev/regexp/syntax", r.KeyRegex, err)
		}
		if missing := missingGroup(r.TagName, regex); missing != "" {
			return c, fmt.Errorf(".tag_name: %q names the group %q, which key_regex %q does not have; name one that it has: $1, or $${1} before a letter, digit or underscore", r.TagName, missing, r.KeyRegex)
		}
		c.regex = regex
	}
	from, err := kindMatcher(r.From)
	if err != nil {
		return c, err
	}
	c.from = from
	return c, nil
}

// groupName matches a reference to a group of a regular expression. $$ comes first, because it
// means a dollar sign.
var groupName = regexp.MustCompile(`\$\$|\$(\w+)|\$\{(\w+)\}`)

// missingGroup returns a group that the name refers to and the regular expression does not have. It
// would expand to nothing.
func missingGroup(name string, regex *regexp.Regexp) string {
	for _, reference := range groupName.FindAllStringSubmatch(name, -1) {
		group := reference[1] + reference[2]
		number, err := strconv.Atoi(group)
		if group != "" && (err != nil && regex.SubexpIndex(group) < 0 || err == nil && number > regex.NumSubexp()) {
			return group
		}
	}
	return ""
}

var kindForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*$`)

// kindMatcher returns which objects a rule applies to. For a bare kind that the conventions name,
// the group is the one that kubectl uses. Another bare kind may be of any group.
func kindMatcher(from string) (func(*resolver.Object) bool, error) {
	if from == "" || from == Nearest {
		return func(*resolver.Object) bool { return true }, nil
	}
	if !kindForm.MatchString(from) {
		return nil, fmt.Errorf(".from: %q is neither %q nor a kind such as pod, deployment or rollout.argoproj.io", from, Nearest)
	}
	kind, group, grouped := strings.Cut(from, ".")
	if !grouped {
		group, grouped = semconv.Group(kind)
	}
	return func(o *resolver.Object) bool {
		return strings.EqualFold(o.Kind, kind) && (!grouped || strings.EqualFold(o.GroupKind().Group, group))
	}, nil
}

// KeepLabel reports whether any rule uses a label with this key.
func (e *Extractor) KeepLabel(key string) bool { return anyMatches(e.labels, key) }

// KeepAnnotation reports whether any rule uses an annotation with this key.
func (e *Extractor) KeepAnnotation(key string) bool { return anyMatches(e.annotations, key) }

func anyMatches(rules []rule, key string) bool {
	return slices.ContainsFunc(rules, func(r rule) bool { return r.matches(key) })
}

func (r rule) matches(key string) bool {
	if r.regex != nil {
		return r.regex.MatchString(key)
	}
	return r.key == key
}

// Tags returns the tags of the objects of a chain, the nearest first. If two rules give the same
// name, the first rule that finds a value wins, so that a second rule can be a fallback. An empty
// value gives no tag.
func (e *Extractor) Tags(objects []*resolver.Object) []Tag {
	var tags []Tag
	for _, r := range e.labels {
		tags = r.append(tags, objects, labels)
	}
	for _, r := range e.annotations {
		tags = r.append(tags, objects, annotations)
	}
	return slices.DeleteFunc(tags, func(t Tag) bool { return t.Value == "" })
}

func labels(o *resolver.Object) map[string]string      { return o.Labels }
func annotations(o *resolver.Object) map[string]string { return o.Annotations }

func (r rule) append(tags []Tag, objects []*resolver.Object, values func(*resolver.Object) map[string]string) []Tag {
	for _, o := range objects {
		if !r.from(o) {
			continue
		}
		if r.regex != nil {
			tags = r.appendMatching(tags, o, values(o))
			continue
		}
		if value, ok := values(o)[r.key]; ok {
			return appendNew(tags, Tag{r.name(o, r.key), value})
		}
	}
	return tags
}

// appendMatching goes through the keys in order, so that two keys with the same name always give
// the same tag. A name from a key is only known here. If the receiver itself writes an attribute of
// this name, the key gives no tag.
func (r rule) appendMatching(tags []Tag, o *resolver.Object, values map[string]string) []Tag {
	if len(values) == 0 {
		return tags
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
			tags = appendNew(tags, Tag{name, values[key]})
		}
	}
	return tags
}

func (r rule) name(o *resolver.Object, key string) string {
	switch {
	case r.tagName == "":
		return "k8s." + strings.ToLower(o.Kind) + "." + r.part + "." + key
	case r.regex == nil:
		return r.tagName
	default:
		return string(r.regex.ExpandString(nil, r.tagName, key, r.regex.FindStringSubmatchIndex(key)))
	}
}

// appendNew appends the tag unless its name is already there.
func appendNew(tags []Tag, t Tag) []Tag {
	if slices.ContainsFunc(tags, func(have Tag) bool { return have.Name == t.Name }) {
		return tags
	}
	return append(tags, t)
}
