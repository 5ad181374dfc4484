// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// componentStatus makes the health check tell the components' status, recoverable errors at once.
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
		return code == http.StatusInternalServerError
	}, "an unhealthy answer")
	assert.Contains(t, page, "StatusRecoverableError")
	assert.Contains(t, page, `{apiGroups: [\"\"], resources: [events], verbs: [get, list, watch]}`, "it names the rule to add")

	_, err = kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, func() bool {
		var code int
		code, page = health(address)
		return code == http.StatusOK
	}, "a healthy answer: %s", page)
}
