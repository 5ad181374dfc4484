// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// inOneNamespace leaves out of rules what is the cluster's. A Role permits reading its own
// Namespace, but no list of them.
func inOneNamespace(rules []rbacv1.PolicyRule) (left []rbacv1.PolicyRule) {
	for _, rule := range rules {
		rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(resource string) bool {
			return slices.Contains([]string{"nodes", "persistentvolumes"}, resource)
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

func TestTheRulesAreThoseOfTheREADME(t *testing.T) {
	t.Parallel()
	rules := harness.RulesOfREADME(t, "### RBAC")
	for _, all := range []manifests{build(t, "base"), build(t, "overlays/ha"), readManifests(t, "operator/collector.yaml")} {
		assert.Equal(t, rules, only[rbacv1.ClusterRole](t, all, "ClusterRole").Rules)
	}
	assert.Equal(t, rules, readHelmValues(t).ClusterRole.Rules)
	for overlay, namespaces := range map[string]int{"overlays/single-namespace": 1, "overlays/tenant": 2} {
		all := build(t, overlay)
		assert.Empty(t, all.of("ClusterRole"), overlay)
		assert.Empty(t, all.of("ClusterRoleBinding"), overlay)
		assert.Empty(t, all.of("Namespace"), overlay)
		roles := all.of("Role")
		assert.Len(t, roles, namespaces, overlay)
		for _, role := range roles {
			assert.Equal(t, inOneNamespace(rules), decoded[rbacv1.Role](t, role.Object).Rules, overlay)
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
	{"delete", "coordination.k8s.io", "leases", "", ""}, {"list", "coordination.k8s.io", "leases", "", ""},
	{"get", "coordination.k8s.io", "leases", "", "another"}, {"update", "coordination.k8s.io", "leases", "", "another"},
	{"bind", rbacv1.GroupName, "roles", "", ""}, {"escalate", rbacv1.GroupName, "clusterroles", "", ""},
	{"*", "*", "*", "", ""},
}

// account is the service account of an overlay.
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

// hasNoMore checks that the account may watch events of a namespace, and may do nothing that it
// need not.
func (a account) hasNoMore(t *testing.T, namespace string) {
	t.Helper()
	assert.True(t, a.may(t, namespace, right{"watch", "", "events", "", ""}))
	for _, of := range []string{namespace, a.namespace} {
		for _, r := range needless {
			assert.False(t, a.may(t, of, r), "%s in %s", r, of)
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
