// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestAHostileEvent is delivered as well as it can be, and does not stop the stream. Anyone who may
// create events can write it: the API server checks little, and in protobuf nearly nothing.
func TestAHostileEvent(t *testing.T) {
	t.Parallel()
	c := bareCluster(t)
	ns := c.newNamespace(t)
	g := newGateway(t, c.Kubeconfig())
	r := c.run(t, in(ns), g.config())
	config := c.RESTConfig()
	config.ContentType = "application/vnd.kubernetes.protobuf" // Its strings hold any bytes.
	binary, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = binary.CoreV1().Events(ns).Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "hostile"},
		Reason:     "bad\xff", Message: "b\xc3\x28d", Type: "\xfe", Action: "\x80",
		Source: corev1.EventSource{Component: "\xf0\x28", Host: "\xf8"},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "\xff/v1", Kind: "\xff", Namespace: ns, Name: "../../../kube-system/secrets/n\xff", UID: "\xff", ResourceVersion: "\xff",
			FieldPath: "spec.containers{\xff}",
		},
		Related: &corev1.ObjectReference{APIVersion: "\xff", Kind: "\xff", Namespace: "\xff", Name: "\xff", UID: "\xff"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	got := r.recordOf(t, "hostile")
	assert.Equal(t, "b\ufffd(d", got.body())
	assert.Equal(t, "bad\ufffd", got.text("k8s.event.reason"))
	assert.Equal(t, "../../../kube-system/secrets/n\ufffd", got.text("k8s.object.name"))
	r.fence(t, ns)
	assert.Empty(t, g.requests(func(r *http.Request) bool {
		return strings.Contains(r.URL.Path, "secrets") || strings.Contains(r.URL.Path, "..")
	}))
}
