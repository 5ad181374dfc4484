// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
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

// TestAnAccountOfANamespaceSpeaksForNoOther creates the events that the API server accepts of an account
// that may only create Events in one namespace. It compares namespaces, not the scope of kinds.
func TestAnAccountOfANamespaceSpeaksForNoOther(t *testing.T) {
	t.Parallel()
	c := bareCluster(t)
	payments, tenant, node := c.newNamespace(t), c.newNamespace(t), unique("worker")
	labels := map[string]string{"team": "payments"}
	_, err := c.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: labels}}, metav1.CreateOptions{})
	require.NoError(t, err)
	deployed := c.make(t, payments, "apps/v1", "Deployment", "shop", labelled("team", "payments"))
	create := c.eventsOf(t, tenant)
	about := func(apiVersion, kind, namespace, name string) *corev1.Event {
		ev := eventAbout("Forged", corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name})
		ev.Name, ev.Source = unique("forged"), corev1.EventSource{Component: "kubelet", Host: node}
		return ev
	}
	everyEvent := c.run(t, "start_at: beginning\ninclude_reasons: [Forged]\nextract: {labels: [{tag_name: team, key: team}]}")

	for kind, forged := range map[string]*corev1.Event{
		"Namespace": about("v1", "Namespace", tenant, payments),
		"Node":      about("v1", "Node", tenant, node),
	} {
		require.NoError(t, create(forged), kind)
		rec := everyEvent.recordOf(t, forged.Name)
		assert.Equal(t, map[string]any{
			"k8s.namespace.name": tenant, "k8s.object.api_version": "v1", "k8s.object.kind": kind, "k8s.object.name": forged.InvolvedObject.Name,
		}, without(rec.Resource, "k8s.cluster.uid"), kind)
		assert.Equal(t, "foreign", rec.resolution(), kind)
		assert.Equal(t, tenant, rec.text("k8s.event.namespace"), kind)
	}
	for what, refused := range map[string]*corev1.Event{
		"an object of another namespace":    about("apps/v1", "Deployment", payments, deployed.GetName()),
		"a Namespace without a namespace":   about("v1", "Namespace", "", payments),
		"a namespaced object without any":   about("apps/v1", "Deployment", "", deployed.GetName()),
		"another kind without any, of core": about("v1", "Node", "", node),
	} {
		assert.True(t, apierrors.IsInvalid(create(refused)), what)
	}

	own := about("v1", "Namespace", tenant, tenant)
	require.NoError(t, create(own))
	assert.Equal(t, "complete", everyEvent.recordOf(t, own.Name).resolution(), "it may speak for its own Namespace")
	cluster := c.makeEvent(t, metav1.NamespaceDefault, about("v1", "Node", "", node))
	rec := everyEvent.recordOf(t, cluster.Name)
	assert.Equal(t, []string{"complete", "", node, "payments", "default"},
		[]string{rec.resolution(), rec.text("k8s.namespace.name"), rec.text("k8s.node.name"), rec.text("team"), rec.text("k8s.event.namespace")})

	forged := func(namespace string) func(point) bool {
		return func(p point) bool {
			return p.attrs["k8s.event.reason"] == "Forged" && p.attrs["k8s.namespace.name"] == namespace
		}
	}
	everyEvent.awaitSum(t, 3, forged(tenant))
	assert.Zero(t, everyEvent.sum(forged(payments)))
}

// eventsOf returns what creates events as an account that may do nothing else, in this namespace only.
func (c *cluster) eventsOf(t *testing.T, namespace string) func(*corev1.Event) error {
	t.Helper()
	account := unique("tenant")
	kubeconfig, err := c.RestrictedKubeconfig(t.Context(), account)
	require.NoError(t, err)
	c.bind(t, namespace, account, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}})
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return func(ev *corev1.Event) error {
		_, err := client.CoreV1().Events(namespace).Create(t.Context(), ev, metav1.CreateOptions{})
		return err
	}
}
