// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// componentStatus makes the health check report the components' status, recoverable errors at once.
const componentStatus = "--feature-gates=+extension.healthcheck.useComponentStatus"

func healthAt(address string) string {
	return fmt.Sprintf("{extensions: {health_check: {http: {endpoint: %q, status: {enabled: true, path: /status}}, "+
		"component_health: {include_recoverable_errors: true, recovery_duration: 1ms}}}, service: {extensions: [health_check]}}", address)
}

// health asks the health check as a probe would.
func health(address string) (code int, page string) {
	response, err := http.Get("http://" + address + "/status?verbose")
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

func TestAProbeSeesAMissingPermission(t *testing.T) {
	t.Parallel()
	account := unique("probed")
	kubeconfig, err := kube.RestrictedKubeconfig(t.Context(), account, eventsRule)
	require.NoError(t, err)
	binding := kube.revoke(t, account)
	address := freeAddress(t)
	startCollector(t, kubeconfig, componentStatus, healthAt(address))

	var page string
	eventually(t, func() bool {
		var code int
		code, page = health(address)
		return code == http.StatusInternalServerError && strings.Contains(page, `{apiGroups: [''], resources: [events], verbs: [get, list, watch]}`)
	}, "an unhealthy answer that names the rule to add")
	assert.Contains(t, page, "StatusRecoverableError")

	_, err = kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, func() bool {
		var code int
		code, page = health(address)
		return code == http.StatusOK
	}, "a healthy answer: %s", page)
}

func TestAProbeSeesThatNobodyCanBeElected(t *testing.T) {
	t.Parallel()
	ns, account := kube.newNamespace(t), unique("candidate")
	kubeconfig, err := kube.RestrictedKubeconfig(t.Context(), account, harness.DocumentedRules(t, "The whole cluster")...)
	require.NoError(t, err)
	address := freeAddress(t)
	col := startCollector(t, kubeconfig, componentStatus, healthAt(address),
		"receivers::kube_events::k8s_leader_elector: k8s_leader_elector",
		"{extensions: {k8s_leader_elector: {auth_type: kubeConfig, lease_name: kube-events-leader, lease_namespace: "+ns+
			", lease_duration: 4s, renew_deadline: 3s, retry_period: 1s}}, service: {extensions: [health_check, k8s_leader_elector]}}")
	// The account may read Leases. So the receiver knows only after the duration of a lease that nobody
	// creates one. Until then, the status has other errors.
	var page string
	eventually(t, func() bool {
		var code int
		code, page = health(address)
		return code == http.StatusInternalServerError && strings.Contains(page, "the lease kube-events-leader in namespace "+ns+" cannot be taken")
	}, "an unhealthy answer: %s", page)

	kube.bind(t, ns, account, harness.DocumentedRules(t, "Leader election"))
	eventually(t, func() bool { return len(col.emitted()) > 0 }, "what the leader emits")
	eventually(t, func() bool {
		var code int
		code, page = health(address)
		return code == http.StatusOK
	}, "a healthy answer: %s", page)
}

// bind permits a service account of RestrictedKubeconfig something in one namespace.
func (c *cluster) bind(t *testing.T, namespace, account string, rules []rbacv1.PolicyRule) {
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
