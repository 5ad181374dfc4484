// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// tagsOf are the attributes of the resource that are not the receiver's own.
func tagsOf(r record) map[string]any {
	tags := maps.Clone(r.resource)
	maps.DeleteFunc(tags, func(key string, _ any) bool { return strings.HasPrefix(key, "k8s.") })
	return tags
}

func TestExtract(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	rollout := c.make(t, ns, c.definedRollout(t), "Rollout", "canary",
		labelled("tilt-manifest", "rollout", "team/owner", "top", "only-top", "yes"), annotated("note/why", "because"))
	deployment := c.make(t, ns, "apps/v1", "Deployment", "fe", controlledBy(rollout),
		labelled("tilt-manifest", "deployment", "team/owner", "middle", "team/size", "5", "empty", ""), annotated("note/how", "carefully", "note/why", "nearer"))
	pod := c.make(t, ns, "v1", "Pod", "fe-a", controlledBy(deployment), labelled("team/owner", "bottom", "app", "fe"))

	for name, test := range map[string]struct {
		config string
		want   map[string]any
	}{
		"the default: tilt.manifest of the nearest that has it": {
			"", map[string]any{"tilt.manifest": "deployment"},
		},
		"annotations leave the default for labels alone": {
			"extract: {annotations: [{tag_name: why, key: note/why}]}",
			map[string]any{"tilt.manifest": "deployment", "why": "nearer"},
		},
		"labels replace the default": {
			"extract: {labels: [{tag_name: app, key: app}]}", map[string]any{"app": "fe"},
		},
		"no labels, no default": {
			"extract: {labels: []}", map[string]any{},
		},
		"nearest is the involved object itself": {
			"extract: {labels: [{tag_name: owner, key: team/owner, from: nearest}]}", map[string]any{"owner": "bottom"},
		},
		"nearest goes up to the end": {
			"extract: {labels: [{tag_name: top, key: only-top}]}", map[string]any{"top": "yes"},
		},
		"from a kind": {
			"extract: {labels: [{tag_name: owner, key: team/owner, from: deployment}]}", map[string]any{"owner": "middle"},
		},
		"from a kind in any case": {
			"extract: {labels: [{tag_name: owner, key: team/owner, from: Deployment}, {tag_name: pod, key: app, from: POD}]}",
			map[string]any{"owner": "middle", "pod": "fe"},
		},
		"from a kind of a group": {
			"extract: {labels: [{tag_name: owner, key: team/owner, from: rollout.rollouts.example.com}]}", map[string]any{"owner": "top"},
		},
		"from a kind of a group in any case": {
			"extract: {labels: [{tag_name: owner, key: team/owner, from: Rollout.Rollouts.example.com}]}", map[string]any{"owner": "top"},
		},
		"from a kind of another group": {
			"extract: {labels: [{tag_name: owner, key: team/owner, from: deployment.example.com}]}", map[string]any{},
		},
		"from a kind that is not on the chain": {
			"extract: {labels: [{tag_name: owner, key: team/owner, from: statefulset}]}", map[string]any{},
		},
		"from a kind that has not the key": {
			"extract: {labels: [{tag_name: top, key: only-top, from: pod}]}", map[string]any{},
		},
		"a regular expression names the tag": {
			"extract: {labels: [{tag_name: team.$1, key_regex: team/(.*)}]}", map[string]any{"team.owner": "bottom", "team.size": "5"},
		},
		"a regular expression from a kind": {
			"extract: {labels: [{tag_name: team.$1, key_regex: team/(.*), from: rollout.rollouts.example.com}]}", map[string]any{"team.owner": "top"},
		},
		"a regular expression matches the whole key": {
			"extract: {labels: [{tag_name: any, key_regex: owner}]}", map[string]any{},
		},
		"annotations by a regular expression": {
			"extract: {labels: [], annotations: [{tag_name: note.$1, key_regex: note/(.*)}]}", map[string]any{"note.how": "carefully", "note.why": "nearer"},
		},
		"an empty value is left out": {
			"extract: {labels: [{tag_name: empty, key: empty}]}", map[string]any{},
		},
		"owners switched off: no tags": {
			"owners: {enabled: false}", map[string]any{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := ns
			r := c.run(t, in(ns), test.config)
			rec := r.of(t, c.makeEvent(t, ns, eventAbout("Tagged", referenceTo(pod))).Name)
			assert.Equal(t, test.want, tagsOf(rec))
			// The metric's resource has them as well, which is checked for every test.
		})
	}
}

// definedRollout makes a kind that Argo's look-alikes have, in a group that the test's rules can
// name.
func (c *cluster) definedRollout(t *testing.T) (apiVersion string) {
	t.Helper()
	c.defineIn(t, "rollouts.example.com", "Rollout", "Namespaced")
	return "rollouts.example.com/v1"
}

// TestALabelThatChangesIsReadAgain: what is known of an object is refreshed on its next use after
// cache_ttl.
func TestALabelThatChangesIsReadAgain(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	r := c.run(t, in(ns), "owners: {cache_ttl: 300ms}")
	deployment := c.make(t, ns, "apps/v1", "Deployment", "fe", labelled("tilt-manifest", "before"))
	tag := func() string {
		return r.of(t, c.makeEvent(t, ns, eventAbout("Tagged", referenceTo(deployment))).Name).text("tilt.manifest")
	}
	assert.Equal(t, "before", tag())
	deployment.SetLabels(map[string]string{"tilt-manifest": "after"})
	c.store(t, deployment)
	eventually(t, func() bool { return tag() == "after" }, "the new label")
}
