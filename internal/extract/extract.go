// SPDX-License-Identifier: Apache-2.0

// Package extract takes labels and annotations of objects as attributes ("tags"): of the objects of
// an owner chain, of the Namespace, of the Node, and of the Event itself. Its rules have the form
// of the k8sattributes processor's rules.
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

// These values of From are not kinds on the chain.
const (
	Nearest   = "nearest"   // the first object up the chain that has the key
	Namespace = "namespace" // the Namespace of the involved object
	Node      = "node"      // the Node that k8s.node.name names
	Event     = "event"     // the Event itself; the tag is an attribute of the record
)

// Rule is one rule in a user's configuration.
type Rule struct {
	// TagName may use $1 with KeyRegex. Empty: k8s.<kind>.label.<key> or
	// k8s.<kind>.annotation.<key>.
	TagName  string
	Key      string
	KeyRegex string // must match the whole key
	From     string // one of the constants in any case, empty (Nearest), or a kind: pod, rollout.argoproj.io
}

// IsFrom reports whether the rule takes tags from an origin: one of the constants.
func (r Rule) IsFrom(origin string) bool { return originOf(r.From) == origin }

// originOf returns one of the constants; empty: a kind.
func originOf(from string) string {
	for _, origin := range []string{Nearest, Namespace, Node, Event} {
		if strings.EqualFold(from, origin) {
			return origin
		}
	}
	if from == "" {
		return Nearest
	}
	return ""
}

// Extractor applies compiled rules. It may be used concurrently.
type Extractor struct {
	labels, annotations []rule
	inMetric            []rule // of both, those whose tags the metric has
	uses                Uses
}

// Uses are the objects outside the chain that rules take tags from.
type Uses struct{ Namespace, Node, Event bool }

type rule struct {
	tagName string
	key     string
	regex   *regexp.Regexp // nil: the key itself
	origin  string         // as originOf returns it
	isKind  func(*resolver.Object) bool
	part    part
}

// part is the part of an object's metadata that a rule reads, as names of tags have it.
type part string

const (
	label      part = "label"
	annotation part = "annotation"
)

func (p part) of(o *resolver.Object) map[string]string {
	if p == label {
		return o.Labels
	}
	return o.Annotations
}

// New compiles rules. The error names each invalid rule, such as labels[0].key_regex.
func New(labels, annotations []Rule) (*Extractor, error) {
	l, errLabels := compile("labels", label, labels)
	a, errAnnotations := compile("annotations", annotation, annotations)
	e := &Extractor{labels: l, annotations: a}
	for _, r := range slices.Concat(l, a) {
		e.uses.Namespace = e.uses.Namespace || r.origin == Namespace
		e.uses.Node = e.uses.Node || r.origin == Node
		e.uses.Event = e.uses.Event || r.origin == Event
		if r.origin != Node && r.origin != Event {
			e.inMetric = append(e.inMetric, r)
		}
	}
	return e, errors.Join(errLabels, errAnnotations)
}

// Uses returns the objects outside the chain that rules take tags from.
func (e *Extractor) Uses() Uses { return e.uses }

func compile(list string, of part, rules []Rule) (compiled []rule, errs error) {
	for i, r := range rules {
		c, err := r.compile(of)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s[%d]%w", list, i, err))
		}
		compiled = append(compiled, c)
	}
	return compiled, errs
}

func (r Rule) compile(of part) (rule, error) {
	c := rule{tagName: r.TagName, key: r.Key, part: of, origin: originOf(r.From)}
	if semconv.Own(r.TagName) {
		return c, fmt.Errorf(".tag_name: %q is an attribute of the receiver itself; choose another name, or remove tag_name for k8s.<kind>.%s.<key>", r.TagName, of)
	}
	if (r.Key == "") == (r.KeyRegex == "") {
		return c, fmt.Errorf(": key is %q and key_regex is %q; set exactly one of them", r.Key, r.KeyRegex)
	}
	if r.KeyRegex != "" {
		// The rule's own text must be valid, so that it cannot close the group around it.
		if _, err := regexp.Compile(r.KeyRegex); err != nil {
			return c, fmt.Errorf(".key_regex: %q is not a valid regular expression (%w); see https://pkg.go.dev/regexp/syntax", r.KeyRegex, err)
		}
		regex := regexp.MustCompile("^(?:" + r.KeyRegex + ")$")
		if missing := missingGroup(r.TagName, regex); missing != "" {
			return c, fmt.Errorf(".tag_name: %q names the group %q, which key_regex %q does not have; name one that it has: $1, or $${1} before a letter, digit or underscore", r.TagName, missing, r.KeyRegex)
		}
		c.regex = regex
	}
	if c.origin != "" {
		return c, nil
	}
	var err error
	c.isKind, err = kindMatcher(r.From)
	return c, err
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
	if !kindForm.MatchString(from) {
		return nil, fmt.Errorf(".from: %q is neither %q, %q, %q, %q nor a kind such as pod, deployment or rollout.argoproj.io", from, Nearest, Namespace, Node, Event)
	}
	kind, group, grouped := strings.Cut(from, ".")
	if !grouped {
		group, grouped = semconv.Group(kind)
	}
	return func(o *resolver.Object) bool {
		return strings.EqualFold(o.Kind, kind) && (!grouped || strings.EqualFold(o.GroupKind().Group, group))
	}, nil
}

// KeepLabel reports whether any rule uses a label of this key of an object that is looked up.
func (e *Extractor) KeepLabel(key string) bool { return anyKeeps(e.labels, key) }

// KeepAnnotation reports whether any rule uses an annotation of this key of an object that is
// looked up.
func (e *Extractor) KeepAnnotation(key string) bool { return anyKeeps(e.annotations, key) }

func anyKeeps(rules []rule, key string) bool {
	return slices.ContainsFunc(rules, func(r rule) bool { return r.origin != Event && r.matches(key) })
}

func (r rule) matches(key string) bool {
	if r.regex != nil {
		return r.regex.MatchString(key)
	}
	return r.key == key
}
