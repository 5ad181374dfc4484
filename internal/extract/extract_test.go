// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/internal/text"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

type values = map[string]string

var chain = []*resolver.Object{
	{APIVersion: "v1", Kind: "Pod", Labels: values{"app": "fe", "team": "pod-team"}, Annotations: values{"note": "pod"}},
	{APIVersion: "apps/v1", Kind: "ReplicaSet", Labels: values{"app": "fe"}},
	{APIVersion: "serving.knative.dev/v1", Kind: "Service", Labels: values{"owner": "knative"}},
	{APIVersion: "v1", Kind: "Service", Labels: values{"owner": "core"}},
	{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Labels: values{"namespace": "x", "tilt-manifest": "fe", "team": "web", "empty": ""}},
	{APIVersion: "apps/v1", Kind: "Deployment", Labels: values{"tilt-manifest": "outer", "x.io/b": "2", "x.io/a": "1"}},
}

func TestTags(t *testing.T) {
	tests := map[string]struct {
		labels, annotations []Rule
		want                []Tag
	}{
		"the nearest object that carries the label, wherever it sits": {
			labels: []Rule{{TagName: "tilt.manifest", Key: "tilt-manifest"}}, want: []Tag{{"tilt.manifest", "fe"}},
		},
		"the object itself is the nearest":                   {labels: []Rule{{TagName: "team", Key: "team", From: "nearest"}}, want: []Tag{{"team", "pod-team"}}},
		"from a kind, in any case":                           {labels: []Rule{{TagName: "m", Key: "tilt-manifest", From: "Deployment"}}, want: []Tag{{"m", "outer"}}},
		"from a kind of a group":                             {labels: []Rule{{TagName: "team", Key: "team", From: "rollout.Argoproj.io"}}, want: []Tag{{"team", "web"}}},
		"a custom kind needs no group":                       {labels: []Rule{{TagName: "team", Key: "team", From: "rollout"}}, want: []Tag{{"team", "web"}}},
		"a bare kind that Kubernetes has is Kubernetes' own": {labels: []Rule{{TagName: "o", Key: "owner", From: "service"}}, want: []Tag{{"o", "core"}}},
		"another group's kind of the same name":              {labels: []Rule{{TagName: "o", Key: "owner", From: "service.serving.knative.dev"}}, want: []Tag{{"o", "knative"}}},
		"a kind that is not on the chain":                    {labels: []Rule{{TagName: "o", Key: "owner", From: "cronjob"}}},
		"a regular expression names the tag": {
			labels: []Rule{{TagName: "x.$1", KeyRegex: `x\.io/(.*)`}}, want: []Tag{{"x.a", "1"}, {"x.b", "2"}},
		},
		"a regular expression gives no attribute of the receiver": {
			labels: []Rule{{TagName: "k8s.$1.name", KeyRegex: `(team|namespace)`}}, want: []Tag{{"k8s.team.name", "pod-team"}},
		},
		"a regular expression matches the whole key":  {labels: []Rule{{TagName: "x", KeyRegex: `x\.io`}}},
		"keys that give one name: the first in order": {labels: []Rule{{TagName: "x", KeyRegex: `x\.io/.*`}}, want: []Tag{{"x", "1"}}},
		"a second rule is a fallback": {
			labels: []Rule{{TagName: "service", Key: "app.kubernetes.io/name"}, {TagName: "service", Key: "app"}}, want: []Tag{{"service", "fe"}},
		},
		"the first rule that finds a value wins": {
			labels: []Rule{{TagName: "t", Key: "team"}, {TagName: "t", Key: "app"}}, want: []Tag{{"t", "pod-team"}},
		},
		"annotations":               {annotations: []Rule{{TagName: "note", Key: "note"}}, want: []Tag{{"note", "pod"}}},
		"an empty value is no tag":  {labels: []Rule{{TagName: "e", Key: "empty"}}},
		"a rule without a tag name": {labels: []Rule{{Key: "tilt-manifest"}}, annotations: []Rule{{Key: "note"}}, want: []Tag{{"k8s.rollout.label.tilt-manifest", "fe"}, {"k8s.pod.annotation.note", "pod"}}},
		"no rules":                  {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := New(Settings{Labels: tt.labels, Annotations: tt.annotations})
			require.NoError(t, err)
			got := e.Tags(Sources{Chain: chain})
			assert.Equal(t, Tags{Resource: tt.want, Metric: byName(tt.want)}, normalized(got))
		})
	}
}

// normalized has nil instead of empty lists.
func normalized(tags Tags) Tags {
	for _, list := range []*[]Tag{&tags.Resource, &tags.Record, &tags.Metric} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return tags
}

// shop are a pod's event, the Namespace and the Node.
var shop = Sources{
	Chain:     []*resolver.Object{{APIVersion: "v1", Kind: "Pod", Labels: values{"team": "pod-team", "app": "fe"}}},
	Namespace: &resolver.Object{APIVersion: "v1", Kind: "Namespace", Labels: values{"team": "shop", "tenant": "a", "x.io/b": "2", "x.io/a": "1"}, Annotations: values{"cost": "7"}},
	Node:      &resolver.Object{APIVersion: "v1", Kind: "Node", Labels: values{"zone": "z1", "team": "infra"}, Annotations: values{"rack": "r9", "cost": "8"}},
	Event:     &resolver.Object{APIVersion: "v1", Kind: "Event", Labels: values{"team": "ci", "reason": "x", "empty": ""}, Annotations: values{"by": "me", "x/run": "42"}},
}

func TestTagsFromOutsideTheChain(t *testing.T) {
	tests := map[string]struct {
		labels, annotations []Rule
		want                Tags
	}{
		"the Namespace's are in the metric, too": {
			labels: []Rule{{TagName: "tenant", Key: "tenant", From: "namespace"}},
			want:   Tags{Resource: []Tag{{"tenant", "a"}}, Metric: []Tag{{"tenant", "a"}}},
		},
		"the Node's are not": {
			labels: []Rule{{TagName: "zone", Key: "zone", From: "node"}}, want: Tags{Resource: []Tag{{"zone", "z1"}}},
		},
		"the Event's are attributes of the record alone": {
			labels: []Rule{{TagName: "team", Key: "team", From: "event"}}, want: Tags{Record: []Tag{{"team", "ci"}}},
		},
		"annotations": {
			annotations: []Rule{{TagName: "c", Key: "cost", From: "namespace"}, {TagName: "r", Key: "rack", From: "node"}, {TagName: "b", Key: "by", From: "event"}},
			want:        Tags{Resource: []Tag{{"c", "7"}, {"r", "r9"}}, Record: []Tag{{"b", "me"}}, Metric: []Tag{{"c", "7"}}},
		},
		"in any case": {
			labels: []Rule{{TagName: "t", Key: "tenant", From: "Namespace"}, {TagName: "z", Key: "zone", From: "NODE"}, {TagName: "e", Key: "team", From: "Event"}},
			want:   Tags{Resource: []Tag{{"t", "a"}, {"z", "z1"}}, Record: []Tag{{"e", "ci"}}, Metric: []Tag{{"t", "a"}}},
		},
		"the names of the conventions": {
			labels:      []Rule{{Key: "tenant", From: "namespace"}, {Key: "zone", From: "node"}, {Key: "reason", From: "event"}},
			annotations: []Rule{{Key: "cost", From: "namespace"}, {Key: "rack", From: "node"}, {Key: "by", From: "event"}},
			want: Tags{
				Resource: []Tag{{"k8s.namespace.label.tenant", "a"}, {"k8s.node.label.zone", "z1"}, {"k8s.namespace.annotation.cost", "7"}, {"k8s.node.annotation.rack", "r9"}},
				Record:   []Tag{{"k8s.event.label.reason", "x"}, {"k8s.event.annotation.by", "me"}},
				Metric:   []Tag{{"k8s.namespace.label.tenant", "a"}, {"k8s.namespace.annotation.cost", "7"}},
			},
		},
		"regular expressions": {
			labels:      []Rule{{TagName: "x.$1", KeyRegex: `x\.io/(.*)`, From: "namespace"}, {KeyRegex: "zo.*", From: "node"}},
			annotations: []Rule{{TagName: "ci.$1", KeyRegex: "x/(.*)", From: "event"}},
			want: Tags{
				Resource: []Tag{{"x.a", "1"}, {"x.b", "2"}, {"k8s.node.label.zone", "z1"}},
				Record:   []Tag{{"ci.run", "42"}}, Metric: []Tag{{"x.a", "1"}, {"x.b", "2"}},
			},
		},
		"a regular expression gives no attribute of records": {
			labels: []Rule{{TagName: "k8s.event.$1", KeyRegex: "(reason|team)", From: "event"}}, want: Tags{Record: []Tag{{"k8s.event.team", "ci"}}},
		},
		"a kind is not the Namespace or the Node, whatever group it names": {
			labels: []Rule{{TagName: "t", Key: "tenant", From: "namespace.example.com"}, {TagName: "z", Key: "zone", From: "node.example.com"}},
		},
		"nearest does not leave the chain": {labels: []Rule{{TagName: "tenant", Key: "tenant"}, {TagName: "zone", Key: "zone"}}},
		"an empty value is no tag":         {labels: []Rule{{TagName: "e", Key: "empty", From: "event"}}},
		"the Namespace as a fallback of the chain": {
			labels: []Rule{{TagName: "tenant", Key: "tenant"}, {TagName: "tenant", Key: "tenant", From: "namespace"}},
			want:   Tags{Resource: []Tag{{"tenant", "a"}}, Metric: []Tag{{"tenant", "a"}}},
		},
		"the first rule that finds a value wins, wherever it is from": {
			labels: []Rule{{TagName: "team", Key: "none", From: "event"}, {TagName: "team", Key: "team", From: "event"}, {TagName: "team", Key: "team", From: "node"}},
			want:   Tags{Record: []Tag{{"team", "ci"}}},
		},
		"the metric has the first of the rules that apply to it": {
			labels: []Rule{{TagName: "team", Key: "team", From: "node"}, {TagName: "team", Key: "team", From: "namespace"}, {TagName: "team", Key: "team"}},
			want:   Tags{Resource: []Tag{{"team", "infra"}}, Metric: []Tag{{"team", "shop"}}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := New(Settings{Labels: tt.labels, Annotations: tt.annotations})
			require.NoError(t, err)
			tt.want.Metric = byName(tt.want.Metric)
			assert.Equal(t, tt.want, normalized(e.Tags(shop)))
			// If they are not known, there are no tags of them.
			assert.Empty(t, normalized(e.Tags(Sources{Chain: shop.Chain[:0]})))
		})
	}
}

func TestWhatRulesUse(t *testing.T) {
	for name, tt := range map[string]struct {
		labels, annotations []Rule
		want                Uses
	}{
		"nothing outside the chain": {labels: []Rule{{Key: "a"}, {Key: "a", From: "pod"}}},
		"labels":                    {labels: []Rule{{Key: "a", From: "namespace"}}, want: Uses{Namespace: true}},
		"annotations":               {annotations: []Rule{{Key: "a", From: "Node"}, {Key: "a", From: "event"}}, want: Uses{Node: true, Event: true}},
		"what only the first rule uses": {labels: []Rule{
			{Key: "a", From: "namespace"}, {Key: "a", From: "node"}, {Key: "a", From: "event"}, {Key: "a"},
		}, want: Uses{Namespace: true, Node: true, Event: true}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := New(Settings{Labels: tt.labels, Annotations: tt.annotations})
			require.NoError(t, err)
			assert.Equal(t, tt.want, e.Uses())
		})
	}
}

func TestTagsWithOtherNamesOrValuesAreNotTheSame(t *testing.T) {
	assert.Empty(t, Joined(nil))
	one := []Tag{{"a", "b"}}
	assert.Equal(t, Joined(one), Joined([]Tag{{"a", "b"}}))
	for _, other := range [][]Tag{nil, {{"a", "c"}}, {{"b", "b"}}, {{"a", "b"}, {"a", "b"}}, {{"ab", ""}}} {
		assert.NotEqual(t, Joined(one), Joined(other))
	}
}

func TestKeepsOnlyWhatARuleWants(t *testing.T) {
	e, err := New(Settings{
		Labels:      []Rule{{Key: "app"}, {KeyRegex: "x-.*"}, {Key: "event's", From: "event"}, {Key: "zone", From: "node"}},
		Annotations: []Rule{{Key: "note"}},
	})
	require.NoError(t, err)
	assert.True(t, e.KeepLabel("app"))
	assert.True(t, e.KeepLabel("x-1"))
	assert.True(t, e.KeepLabel("zone"))
	assert.False(t, e.KeepLabel("note"))
	assert.False(t, e.KeepLabel("event's"), "an Event is not looked up")
	assert.True(t, e.KeepAnnotation("note"))
	assert.False(t, e.KeepAnnotation("app"))
}

func TestOfAnEventOnlyWhatItsRulesWantIsKept(t *testing.T) {
	e, err := New(Settings{
		Labels:      []Rule{{Key: "pipeline", From: "event"}, {Key: "app"}},
		Annotations: []Rule{{KeyRegex: "ci/.*", From: "event"}, {Key: "note", From: "node"}},
	})
	require.NoError(t, err)
	for key, want := range map[string][2]bool{ // of a label, of an annotation
		"pipeline": {true, false}, "ci/id": {false, true}, "app": {false, false}, "note": {false, false}, "other": {false, false},
	} {
		assert.Equal(t, want, [...]bool{e.KeepEventLabel(key), e.KeepEventAnnotation(key)}, key)
	}
}

func TestOfWhatNamesAServiceOnlyTheRightPartIsKept(t *testing.T) {
	e, err := New(Settings{Service: Service{Metadata: []string{ServiceName}, OTelAnnotations: true}})
	require.NoError(t, err)
	for key, want := range map[string][2]bool{ // of a label, of an annotation
		"app.kubernetes.io/name": {true, false}, "resource.opentelemetry.io/x": {false, true}, "other": {false, false},
	} {
		assert.Equal(t, want, [...]bool{e.KeepLabel(key), e.KeepAnnotation(key)}, key)
	}
}

// A value of an Event or a Node would split the series of a workload.
func TestAFallbackOfAnEventOrANodeIsTheValueOfTheMetric(t *testing.T) {
	for _, first := range []string{FromEvent, FromNode} {
		e, err := New(Settings{Labels: []Rule{{TagName: "team", Key: "team", From: first}, {TagName: "team", Key: "team"}}})
		require.NoError(t, err)
		other := &resolver.Object{APIVersion: "v1", Kind: first, Labels: values{"team": "of the " + first}}
		tags := e.Tags(Sources{Chain: chain, Known: true, Node: other, Event: other})
		assert.Equal(t, []Tag{{"team", "pod-team"}}, tags.Metric, first)
		assert.Equal(t, []Tag{{"team", "of the " + first}}, append(tags.Resource, tags.Record...), first)
	}
}

func TestErrorsNameTheRule(t *testing.T) {
	_, err := New(Settings{
		Labels:      []Rule{{Key: "ok"}, {TagName: "none"}, {Key: "a", KeyRegex: "b"}, {KeyRegex: "("}, {TagName: "k8s.owner.chain", Key: "a"}, {TagName: "k8s.event.reason", Key: "a", From: "event"}, {KeyRegex: "a)|(?:b"}},
		Annotations: []Rule{{Key: "a", From: "not a kind"}},
		Service:     Service{Metadata: []string{ServiceName, "k8s.pod.ip"}},
	})
	require.ErrorContains(t, err, `metadata[1]: "k8s.pod.ip" is not possible here; metadata takes only service.name, `)
	require.ErrorContains(t, err, `labels[1]: key is "" and key_regex is ""; set exactly one of them`)
	require.ErrorContains(t, err, `labels[2]: key is "a" and key_regex is "b"; set exactly one of them`)
	require.ErrorContains(t, err, `labels[3].key_regex: "(" is not a valid regular expression`)
	require.ErrorContains(t, err, `labels[6].key_regex: "a)|(?:b" is not a valid regular expression`)
	require.ErrorContains(t, err, `labels[4].tag_name: "k8s.owner.chain" is an attribute of this component itself; choose another name`)
	require.ErrorContains(t, err, `labels[5].tag_name: "k8s.event.reason" is an attribute of this component itself; choose another name`)
	require.ErrorContains(t, err, `annotations[0].from: "not a kind" is not a kind such as pod, deployment or rollout.argoproj.io; other values are nearest`)
}

func TestErrorsOfAConfigurationNameTheWholeKey(t *testing.T) {
	_, err := Config{Labels: []Rule{{Key: "a", KeyRegex: "b"}}, Annotations: []Rule{{}}}.Compile()
	require.ErrorContains(t, err, "extract.labels[0]: ")
	require.ErrorContains(t, err, "\nextract.annotations[0]: ")
	for _, compile := range []func(Config) (*Extractor, error){Config.Compile, Config.CompileWithoutEvents} {
		e, err := compile(Config{Labels: []Rule{{TagName: "team", Key: "team"}}, Annotations: []Rule{{TagName: "note", Key: "note"}}})
		require.NoError(t, err)
		assert.Equal(t, []string{"note", "team"}, names(e.Tags(Sources{Chain: chain}).Metric))
	}
	_, err = Config{Labels: []Rule{{Key: "team", From: "event"}}}.CompileWithoutEvents()
	require.ErrorContains(t, err, "extract.labels[0].from: ")
}

// TestWhatIsNoEventHasNoTagsOfOne: the processor has the same rules for data that is about no Event.
func TestWhatIsNoEventHasNoTagsOfOne(t *testing.T) {
	of := func(from string) Settings {
		return Settings{WithoutEvents: true, Labels: []Rule{{Key: "team", From: from}}}
	}
	_, err := New(of("event"))
	require.ErrorContains(t, err, `labels[0].from: "event" is possible only in the receiver kube_events; use a kind, nearest, namespace or node`)
	_, err = New(of("not a kind"))
	require.ErrorContains(t, err, "other values are nearest, namespace and node")
	for _, from := range []string{"", "nearest", "namespace", "node", "deployment"} {
		_, err = New(of(from))
		assert.NoError(t, err, from)
	}
}

func TestANameRefersToGroupsThatThereAre(t *testing.T) {
	for name, missing := range map[string]string{
		"x.$1": "", "x.${1}_y": "", "x.$part": "", "$$2": "", "cost$": "", "x.$0": "",
		"x.$1_y": "1_y", "x.$2": "2", "x.${other}": "other",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Settings{Labels: []Rule{{TagName: name, KeyRegex: "x-(?P<part>.*)"}}})
			if missing == "" {
				require.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, `labels[0].tag_name: "`+name+`" names the group "`+missing+`", which key_regex "x-(?P<part>.*)" does not have`)
		})
	}
}

func TestAKeyThatARuleNamesHasRoomWhateverARegexMatches(t *testing.T) {
	e, err := New(Settings{Labels: []Rule{{KeyRegex: "x-.*"}, {TagName: "named", Key: "named"}}})
	require.NoError(t, err)
	var chain []*resolver.Object
	for i := range 5 {
		o := &resolver.Object{APIVersion: "v1", Kind: fmt.Sprint("Kind", i), Labels: map[string]string{}}
		for j := range 100 {
			o.Labels[fmt.Sprint("x-", j)] = strings.Repeat("v", 63)
		}
		chain = append(chain, o)
	}
	chain[4].Labels["named"] = "value"
	tags := e.Tags(Sources{Chain: chain}).Resource
	assert.Contains(t, tags, Tag{"named", "value"})
	assert.Len(t, tags, text.MaxEntries+1)
}

func TestTheTagsOfTheMetricAreInTheOrderOfTheirNames(t *testing.T) {
	e, err := New(Settings{Labels: []Rule{{TagName: "team", Key: "team"}, {TagName: "app", Key: "app"}}})
	require.NoError(t, err)
	got := e.Tags(Sources{Chain: chain})
	assert.Equal(t, []string{"app", "team"}, names(got.Metric))
	assert.Equal(t, []string{"team", "app"}, names(got.Resource), "a record has those of the first rules first")
}

func TestLabelsThatTellRevisionsApartAreNotInTheMetric(t *testing.T) {
	pod := &resolver.Object{APIVersion: "v1", Kind: "Pod", Labels: map[string]string{
		"controller-revision-hash": "7f", "pod-template-hash": "7d9c", "pod-template-generation": "2", "rollouts-pod-template-hash": "a1", "team": "web",
	}}
	const revision, name = "k8s.pod.label.controller-revision-hash", "revision"
	for title, test := range map[string]struct {
		rule             Rule
		resource, metric []string
	}{
		"the key": {Rule{Key: "controller-revision-hash"}, []string{revision}, nil},
		"all keys": {
			Rule{KeyRegex: ".*"}, []string{revision, "k8s.pod.label.pod-template-generation", "k8s.pod.label.pod-template-hash", "k8s.pod.label.rollouts-pod-template-hash", "k8s.pod.label.team"},
			[]string{"k8s.pod.label.team"},
		},
		"a rule that asks for it by giving it a name": {Rule{TagName: name, Key: "controller-revision-hash"}, []string{name}, []string{name}},
	} {
		t.Run(title, func(t *testing.T) {
			e, err := New(Settings{Labels: []Rule{test.rule}})
			require.NoError(t, err)
			tags := e.Tags(Sources{Chain: []*resolver.Object{pod}, Known: true})
			assert.Equal(t, test.resource, names(tags.Resource))
			assert.Equal(t, test.metric, names(tags.Metric))
		})
	}
}

func names(tags []Tag) (names []string) {
	for _, tag := range tags {
		names = append(names, tag.Name)
	}
	return names
}

func TestTagsThatARegexMatchesAreTheLastOnes(t *testing.T) {
	e, err := New(Settings{
		Labels:      []Rule{{KeyRegex: "a.*"}, {Key: "z"}},
		Annotations: []Rule{{TagName: "y", Key: "y"}},
		Service:     Service{Metadata: []string{ServiceName}},
	})
	require.NoError(t, err)
	pod := &resolver.Object{
		APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web",
		Labels: map[string]string{"a1": "1", "a2": "2", "z": "3"}, Annotations: map[string]string{"y": "4"},
	}
	tags := e.Tags(Sources{Chain: []*resolver.Object{pod}, Known: true})
	assert.Equal(t, []string{"service.name", "k8s.pod.label.z", "y", "k8s.pod.label.a1", "k8s.pod.label.a2"}, names(tags.Resource))
}

func TestWhatARuleOrTheServiceNeedsIsKeptFirst(t *testing.T) {
	e, err := New(Settings{
		Labels: []Rule{{KeyRegex: ".*"}, {Key: "team"}, {Key: "run", From: FromEvent}}, Annotations: []Rule{{KeyRegex: ".*"}, {TagName: "owner", Key: "owner"}},
		Service: Service{Metadata: serviceAttributes, OTelAnnotations: true},
	})
	require.NoError(t, err)
	for key, want := range map[string]bool{
		"team": true, "owner": true, "app.kubernetes.io/instance": true, "pod-template-hash": true, "tracing.k8s.io/traceparent": true,
		"resource.opentelemetry.io/service.name": true, "other": false, "run": false,
	} {
		assert.Equal(t, want, e.KeepFirst(key), key)
	}
}

func TestTheNameOfAServiceFromAnAnnotationIsNoTagThatARegexMatches(t *testing.T) {
	e, err := New(Settings{Labels: []Rule{{KeyRegex: ".*"}}, Service: Service{Metadata: serviceAttributes, OTelAnnotations: true}})
	require.NoError(t, err)
	pod := &resolver.Object{
		APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web", Labels: map[string]string{"a": "1"},
		Annotations: map[string]string{"resource.opentelemetry.io/service.name": "cart", "resource.opentelemetry.io/team": "x"},
	}
	tags := e.Tags(Sources{Chain: []*resolver.Object{pod}, Known: true})
	assert.Equal(t, []string{"service.name", "service.namespace", "k8s.pod.label.a", "team"}, names(tags.Resource))
}
