// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// ofTheCluster are the kinds that have no namespace.
var ofTheCluster = []string{
	"ingressclasses", "ipaddresses", "nodes", "persistentvolumes", "resourceslices", "servicecidrs", "storageclasses", "volumeattachments",
}

// alpha are the kinds that this version of Kubernetes serves only with a feature gate.
var alpha = []string{"podgroups", "workloads"}

// inOneNamespace leaves out of rules what is the cluster's. A Role permits reading its own
// Namespace, but no list of them.
func inOneNamespace(rules []rbacv1.PolicyRule) (left []rbacv1.PolicyRule) {
	for _, rule := range rules {
		rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(resource string) bool {
			return slices.Contains(ofTheCluster, resource)
		})
		if slices.Contains(rule.Resources, "namespaces") {
			rule.Verbs = []string{"get"}
		}
		if len(rule.Resources) > 0 {
			left = append(left, rule)
		}
	}
	return left
}

// role is the ClusterRole with a name.
func (m manifests) role(t *testing.T, name string) rbacv1.ClusterRole {
	t.Helper()
	for _, object := range m.of("ClusterRole") {
		if object.GetName() == name {
			return decoded[rbacv1.ClusterRole](t, object.Object)
		}
	}
	require.FailNow(t, "no ClusterRole "+name)
	return rbacv1.ClusterRole{}
}

func TestTheRulesAreDocumented(t *testing.T) {
	t.Parallel()
	rules := harness.DocumentedRules(t, "The whole cluster")
	for _, mode := range []string{"single", "ha", "stateless"} {
		assert.Equal(t, rules, install(t, "kube-events", endpoint, "mode="+mode).role(t, "kube-events").Rules)
	}
	for _, file := range []string{"collector.yaml", "ha.yaml"} {
		assert.Equal(t, rules, readManifests(t, "operator/"+file).role(t, "kube-events").Rules)
	}
	namespaced := install(t, "shop", endpoint, "mode=stateless", "namespaces={shop,shop-data}")
	assert.Empty(t, namespaced.of("ClusterRole"))
	assert.Empty(t, namespaced.of("ClusterRoleBinding"))
	roles := namespaced.of("Role")
	assert.Len(t, roles, 2)
	for _, role := range roles {
		assert.Equal(t, inOneNamespace(rules), decoded[rbacv1.Role](t, role.Object).Rules)
	}
}

// TestTheRightsOfDetails: one value gives the right to ConfigMaps, another one takes all of them away.
func TestTheRightsOfDetails(t *testing.T) {
	t.Parallel()
	has := func(rules []rbacv1.PolicyRule, resource string) bool {
		return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, resource) })
	}
	for name, want := range map[string]struct{ configMaps, revisions bool }{
		"":                        {revisions: true},
		"details.configMaps=true": {configMaps: true, revisions: true},
		"details.enabled=false":   {},
	} {
		values := slices.DeleteFunc([]string{"mode=stateless", name}, func(value string) bool { return value == "" })
		cluster := install(t, "kube-events", append(values, endpoint)...).role(t, "kube-events").Rules
		roles := install(t, "kube-events", append(values, endpoint, "namespaces={shop}")...).of("Role")
		require.Len(t, roles, 1)
		for _, rules := range [][]rbacv1.PolicyRule{cluster, decoded[rbacv1.Role](t, roles[0].Object).Rules} {
			assert.Equal(t, want.configMaps, has(rules, "configmaps"), name)
			assert.Equal(t, want.revisions, has(rules, "controllerrevisions"), name)
		}
	}
}

// TestTheClusterHasEveryKindOfTheRules, with and without a namespace as the test above assumes.
func TestTheClusterHasEveryKindOfTheRules(t *testing.T) {
	t.Parallel()
	_, lists, err := kube.Discovery().ServerGroupsAndResources()
	require.NoError(t, err)
	namespaced := map[string]bool{}
	for _, list := range lists {
		group, _, grouped := strings.Cut(list.GroupVersion, "/")
		if !grouped {
			group = ""
		}
		for _, resource := range list.APIResources {
			namespaced[resource.Name+"."+group] = resource.Namespaced
		}
	}
	for _, rule := range harness.DocumentedRules(t, "The whole cluster") {
		for _, resource := range rule.Resources {
			hasNamespace, found := namespaced[resource+"."+rule.APIGroups[0]]
			assert.Equal(t, !slices.Contains(alpha, resource), found, "%s %s", rule.APIGroups, resource)
			hasNamespace = hasNamespace || slices.Contains(alpha, resource)
			assert.Equal(t, hasNamespace || resource == "namespaces", !slices.Contains(ofTheCluster, resource), resource)
		}
	}
}

// TestClusterRolesWithTheLabelExtendThePermissions: those of the chart and of the user, and those
// that Crossplane has for what it creates.
func TestClusterRolesWithTheLabelExtendThePermissions(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t, "extended", nil)
	all := manifests(harness.Chart(t, "extended", namespace, "--set", "serviceAccount.name=kube-events", "--set", "otlp.endpoint=http://gateway:4318",
		"--set", "rbac.integrations={argo-cd,argo-rollouts,cert-manager,cloudnative-pg,crossplane,eck,flux,keda,knative,kubevirt,openshift,opentelemetry-operator,prometheus-operator,strimzi,tekton}",
		"--set", "rbac.extraRules[0].apiGroups={carto.run}", "--set", "rbac.extraRules[0].resources={workloads}"))
	roles := all.of("ClusterRole")
	for _, object := range append(roles, all.of("ClusterRoleBinding")...) {
		kube.ApplyObject(t, object)
	}
	a := account{namespace}
	a.eventually(t, true, right{"watch", "", "events", "", ""}, namespace)
	for _, object := range roles {
		for _, rule := range decoded[rbacv1.ClusterRole](t, object.Object).Rules {
			for _, resource := range rule.Resources {
				a.eventually(t, true, right{"list", rule.APIGroups[0], resource, "", ""}, namespace)
			}
		}
	}
	a.hasNoMore(t, namespace)

	const label = "kubeevents.github.io/aggregate-to-extended-kube-events"
	deliverables, widgets := right{"list", "carto.run", "deliverables", "", ""}, right{"get", "example.org", "widgets", "", ""}
	require.False(t, a.may(t, namespace, deliverables))
	require.False(t, a.may(t, namespace, widgets))
	removeRole := newRole(t, label, deliverables)
	newRole(t, "rbac.crossplane.io/aggregate-to-view", widgets)
	a.eventually(t, true, deliverables, namespace)
	a.eventually(t, true, widgets, namespace)

	// An upgrade of the release keeps what others have added.
	for _, object := range roles {
		if object.GetName() == "extended-kube-events-extensions" {
			kube.ApplyObject(t, object)
		}
	}
	assert.True(t, a.may(t, namespace, deliverables))
	removeRole()
	a.eventually(t, false, deliverables, namespace)
	a.hasNoMore(t, namespace)
}

// newRole makes a ClusterRole with a label that permits one thing. remove removes it; otherwise, the
// end of the test does.
func newRole(t *testing.T, label string, r right) (remove func()) {
	t.Helper()
	role, err := kube.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "extension-", Labels: map[string]string{label: "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{r.verb}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	remove = func() {
		_ = kube.RbacV1().ClusterRoles().Delete(context.Background(), role.Name, metav1.DeleteOptions{})
	}
	t.Cleanup(remove)
	return remove
}

// TestAReleaseMayDoNoMore than it needs, in each mode. With namespaces, it may do nothing elsewhere.
func TestAReleaseMayDoNoMore(t *testing.T) {
	t.Parallel()
	watched, elsewhere := newNamespace(t, "watched", nil), newNamespace(t, "elsewhere", nil)
	releases := map[string]manifests{"kube-events": readManifests(t, "manifests/trial.yaml")}
	for name, values := range map[string]string{"single": "mode=single", "replicas": "replicas=2", "stateless": "mode=stateless", "tenant": "namespaces={watched,tenant}"} {
		releases[name] = harness.Chart(t, name, newNamespace(t, name, nil), "--set", endpoint, "--set", "serviceAccount.name=kube-events", "--set", values)
	}
	for namespace, all := range releases {
		for _, object := range all {
			if object.GetKind() == "Namespace" || strings.HasPrefix(object.GetAPIVersion(), rbacv1.GroupName) {
				kube.ApplyObject(t, object)
			}
		}
		a := account{namespace}
		a.eventually(t, true, right{"watch", "", "events", "", ""}, watched)
		a.hasNoMore(t, watched)
		elects := right{"create", "coordination.k8s.io", "leases", "", ""}
		assert.Equal(t, namespace == "replicas" || namespace == "tenant", a.may(t, namespace, elects), namespace)
		if namespace == "tenant" {
			a.isConfined(t, elsewhere)
		}
	}
}

// right is what a request needs: verb, resource with its group and subresource, and a name if it is
// about one object.
type right struct{ verb, group, resource, subresource, name string }

// needless are rights that the Collector has no use for, each of which would be worth something to
// an attacker who steals its token.
var needless = []right{
	{"get", "", "secrets", "", ""}, {"list", "", "secrets", "", ""}, {"watch", "", "secrets", "", ""},
	{"get", "", "configmaps", "", ""}, {"list", "", "configmaps", "", ""},
	{"create", "", "serviceaccounts", "token", ""}, {"impersonate", "", "users", "", ""},
	{"watch", "", "nodes", "", ""}, {"watch", "apps", "deployments", "", ""}, {"create", "", "pods", "", ""}, {"delete", "", "pods", "", ""}, {"patch", "", "pods", "", ""},
	{"get", "", "pods", "log", ""}, {"create", "", "pods", "exec", ""}, {"get", "", "nodes", "proxy", ""},
	{"create", "", "events", "", ""}, {"patch", "", "events", "", ""}, {"delete", "", "events", "", ""},
	{"update", "apps", "deployments", "", ""}, {"get", "apps", "deployments", "scale", ""},
	{"watch", "", "namespaces", "", ""}, {"update", "", "namespaces", "", ""}, {"delete", "", "namespaces", "", ""},
	{"delete", "coordination.k8s.io", "leases", "", ""}, {"watch", "coordination.k8s.io", "leases", "", ""}, {"update", "coordination.k8s.io", "leases", "", "another"},
	{"bind", rbacv1.GroupName, "roles", "", ""}, {"escalate", rbacv1.GroupName, "clusterroles", "", ""},
	{"*", "*", "*", "", ""},
}

// account is the service account of a release.
type account struct{ namespace string }

// may asks the API server whether a request would be allowed.
func (a account) may(t *testing.T, namespace string, r right) bool {
	t.Helper()
	review, err := kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:" + a.namespace + ":kube-events",
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + a.namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.subresource, Name: r.name,
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return review.Status.Allowed
}

// eventually waits until the account may do something, or may no longer.
func (a account) eventually(t *testing.T, may bool, r right, namespace string) {
	t.Helper()
	harness.Eventually(t, func() bool { return a.may(t, namespace, r) == may }, "%s: %v", r, may)
}

// hasNoMore checks that the account may watch events of a namespace, and may do nothing that it
// need not.
func (a account) hasNoMore(t *testing.T, namespace string) {
	t.Helper()
	assert.True(t, a.may(t, namespace, right{"watch", "", "events", "", ""}))
	for _, place := range []string{namespace, a.namespace} {
		for _, r := range needless {
			assert.False(t, a.may(t, place, r), "%s in %s", r, place)
		}
	}
}

// isConfined checks that the account has no rights elsewhere.
func (a account) isConfined(t *testing.T, elsewhere string) {
	t.Helper()
	for _, namespace := range []string{elsewhere, metav1.NamespaceAll, metav1.NamespaceSystem} {
		for _, r := range []right{
			{"list", "", "events", "", ""}, {"list", "", "pods", "", ""}, {"get", "apps", "deployments", "", ""},
			{"get", "", "nodes", "", ""}, {"get", "", "namespaces", "", metav1.NamespaceSystem}, {"list", "", "namespaces", "", ""}, {"create", "coordination.k8s.io", "leases", "", ""},
		} {
			assert.False(t, a.may(t, namespace, r), "%s in %q", r, namespace)
		}
	}
}
