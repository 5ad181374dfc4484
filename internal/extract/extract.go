// SPDX-License-Identifier: Apache-2.0

// Package extract takes labels and annotations of objects as attributes ("tags"): of the objects of
// an owner chain, of the Namespace, of the Node, and of the Event itself. Its rules have the form
// of the k8sattributes processor's rules. It also names the service that an event is about, as this
// processor does.
package extract

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubeevents/kubeeventsreceiver/internal/kind"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// These values of From are not kinds on the chain.
const (
	FromNearest   = "nearest"   // the first object up the chain that has the key
	FromNamespace = "namespace" // the Namespace of the involved object
	FromNode      = "node"      // the Node that k8s.node.name names
	FromEvent     = "event"     // the Event itself; the tag is an attribute of the record
)

// Rule is one rule in a user's configuration.
type Rule struct {
	// TagName is the attribute, other than those that the receiver writes itself; with KeyRegex it
	// may use $1. Empty means k8s.<kind>.label.<key> or k8s.<kind>.annotation.<key>.
	TagName string `mapstructure:"tag_name"`
	// Key is the key to extract. Either this or KeyRegex is set.
	Key string `mapstructure:"key"`
	// KeyRegex must match the whole key.
	KeyRegex string `mapstructure:"key_regex"`
	// From is nearest (also when empty), the first object up the chain that has it; a kind such as
	// pod, deployment or rollout.argoproj.io; namespace, the Namespace of the involved object;
	// node, the Node that k8s.node.name names; or event, the Event itself, whose tags are
	// attributes of the record. All of them may be in any case.
	From string `mapstructure:"from"`
}

// Config has what a user configures. The processor kube_owners has the same options.
type Config struct {
	// Metadata lists the attributes of the service that records have: service.name and
	// service.namespace (the default), service.version, service.instance.id.
	Metadata []string `mapstructure:"metadata"`
	// OTelAnnotations makes the attribute NAME from each annotation resource.opentelemetry.io/NAME
	// of the involved object. Default: true.
	OTelAnnotations bool `mapstructure:"otel_annotations"`
	// Labels has the rules for labels. A list replaces the default, which extracts tilt-manifest as
	// tilt.manifest.
	Labels []Rule `mapstructure:"labels"`
	// Annotations has the rules for annotations. Default: none.
	Annotations []Rule `mapstructure:"annotations"`
}

// DefaultLabels returns the rules for labels without a configuration.
func DefaultLabels() []Rule { return []Rule{{TagName: "tilt.manifest", Key: "tilt-manifest"}} }

// Compile compiles the rules. The error names the whole key of each invalid one.
func (c Config) Compile() (*Extractor, error) { return c.compile(false) }

// CompileWithoutEvents is Compile for data that is not about an Event: no rule may take a tag from one.
func (c Config) CompileWithoutEvents() (*Extractor, error) { return c.compile(true) }

func (c Config) compile(withoutEvents bool) (*Extractor, error) {
	e, err := New(Settings{
		Labels:        c.Labels,
		Annotations:   c.Annotations,
		Service:       Service{Metadata: c.Metadata, OTelAnnotations: c.OTelAnnotations},
		WithoutEvents: withoutEvents,
	})
	if err != nil {
		return nil, errors.New("extract." + strings.ReplaceAll(err.Error(), "\n", "\nextract."))
	}
	return e, nil
}

// originOf returns one of the constants; empty: a kind.
func originOf(from string) string {
	for _, origin := range []string{FromNearest, FromNamespace, FromNode, FromEvent} {
		if strings.EqualFold(from, origin) {
			return origin
		}
	}
	if from == "" {
		return FromNearest
	}
	return ""
}

// Settings has the rules of the user.
type Settings struct {
	Labels, Annotations []Rule
	Service             Service
	WithoutEvents       bool
}

// Extractor applies compiled rules. It may be used concurrently.
type Extractor struct {
	rules    []rule // those for labels come first
	inMetric []rule // those for the tags of the metric; nil: it has the tags of all rules
	service  service
	uses     Uses
}

// Uses are the objects outside the chain that tags are taken from, and whether tags depend on the
// container that an event is about.
type Uses struct{ Namespace, Node, Event, Container bool }

type rule struct {
	tagName string
	key     string
	regex   *regexp.Regexp // nil: the key itself
	origin  string         // as originOf returns it
	kind    kind.Pattern   // of the objects on the chain; only without an origin
	part    part
}

// part is the part of an object's metadata that a rule reads, as names of tags have it.
type part string

const (
	label      part = "label"
	annotation part = "annotation"
)

func (p part) entries(o *resolver.Object) map[string]string {
	if p == label {
		return o.Labels
	}
	return o.Annotations
}

// New compiles rules. The error names each invalid one, such as labels[0].key_regex.
func New(settings Settings) (*Extractor, error) {
	labels, errLabels := settings.compile("labels", label, settings.Labels)
	annotations, errAnnotations := settings.compile("annotations", annotation, settings.Annotations)
	service, errService := settings.Service.compile()
	e := &Extractor{rules: slices.Concat(labels, annotations), service: service}
	for _, r := range e.rules {
		e.uses.Namespace = e.uses.Namespace || r.origin == FromNamespace
		e.uses.Node = e.uses.Node || r.origin == FromNode
		e.uses.Event = e.uses.Event || r.origin == FromEvent
	}
	e.uses.Container = service.has[InstanceID]
	tellsRevisions := slices.ContainsFunc(e.rules, func(r rule) bool {
		return slices.ContainsFunc(revisionLabels, func(key string) bool { return r.matches(key) && r.tellsRevisions(key) })
	})
	if e.uses.Node || e.uses.Event || tellsRevisions {
		e.inMetric = slices.DeleteFunc(slices.Clone(e.rules), func(r rule) bool { return r.origin == FromNode || r.origin == FromEvent })
	}
	return e, errors.Join(errLabels, errAnnotations, errService)
}

// Uses returns what tags depend on in addition to the chain.
func (e *Extractor) Uses() Uses { return e.uses }

func (s Settings) compile(list string, from part, rules []Rule) (compiled []rule, errs error) {
	for i, r := range rules {
		c, err := r.compile(from, s.WithoutEvents)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s[%d]%w", list, i, err))
		}
		compiled = append(compiled, c)
	}
	return compiled, errs
}

func (r Rule) compile(from part, withoutEvents bool) (rule, error) {
	c := rule{tagName: r.TagName, key: r.Key, part: from, origin: originOf(r.From)}
	if semconv.Own(r.TagName) {
		return c, fmt.Errorf(".tag_name: %q is an attribute of this component itself; choose another name, or remove tag_name for k8s.<kind>.%s.<key>", r.TagName, from)
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
	if c.origin == FromEvent && withoutEvents {
		return c, fmt.Errorf(".from: %q is possible only in the receiver kube_events; use a kind, nearest, namespace or node", r.From)
	}
	if c.origin != "" {
		return c, nil
	}
	var err error
	if c.kind, err = kind.Parse(r.From); err != nil && withoutEvents {
		err = fmt.Errorf(".from: %w; other values are nearest, namespace and node", err)
	} else if err != nil {
		err = fmt.Errorf(".from: %w; other values are nearest, namespace, node and event", err)
	}
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

// KeepLabel reports whether a label of this key of an object that is looked up is used.
func (e *Extractor) KeepLabel(key string) bool { return e.keeps(label, key) }

// KeepAnnotation reports whether an annotation of this key of an object that is looked up is used.
func (e *Extractor) KeepAnnotation(key string) bool { return e.keeps(annotation, key) }

// KeepFirst reports whether a rule names a label or an annotation of this key, or the service or the
// trace of a record needs it. What key_regex matches must not displace it.
func (e *Extractor) KeepFirst(key string) bool {
	isNamed := func(r rule) bool { return r.origin != FromEvent && r.regex == nil && r.key == key }
	return slices.ContainsFunc(e.rules, isNamed) || slices.ContainsFunc(e.service.rules, isNamed) ||
		key == podTemplateHash || key == Traceparent || strings.HasPrefix(key, otelAnnotation)
}

// KeepEventLabel reports whether a label of this key of Events is used.
func (e *Extractor) KeepEventLabel(key string) bool { return e.keepsOfEvent(label, key) }

// KeepEventAnnotation reports whether an annotation of this key of Events is used.
func (e *Extractor) KeepEventAnnotation(key string) bool { return e.keepsOfEvent(annotation, key) }

func (e *Extractor) keeps(part part, key string) bool {
	return slices.ContainsFunc(e.rules, func(r rule) bool { return r.origin != FromEvent && r.part == part && r.matches(key) }) ||
		slices.ContainsFunc(e.service.rules, func(r rule) bool { return r.part == part && r.matches(key) }) ||
		key == alwaysKept[part]
}

func (e *Extractor) keepsOfEvent(part part, key string) bool {
	return slices.ContainsFunc(e.rules, func(r rule) bool { return r.origin == FromEvent && r.part == part && r.matches(key) })
}

func (r rule) matches(key string) bool {
	if r.regex != nil {
		return r.regex.MatchString(key)
	}
	return r.key == key
}
