// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

var eventsRule = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"get", "list", "watch"}}

func readRule(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list"}}
}

// restricted is the line of configuration for a new account that may do what the rules say.
func (c *cluster) restricted(t *testing.T, account string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	kubeconfig, err := c.RestrictedKubeconfig(t.Context(), account, rules...)
	require.NoError(t, err)
	return "kubeconfig: " + kubeconfig
}

func TestPermissionsForOwners(t *testing.T) {
	t.Parallel()
	c := bareCluster(t)
	ns := c.newNamespace(t)
	deployment := c.make(t, ns, "apps/v1", "Deployment", "fe", labelled("tilt-manifest", "shop"))
	rs := c.make(t, ns, "apps/v1", "ReplicaSet", "fe-1", controlledBy(deployment))
	pod := c.make(t, ns, "v1", "Pod", "fe-1-a", controlledBy(rs))
	all := []rbacv1.PolicyRule{eventsRule, readRule("", "pods"), readRule("apps", "replicasets", "deployments"), readRule("", "namespaces")}
	tag := map[string]any{"tilt.manifest": "shop"}

	for name, test := range map[string]struct {
		rules      []rbacv1.PolicyRule
		resource   map[string]any
		resolution string
		cluster    bool
	}{
		"those of docs/rbac.md":             {harness.DocumentedRules(t, "The whole cluster"), merge(completeChainOf(pod, rs, deployment), tag), "complete", true},
		"events alone":                      {all[:1], completeChainOf(pod), "forbidden", false},
		"the owners but not the cluster":    {all[:3], merge(completeChainOf(pod, rs, deployment), tag), "complete", false},
		"the cluster but not the owners":    {append(all[:1:1], all[3]), completeChainOf(pod), "forbidden", true},
		"pods and replicasets but not more": {append(all[:2:2], readRule("apps", "replicasets")), completeChainOf(pod, rs, deployment), "forbidden", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.run(t, in(ns), c.restricted(t, unique("restricted"), test.rules...))
			rec := r.recordOf(t, c.makeEvent(t, ns, eventAbout("Permitted", referenceTo(pod))).Name)
			assert.Equal(t, test.resolution, rec.resolution())
			assert.Equal(t, test.cluster, rec.text("k8s.cluster.uid") != "")
			assert.Equal(t, test.resource, withoutService(rec.Resource))
			assert.Equal(t, componentstatus.StatusOK, r.host.last().Status(), "a missing permission for owners is no error")
		})
	}
}

// TestAPermissionThatIsTakenAway: the status names what is missing, and nothing is lost when it is
// given back.
func TestAPermissionThatIsTakenAway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		namespaced bool
		parts      []string
	}{
		"for the whole cluster": {false, []string{"ClusterRole", "cluster"}},
		"for a namespace":       {true, []string{"Role", "namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := kube.newNamespace(t)
			account := unique("revoked")
			kubeconfig, err := kube.RestrictedKubeconfig(t.Context(), account, eventsRule)
			require.NoError(t, err)
			g := newGateway(t, kubeconfig)
			config := "start_at: beginning"
			if test.namespaced {
				config = in(ns)
			}
			r := kube.run(t, config, g.config(), "include_reasons: [Revoked, Fence]")
			ev := kube.makeEvent(t, ns, eventOf("Revoked", "pod"))
			r.listed(t, ns)

			restore := kube.revoke(t, account)
			g.cut()
			// It names the rule that is missing.
			r.host.await(t, componentstatus.StatusRecoverableError,
				append(test.parts, `apiGroups: ['']`, "resources: [events]", "verbs: [get, list, watch]")...)
			for n := int32(2); n <= 3; n++ {
				ev = kube.updateEvent(t, withCount(ev, n))
			}
			restore()
			r.host.await(t, componentstatus.StatusOK)
			r.fence(t, ns)
			assert.Equal(t, []observation{{1, 1}, {2, 1}, {3, 1}}, observationsOf(r.records(named(ev.Name))))
		})
	}
}

// TestAPermissionForOneOfTwoNamespaces: the other is watched, and the status names the one that is
// not.
func TestAPermissionForOneOfTwoNamespaces(t *testing.T) {
	t.Parallel()
	allowed, denied := kube.newNamespace(t), kube.newNamespace(t)
	account := unique("half")
	kubeconfig := kube.restricted(t, account, eventsRule)
	restore := kube.revoke(t, account)
	kube.bind(t, allowed, account, eventsRule)

	r := kube.run(t, in(allowed, denied), kubeconfig)
	r.fence(t, allowed)
	r.host.await(t, componentstatus.StatusRecoverableError, denied)
	r.fence(t, allowed)
	assert.Equal(t, componentstatus.StatusRecoverableError, r.host.last().Status(), "one that works does not hide one that does not")

	restore()
	r.fence(t, denied)
	r.host.await(t, componentstatus.StatusOK)
}

// bind permits a service account of RestrictedKubeconfig something in one namespace.
func (c *cluster) bind(t *testing.T, namespace, account string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: account}
	_, err := c.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: account}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// revoke deletes the binding of an account, and waits until the API server heeds that: a watch that
// is begun before goes on. What it returns creates the binding again.
func (c *cluster) revoke(t *testing.T, account string) (restore func()) {
	t.Helper()
	bindings := c.RbacV1().ClusterRoleBindings()
	binding, err := bindings.Get(t.Context(), account, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, bindings.Delete(t.Context(), account, metav1.DeleteOptions{}))
	c.awaitAccess(t, account, false, authorizationv1.ResourceAttributes{Verb: "watch", Resource: "events"})
	binding.UID, binding.ResourceVersion = "", ""
	return func() {
		_, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

// awaitAccess waits until an account is allowed something, or no longer is.
func (c *cluster) awaitAccess(t *testing.T, account string, allowed bool, access authorizationv1.ResourceAttributes) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:default:" + account, ResourceAttributes: &access,
	}}
	eventually(t, func() bool {
		answer, err := c.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		require.NoError(t, err)
		return answer.Status.Allowed == allowed
	}, "access %v of %s", allowed, account)
}
