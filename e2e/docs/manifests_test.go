// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// manifests are the files of the recipes that users apply, from the repository's root.
func manifests(t *testing.T) (paths []string) {
	t.Helper()
	files, err := filepath.Glob(harness.InRepository("examples", "*", "*.yaml"))
	require.NoError(t, err)
	for _, path := range files {
		if strings.Contains(readFile(t, path), "\nkind: ") || strings.HasPrefix(readFile(t, path), "kind: ") {
			paths = append(paths, filepath.Join("examples", filepath.Base(filepath.Dir(path)), filepath.Base(path)))
		}
	}
	require.NotEmpty(t, paths)
	return paths
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	relative, err := filepath.Rel(harness.InRepository(), path)
	require.NoError(t, err)
	return harness.Read(t, relative)
}

var image = regexp.MustCompile(`image: ([^\s,}]+)`)

// TestImagesCanBePulled: no image is a placeholder, so that the recipes work on a real cluster.
func TestImagesCanBePulled(t *testing.T) {
	t.Parallel()
	images := 0
	for _, path := range manifests(t) {
		for _, match := range image.FindAllStringSubmatch(harness.Read(t, path), -1) {
			assert.Regexp(t, `^registry\.k8s\.io/(pause:3\.(9|10)|e2e-test-images/busybox:1\.37\.0-1)$`, match[1], path)
			images++
		}
	}
	assert.Greater(t, images, 10)
}

// TestRolesAreBound: every role in the recipes works for the service account of the manifests.
func TestRolesAreBound(t *testing.T) {
	t.Parallel()
	const account = "system:serviceaccount:kube-events:kube-events"
	bound := 0
	for _, path := range manifests(t) {
		if !strings.Contains(harness.Read(t, path), "kind: ClusterRole\n") {
			continue
		}
		for _, object := range kube.Apply(t, path) {
			role := rbacv1.ClusterRole{}
			if object.GetKind() != "ClusterRole" {
				continue
			}
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					assertMay(t, account, "list", rule.APIGroups[0], resource)
					bound++
				}
			}
		}
	}
	assert.Positive(t, bound)
}

func assertMay(t *testing.T, user, verb, group, resource string) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource},
	}}
	harness.Eventually(t, func() bool {
		answer, err := kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed
	}, "%s may %s %s.%s", user, verb, resource, group)
}
