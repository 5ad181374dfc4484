// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// tagsOf are the attributes of the resource that are not the receiver's own, nor the service's.
func tagsOf(r record) map[string]any { return tagsIn(r.resource) }

func tagsIn(attributes map[string]any) map[string]any {
	tags := maps.Clone(attributes)
	maps.DeleteFunc(tags, func(key string, _ any) bool {
		isNamedByConventions := strings.Contains(key, ".label.") || strings.Contains(key, ".annotation.")
		return strings.HasPrefix(key, "k8s.") && !isNamedByConventions || strings.HasPrefix(key, "service.") || key == "log.record.uid"
	})
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

// TestExtractFromOutsideTheChain: tags of the Namespace, of the Node and of the Event itself.
func TestExtractFromOutsideTheChain(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	namespace, err := c.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	require.NoError(t, err)
	namespace.Labels["team"], namespace.Labels["shared"] = "shop", "namespace"
	namespace.Annotations = map[string]string{"cost/center": "42"}
	_, err = c.CoreV1().Namespaces().Update(t.Context(), namespace, metav1.UpdateOptions{})
	require.NoError(t, err)
	node := c.make(t, "", "v1", "Node", unique("tagged"), labelled("zone", "z1", "shared", "node"), annotated("rack", "r9"))
	deployment := c.make(t, ns, "apps/v1", "Deployment", "fe", labelled("shared", "chain"))
	pod := c.make(t, ns, "v1", "Pod", "fe-a", controlledBy(deployment))
	tagged := func(involved *object) *corev1.Event {
		ev := eventAbout("Tagged", referenceTo(involved))
		ev.Source = corev1.EventSource{Component: "kubelet", Host: node.GetName()}
		ev.Labels, ev.Annotations = map[string]string{"run": "7", "shared": "event"}, map[string]string{"ci/job": "build"}
		return ev
	}
	const every = "extract: {labels: [{key: team, from: namespace}, {key: zone, from: node}, {key: run, from: event}], " +
		"annotations: [{key: cost/center, from: Namespace}, {key: rack, from: Node}, {key: ci/job, from: Event}]}"

	for name, test := range map[string]struct {
		config           string
		involved         *object
		resource, record map[string]any
	}{
		"the names of the conventions": {
			every, pod,
			map[string]any{
				"k8s.namespace.label.team": "shop", "k8s.namespace.annotation.cost/center": "42",
				"k8s.node.label.zone": "z1", "k8s.node.annotation.rack": "r9",
			},
			map[string]any{"k8s.event.label.run": "7", "k8s.event.annotation.ci/job": "build"},
		},
		"names and regular expressions": {
			"extract: {labels: [{tag_name: team, key: team, from: namespace}, {tag_name: node.$1, key_regex: (zone), from: node}], " +
				"annotations: [{tag_name: cost.$1, key_regex: cost/(.*), from: namespace}, {tag_name: event.$1, key_regex: ci/(.*), from: event}]}",
			pod, map[string]any{"team": "shop", "node.zone": "z1", "cost.center": "42"}, map[string]any{"event.job": "build"},
		},
		"the first rule that finds a value wins": {
			"extract: {labels: [{tag_name: shared, key: none, from: namespace}, {tag_name: shared, key: shared}, {tag_name: shared, key: shared, from: namespace}]}",
			pod, map[string]any{"shared": "chain"}, map[string]any{},
		},
		"a kubelet's event about another kind than a pod has no Node": {
			every, deployment, map[string]any{"k8s.namespace.label.team": "shop", "k8s.namespace.annotation.cost/center": "42"},
			map[string]any{"k8s.event.label.run": "7", "k8s.event.annotation.ci/job": "build"},
		},
		"owners switched off: only those of the Event": {
			every + "\nowners: {enabled: false}", pod, map[string]any{},
			map[string]any{"k8s.event.label.run": "7", "k8s.event.annotation.ci/job": "build"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.run(t, in(ns), test.config)
			rec := r.of(t, c.makeEvent(t, ns, tagged(test.involved)).Name)
			assert.Equal(t, test.resource, tagsOf(rec))
			assert.Equal(t, test.record, tagsIn(rec.attrs))
			// The metric has the Namespace's tags alone, which is checked for every test.
		})
	}

	t.Run("a Namespace and a Node are their own", func(t *testing.T) {
		t.Parallel()
		r := c.run(t, in("default"), every)
		about := func(involved corev1.ObjectReference) map[string]any {
			return tagsOf(r.of(t, c.makeEvent(t, "default", eventAbout("Own", involved)).Name))
		}
		assert.Equal(t, map[string]any{"k8s.namespace.label.team": "shop", "k8s.namespace.annotation.cost/center": "42"},
			about(corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: ns}))
		assert.Equal(t, map[string]any{"k8s.node.label.zone": "z1", "k8s.node.annotation.rack": "r9"},
			about(corev1.ObjectReference{Kind: "Node", Name: node.GetName(), UID: types.UID(node.GetName())}))
	})

	t.Run("without permission, only these tags are missing", func(t *testing.T) {
		t.Parallel()
		r := c.run(t, in(ns), every, c.restricted(t, eventsRule, readRule("", "pods"), readRule("apps", "deployments")))
		rec := r.of(t, c.makeEvent(t, ns, tagged(pod)).Name)
		assert.Empty(t, tagsOf(rec))
		assert.Equal(t, "complete", rec.resolution())
		assert.Equal(t, componentstatus.StatusOK, r.host.last().Status())
	})

	t.Run("a Role is enough for the Namespace", func(t *testing.T) {
		t.Parallel()
		r := c.run(t, in(ns), every, c.confinedTo(t, ns))
		rec := r.of(t, c.makeEvent(t, ns, tagged(pod)).Name)
		assert.Equal(t, "shop", rec.text("k8s.namespace.label.team"))
	})
}

// confinedTo is the line of configuration for an account that may read only this Namespace, by a
// Role in it, in addition to what owners need.
func (c *cluster) confinedTo(t *testing.T, ns string) string {
	t.Helper()
	name := unique("confined")
	kubeconfig, err := c.RestrictedKubeconfig(t.Context(), name, eventsRule, readRule("", "pods"), readRule("apps", "deployments"))
	require.NoError(t, err)
	_, err = c.RbacV1().Roles(ns).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.RbacV1().RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	eventually(t, func() bool {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		return err == nil
	}, "the Role applies")
	_, err = client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	return "kubeconfig: " + kubeconfig
}
