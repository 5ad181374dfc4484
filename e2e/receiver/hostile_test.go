// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestHostileEvents are delivered as well as they can be, and never stop the stream. Anyone who may
// create events can write them: the API server checks little, and in protobuf nearly nothing.
func TestHostileEvents(t *testing.T) {
	t.Parallel()
	c := bareCluster(t)
	ns := c.newNamespace(t)
	g := newGateway(t, c.Kubeconfig())
	r := c.run(t, in(ns), g.config())
	config := c.RESTConfig()
	config.ContentType = "application/vnd.kubernetes.protobuf" // Its strings hold any bytes.
	binary, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	for name, test := range hostileEvents() {
		t.Run(name, func(t *testing.T) {
			ev := test.event.DeepCopy()
			ev.Name, ev.Namespace, ev.InvolvedObject.Namespace = unique("hostile"), ns, ns
			_, err := binary.CoreV1().Events(ns).Create(t.Context(), ev, metav1.CreateOptions{})
			require.NoError(t, err)
			test.check(t, r.recordOf(t, ev.Name))
		})
	}
	assert.Empty(t, g.requests(func(r *http.Request) bool {
		return strings.Contains(r.URL.Path, "secrets") || strings.Contains(r.URL.Path, "..")
	}))
}

type hostileEvent struct {
	event *corev1.Event
	check func(t *testing.T, r record)
}

func hostileEvents() map[string]hostileEvent {
	return map[string]hostileEvent{
		"no valid UTF-8": {
			&corev1.Event{
				Reason: "bad\xff", Message: "b\xc3\x28d", Type: "\xfe", Action: "\x80",
				Source: corev1.EventSource{Component: "\xf0\x28", Host: "\xf8"},
				InvolvedObject: corev1.ObjectReference{
					APIVersion: "\xff/v1", Kind: "\xff", Name: "n\xff", UID: "\xff", FieldPath: "spec.containers{\xff}", ResourceVersion: "\xff",
				},
				Related: &corev1.ObjectReference{APIVersion: "\xff", Kind: "\xff", Namespace: "\xff", Name: "\xff", UID: "\xff"},
			},
			func(t *testing.T, r record) {
				assert.Equal(t, "b\ufffd(d", r.body())
				assert.Equal(t, "bad\ufffd", r.text("k8s.event.reason"))
				assert.Equal(t, "n\ufffd", r.text("k8s.object.name"))
			},
		},
		"nothing but a name": {
			&corev1.Event{Related: &corev1.ObjectReference{}},
			func(t *testing.T, r record) {
				assert.Equal(t, r.time().Format(time.RFC3339), r.text("k8s.event.start_time"))
				assert.EqualValues(t, 1, r.count())
			},
		},
		"a name that leads elsewhere": {
			eventAbout("Elsewhere", corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: "../../../kube-system/secrets/any?watch=true#"}),
			func(t *testing.T, r record) { assert.Equal(t, "not_found", r.resolution()) },
		},
	}
}
