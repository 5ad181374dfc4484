// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCommands(t *testing.T) {
	tests := map[string]struct {
		object    object
		namespace string
		want      []string
	}{
		"a pod": {object{"pod", "", "fe-1-a"}, "demo", []string{
			"kubectl describe pod -n demo fe-1-a",
			"kubectl logs -n demo fe-1-a --previous",
			"kubectl get events -n demo --field-selector involvedObject.name=fe-1-a",
		}},
		"a workload": {object{"deployment", "apps", "fe"}, "demo", []string{
			"kubectl describe deployment.apps -n demo fe",
			"kubectl get events -n demo --field-selector involvedObject.name=fe",
		}},
		"a node, whose events are in another namespace": {object{"node", "", "worker-1"}, clusterScoped, []string{
			"kubectl describe node worker-1",
			"kubectl get events -A --field-selector involvedObject.name=worker-1",
		}},
		"a node that owns a pod": {object{"node", "", "worker-1"}, "kube-system", []string{
			"kubectl describe node worker-1",
			"kubectl get events -A --field-selector involvedObject.name=worker-1",
		}},
		"a pod of a group": {object{"pod", "example.com", "a"}, "demo", []string{
			"kubectl describe pod.example.com -n demo a",
			"kubectl get events -n demo --field-selector involvedObject.name=a",
		}},
		"a name with a colon": {object{"clusterrole", "rbac.authorization.k8s.io", "system:node"}, clusterScoped, []string{
			"kubectl describe clusterrole.rbac.authorization.k8s.io 'system:node'",
			"kubectl get events -A --field-selector involvedObject.name='system:node'",
		}},
		"no name":                {object{"pod", "", ""}, "demo", nil},
		"no kind":                {object{"", "", "a"}, "demo", nil},
		"a name like an option":  {object{"pod", "", "--kubeconfig=x"}, "demo", nil},
		"a kind like an option":  {object{"--all", "", "a"}, "demo", nil},
		"two kinds":              {object{"pod,secret", "", "a"}, "demo", nil},
		"a kind with a name":     {object{"secret/b", "", "a"}, "demo", nil},
		"a name that was cut":    {object{"pod", "", cut(strings.Repeat("x", 1000), maxName)}, "demo", nil},
		"a key that ends a line": {object{"pod", "", "a\nreboot"}, "demo", nil},
		"the end of a paste":     {object{"pod", "", "a\x1b[201~"}, "demo", nil},
		"a key that interrupts":  {object{"pod", "", "a\x03"}, "demo", nil},
		"text that turns around": {object{"pod", "", "a\u202eb"}, "demo", nil},
		"no valid text":          {object{"pod", "", "a\xff"}, "demo", nil},
		"a hostile namespace":    {object{"pod", "", "a"}, "demo\n", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, commandsFor(tt.object, tt.namespace))
		})
	}
}

func TestAShellTakesNamesAsTheyAre(t *testing.T) {
	for _, name := range []string{"fe-1-a", "it's", "''", "$(echo a)", "`echo a`", "$HOME", "a; echo b", "a b", "*", "~", "#a", "a&b|c<d>e", "!!", `"a"`, "(a)", "{a}", "é"} {
		t.Run(name, func(t *testing.T) {
			commands := commandsFor(object{"pod", "", name}, "demo")
			require.Len(t, commands, 3)
			for i, want := range []string{
				"<describe><pod><-n><demo><" + name + ">",
				"<logs><-n><demo><" + name + "><--previous>",
				"<get><events><-n><demo><--field-selector><involvedObject.name=" + name + ">",
			} {
				arguments, err := exec.CommandContext(t.Context(), "sh", "-c", `kubectl() { printf '<%s>' "$@"; }; `+commands[i]).CombinedOutput()
				require.NoError(t, err, string(arguments))
				assert.Equal(t, want, string(arguments))
			}
		})
	}
}
