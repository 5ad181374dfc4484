// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
			e, err := New(tt.labels, tt.annotations)
			require.NoError(t, err)
			assert.Equal(t, append([]Tag{}, tt.want...), append([]Tag{}, e.Tags(chain)...))
		})
	}
}

func TestKeepsOnlyWhatARuleWants(t *testing.T) {
	e, err := New([]Rule{{Key: "app"}, {KeyRegex: "x-.*"}}, []Rule{{Key: "note"}})
	require.NoError(t, err)
	assert.True(t, e.KeepLabel("app"))
	assert.True(t, e.KeepLabel("x-1"))
	assert.False(t, e.KeepLabel("note"))
	assert.True(t, e.KeepAnnotation("note"))
	assert.False(t, e.KeepAnnotation("app"))
}

func TestErrorsNameTheRule(t *testing.T) {
	_, err := New(
		[]Rule{{Key: "ok"}, {TagName: "none"}, {Key: "a", KeyRegex: "b"}, {KeyRegex: "("}, {TagName: "k8s.owner.chain", Key: "a"}},
		[]Rule{{Key: "a", From: "not a kind"}},
	)
	require.ErrorContains(t, err, `labels[1]: key is "" and key_regex is ""; set exactly one of them`)
	require.ErrorContains(t, err, `labels[2]: key is "a" and key_regex is "b"; set exactly one of them`)
	require.ErrorContains(t, err, `labels[3].key_regex: "(" is not a valid regular expression`)
	require.ErrorContains(t, err, `labels[4].tag_name: "k8s.owner.chain" is an attribute of the receiver itself; choose another name`)
	require.ErrorContains(t, err, `annotations[0].from: "not a kind" is neither "nearest" nor a kind`)
}

func TestANameRefersToGroupsThatThereAre(t *testing.T) {
	for name, missing := range map[string]string{
		"x.$1": "", "x.${1}_y": "", "x.$part": "", "$$2": "", "cost$": "", "x.$0": "",
		"x.$1_y": "1_y", "x.$2": "2", "x.${other}": "other",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New([]Rule{{TagName: name, KeyRegex: "x-(?P<part>.*)"}}, nil)
			if missing == "" {
				require.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, `labels[0].tag_name: "`+name+`" names the group "`+missing+`", which key_regex "x-(?P<part>.*)" does not have`)
		})
	}
}
