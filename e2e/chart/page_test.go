// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

var (
	yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	installs  = regexp.MustCompile(`(?m)^helm install kube-events \S+ --namespace kube-events --create-namespace (.*otlp\.endpoint.*)$`)
)

// TestTheCommandsOnThePagesInstall: the chart accepts the values in them.
func TestTheCommandsOnThePagesInstall(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"README.md", "deploy/README.md"} {
		command := installs.FindStringSubmatch(harness.Read(t, page))
		require.NotNil(t, command, page)
		config := render(t, strings.Fields(command[1])...).config(t)
		assert.Contains(t, config["exporters"], "otlp_http", page)
		assert.Equal(t, "prod-1", config["receivers"].(map[string]any)["kube_events"].(map[string]any)["cluster_name"], page)
	}
}

// TestTheLeftoversOnThePage: the command removes what `helm uninstall` leaves of the release kube-events.
func TestTheLeftoversOnThePage(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`(?m)^kubectl --namespace kube-events delete --ignore-not-found (.*)$`).FindStringSubmatch(harness.Read(t, "docs", "day-two.md"))
	require.NotNil(t, command)
	all := render(t, "--set", endpoint)
	lease := all.config(t)["extensions"].(map[string]any)["k8s_leader_elector"].(map[string]any)["lease_name"].(string)
	progress := only[rbacv1.Role](t, all, "Role").Rules[3].ResourceNames[0]
	claim := render(t, "--set", endpoint+",mode=single").of("PersistentVolumeClaim")[0].GetName()
	manifest, _, err := harness.HelmTemplate(t, "kube-events", "kube-events", "--set", endpoint, "--show-only", "templates/tests.yaml")
	require.NoError(t, err)
	pod := harness.Objects(t, manifest)[0].GetName()
	assert.ElementsMatch(t, []string{"lease/" + lease, "configmap/" + progress, "persistentvolumeclaim/" + claim, "pod/" + pod}, strings.Fields(command[1]))
}

// TestTheExamplesOnThePages: files of values, and a ClusterRole that adds rules.
func TestTheExamplesOnThePages(t *testing.T) {
	t.Parallel()
	blocks := yamlBlock.FindAllStringSubmatch(harness.Read(t, "deploy", "README.md"), -1)
	require.Len(t, blocks, 3)
	all := renderValues(t, blocks[0][1])
	assert.Equal(t, []any{"Warning"}, all.config(t)["receivers"].(map[string]any)["kube_events"].(map[string]any)["event_types"])

	page := yamlBlock.FindAllStringSubmatch(harness.Read(t, "docs", "page.md"), -1)
	published := renderValues(t, page[len(page)-1][1])
	published.validate(t)
	exporter := published.config(t)["exporters"].(map[string]any)["event_page"].(map[string]any)
	assert.Equal(t, ":8090", exporter["endpoint"])
	assert.Contains(t, exporter, "response_headers", "a browser asks for the password")
	service := only[corev1.Service](t, published, "Service")
	assert.Equal(t, "kube-events-page", service.Name)
	inCluster := service.Name + "." + service.Namespace + ".svc"
	assert.Equal(t, []any{"events.example.com", service.Name, inCluster, inCluster + ".cluster.local"}, exporter["allowed_hosts"])

	changed := alertsOf(t, renderValues(t, blocks[1][1]))
	assert.NotContains(t, changed, "KubeEventsCrashLoop")
	assert.Equal(t, map[string]string{"severity": "info", "team": "platform"}, changed["KubeEventsStorm"].Labels)
	assert.Contains(t, changed["KubeEventsStorm"].Annotations["dashboard_url"], "https://grafana.example.com/d/")

	for _, block := range yamlBlock.FindAllStringSubmatch(harness.Read(t, "docs", "gitops.md")+harness.Read(t, "docs", "day-two.md"), -1) {
		if !strings.HasPrefix(block[1], "apiVersion: ") {
			policies := renderValues(t, "otlp: {endpoint: http://otel-gateway.observability:4318}\n"+block[1]).of("NetworkPolicy")
			for _, policy := range policies {
				policy.SetNamespace("default")
				kube.DryRunObject(t, policy)
			}
			assert.Len(t, policies, strings.Count(block[1], "networkPolicy:"))
		}
	}

	extension := harness.Objects(t, blocks[2][1])
	require.Len(t, extension, 1)
	for _, object := range all.of("ClusterRole") {
		if object.GetName() == "kube-events-extensions" {
			var role rbacv1.ClusterRole
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
			assert.Equal(t, role.AggregationRule.ClusterRoleSelectors[0].MatchLabels, extension[0].GetLabels())
			return
		}
	}
	assert.Fail(t, "no ClusterRole of the release")
}
