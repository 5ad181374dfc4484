// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// TestTheWholeCluster: the trial, and then, in its place, one replica with a volume, and two without.
func TestTheWholeCluster(t *testing.T) {
	needContainers(t)
	t.Parallel()
	const namespace = "kube-events"
	kube.remove(t, namespace)
	watched := kube.newNamespace(t, "watched")
	kube.newVolume(t)
	k := kubelet{kube, t.TempDir()}

	t.Run("trial", func(t *testing.T) {
		kube.makeDeployment(t, watched, "before")
		kube.awaitEvents(t, watched, "before")
		kube.apply(t, readManifests(t, "manifests/trial.yaml"))
		p := k.run(t, kube.podsOf(t, namespace, 1)[0])
		p.isWell(t)
		account{namespace}.hasNoMore(t, watched)
		harness.Eventually(t, func() bool {
			code, page := p.get(t, "8090", "/")
			return code == http.StatusOK && strings.Contains(page, "before")
		}, "the workload on the page")
		p.terminate(t)
	})

	t.Run("single", func(t *testing.T) {
		backend := harness.NewBackend(t)
		kube.apply(t, chart(t, namespace, backend.URL, "createNamespace=true", "mode=single", "clusterName=test-1"))
		pods := kube.podsOf(t, namespace, 1)
		p := k.run(t, pods[0])
		p.isWell(t)
		p.hasNoPrivileges(t)
		account{namespace}.hasNoMore(t, watched)
		assert.False(t, account{namespace}.may(t, namespace, right{"create", "coordination.k8s.io", "leases", "", ""}))
		kube.makeDeployment(t, watched, "fe")
		p.delivers(t, backend, watched, "fe", kube.UID(t))
		assert.NotEmpty(t, backend.Records("k8s.namespace.name", watched, "k8s.cluster.name", "test-1"))

		p.terminate(t)
		kube.makeDeployment(t, watched, "meanwhile")
		kube.awaitEvents(t, watched, "meanwhile")
		p = k.run(t, pods[0])
		p.delivers(t, backend, watched, "meanwhile", kube.UID(t))
		p.isWell(t)
		for uid, times := range countedBy(backend.Records("k8s.namespace.name", watched), "log.record.uid") {
			assert.Equal(t, 1, times, "%s: a restart repeats nothing", uid)
		}
		p.terminate(t)
	})

	t.Run("default", func(t *testing.T) {
		backend := harness.NewBackend(t)
		kube.apply(t, chart(t, namespace, backend.URL, "createNamespace=true"))
		pods := kube.podsOf(t, namespace, 1)
		p := k.run(t, pods[0])
		p.isWell(t)
		kube.makeDeployment(t, watched, "first")
		p.delivers(t, backend, watched, "first", kube.UID(t))

		p.terminate(t)
		kube.makeDeployment(t, watched, "between")
		kube.awaitEvents(t, watched, "between")
		p = k.run(t, pods[0])
		p.delivers(t, backend, watched, "between", kube.UID(t))
		p.isWell(t)
		for uid, times := range countedBy(backend.Records("k8s.namespace.name", watched), "log.record.uid") {
			assert.Equal(t, 1, times, "%s: a restart repeats nothing", uid)
		}
		p.terminate(t)
	})

	t.Run("ha", func(t *testing.T) {
		backend := harness.NewBackend(t)
		kube.apply(t, chart(t, namespace, backend.URL, "createNamespace=true", "replicas=2"))
		var replicas []*pod
		for _, spec := range kube.podsOf(t, namespace, 2) {
			replicas = append(replicas, k.run(t, spec))
		}
		leader, standby := kube.elected(t, namespace, replicas)
		leader.isWell(t)
		standby.isWell(t)
		account{namespace}.hasNoMore(t, watched)
		kube.makeDeployment(t, watched, "led")
		leader.delivers(t, backend, watched, "led", kube.UID(t))
		for uid, times := range countedBy(backend.Records("k8s.namespace.name", watched), "log.record.uid") {
			assert.Equal(t, 1, times, "%s: only the leader emits", uid)
		}

		leader.terminate(t)
		kube.makeDeployment(t, watched, "orphaned")
		standby.delivers(t, backend, watched, "orphaned", kube.UID(t))
		standby.isWell(t)
		standby.terminate(t)
	})
}

// TestASingleNamespace: without permission elsewhere, and with a user that the platform assigns.
func TestASingleNamespace(t *testing.T) {
	needContainers(t)
	t.Parallel()
	const namespace = "team-a"
	kube.newNamespace(t, namespace)
	backend := harness.NewBackend(t)
	objects := chart(t, namespace, backend.URL, "namespaces={team-a}", "runAsUser=null", "mode=stateless")
	assert.Empty(t, objects.of("ClusterRole"))

	// Without its rights the Collector runs, and reports that it is not ready, and why.
	kube.apply(t, objects.but("RoleBinding"))
	p := kubelet{kube, t.TempDir()}.run(t, kube.podsOf(t, namespace, 1)[0])
	const missing = `{apiGroups: [''], resources: [events], verbs: [get, list, watch]}`
	harness.Eventually(t, func() bool {
		code, page := p.ready(t)
		return code == http.StatusInternalServerError && strings.Contains(page, missing)
	}, "an answer that it is not ready, with the missing rule")
	harness.Eventually(t, func() bool { return p.logged(missing) }, "the missing rule in the log")
	code, _ := p.lives(t)
	assert.Equal(t, http.StatusOK, code, "a missing right is no reason for a restart")
	kube.apply(t, objects.of("RoleBinding"))
	harness.Eventually(t, func() bool { code, _ := p.ready(t); return code == http.StatusOK }, "an answer that it is ready")
	p.terminate(t)

	p = kubelet{kube, t.TempDir()}.run(t, kube.podsOf(t, namespace, 1)[0])
	p.isWell(t)
	elsewhere := kube.newNamespace(t, "elsewhere")
	kube.makeDeployment(t, elsewhere, "fe")
	kube.awaitEvents(t, elsewhere, "fe")
	kube.makeDeployment(t, namespace, "fe")
	p.delivers(t, backend, namespace, "fe", "")
	assert.Empty(t, backend.Records("k8s.namespace.name", elsewhere))
	account{namespace}.hasNoMore(t, namespace)
	account{namespace}.isConfined(t, elsewhere)
	p.isWell(t)
	p.terminate(t)
}

// TestAnOutageOfTheBackend does not make a Pod unready, so it blocks no rollout. What the receiver
// reports names it.
func TestAnOutageOfTheBackend(t *testing.T) {
	needContainers(t)
	t.Parallel()
	namespace := kube.newNamespace(t, "outage")
	kube.apply(t, chart(t, namespace, "http://127.0.0.1:1", "namespaces={outage}")) // Nothing listens there.
	p := kubelet{kube, t.TempDir()}.run(t, kube.podsOf(t, namespace, 1)[0])
	p.isWell(t)
	kube.makeDeployment(t, namespace, "fe")
	kube.awaitEvents(t, namespace, "fe")
	harness.Eventually(t, func() bool {
		code, page := p.get(t, "13134", "/status?verbose")
		return code == http.StatusInternalServerError && strings.Contains(page, "the logs pipeline has accepted no events")
	}, "the outage in the status")
	code, page := p.probe(t, p.Spec.Containers[0].ReadinessProbe)
	assert.Equal(t, http.StatusOK, code, page)
	code, page = p.lives(t)
	assert.Equal(t, http.StatusOK, code, page)
	p.terminate(t)
}

func TestTheNamespacesOfATenant(t *testing.T) {
	needContainers(t)
	t.Parallel()
	kube.newNamespace(t, "shop")
	kube.newNamespace(t, "shop-data")
	backend := harness.NewBackend(t)
	kube.apply(t, chart(t, "shop", backend.URL, "namespaces={shop,shop-data}"))
	p := kubelet{kube, t.TempDir()}.run(t, kube.podsOf(t, "shop", 1)[0])
	p.isWell(t)
	elsewhere := kube.newNamespace(t, "not-the-shop")
	kube.makeDeployment(t, elsewhere, "fe")
	kube.awaitEvents(t, elsewhere, "fe")
	for _, namespace := range []string{"shop", "shop-data"} {
		kube.makeDeployment(t, namespace, "fe")
		p.delivers(t, backend, namespace, "fe", "")
		account{"shop"}.hasNoMore(t, namespace)
	}
	account{"shop"}.isConfined(t, elsewhere)
	assert.Empty(t, backend.Records("k8s.namespace.name", elsewhere))
	p.isWell(t)
	p.terminate(t)
}

// isWell waits until both probes are content, and the log has nothing that calls for attention.
func (p *pod) isWell(t *testing.T) {
	t.Helper()
	var page string
	harness.Eventually(t, func() bool {
		lives, _ := p.lives(t)
		var ready int
		ready, page = p.ready(t)
		return lives == http.StatusOK && ready == http.StatusOK
	}, "both probes of %s: %s\n%s", p.Name, page, p.Output)
	assert.Contains(t, page, `"status":"StatusOK"`)
	assert.Empty(t, p.complaints())
}

// delivers waits until events of a Deployment's Pods have arrived, with their owners.
func (p *pod) delivers(t *testing.T, backend *harness.Backend, namespace, deployment, cluster string) {
	t.Helper()
	var records []harness.Record
	harness.Eventually(t, func() bool {
		records = backend.Records("k8s.namespace.name", namespace, "k8s.object.kind", "Pod", "k8s.deployment.name", deployment, "k8s.event.reason", "Started")
		return len(records) > 0
	}, "a record of Deployment %s", deployment)
	record := records[0]
	assert.Equal(t, "complete", record.Get("k8s.owner.resolution"))
	assert.Equal(t, []any{"replicaset.apps/" + record.Get("k8s.replicaset.name").(string), "deployment.apps/" + deployment}, record.Get("k8s.owner.chain"))
	assert.Equal(t, deployment, record.Get("k8s.workload.name"))
	if cluster == "" {
		assert.Nil(t, record.Get("k8s.cluster.uid"), "it takes a right in the cluster")
	} else {
		assert.Equal(t, cluster, record.Get("k8s.cluster.uid"))
	}
}

// elected waits until one replica leads.
func (c *cluster) elected(t *testing.T, namespace string, replicas []*pod) (leader, standby *pod) {
	t.Helper()
	harness.Eventually(t, func() bool {
		lease, err := c.CoordinationV1().Leases(namespace).Get(t.Context(), "kube-events-leader", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return false
		}
		for i, p := range replicas {
			if p.logged(*lease.Spec.HolderIdentity) {
				leader, standby = p, replicas[1-i]
			}
		}
		return leader != nil
	}, "a leader")
	return leader, standby
}

// newNamespace makes one, in place of one that an earlier run left.
func (c *cluster) newNamespace(t *testing.T, name string) string {
	t.Helper()
	c.remove(t, name)
	_, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return name
}

// remove removes a namespace with all that is in it.
func (c *cluster) remove(t *testing.T, namespace string) {
	t.Helper()
	_ = c.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{})
	harness.Eventually(t, func() bool {
		_, err := c.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, "the end of namespace %s", namespace)
}

// newVolume makes one that a claim is bound to, as a cluster with a storage class does by itself.
func (c *cluster) newVolume(t *testing.T) {
	t.Helper()
	_, err := c.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "volume-"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/none"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// podsOf are the Pods of the newest template of the Deployment, when it is available and they are
// all that there are.
func (c *cluster) podsOf(t *testing.T, namespace string, replicas int32) (pods []*corev1.Pod) {
	t.Helper()
	harness.Eventually(t, func() bool {
		deployment, err := c.AppsV1().Deployments(namespace).Get(t.Context(), "kube-events", metav1.GetOptions{})
		require.NoError(t, err)
		list, err := c.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(deployment.Spec.Selector)})
		require.NoError(t, err)
		pods = nil
		for i := range list.Items {
			pods = append(pods, &list.Items[i])
		}
		return *deployment.Spec.Replicas == replicas && settled(deployment) && len(pods) == int(replicas)
	}, "%d Pods in %s", replicas, namespace)
	return pods
}

func settled(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == *d.Spec.Replicas &&
		d.Status.UpdatedReplicas == *d.Spec.Replicas && d.Status.AvailableReplicas == *d.Spec.Replicas
}

// makeDeployment makes one whose Pods run, according to their events.
func (c *cluster) makeDeployment(t *testing.T, namespace, name string) {
	t.Helper()
	labels := map[string]string{"app": name}
	_, err := c.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// awaitEvents waits until a Deployment's Pod has started, so that all of its events exist.
func (c *cluster) awaitEvents(t *testing.T, namespace, deployment string) {
	t.Helper()
	harness.Eventually(t, func() bool {
		events, err := c.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Started"})
		require.NoError(t, err)
		for _, event := range events.Items {
			p, err := c.CoreV1().Pods(namespace).Get(context.Background(), event.InvolvedObject.Name, metav1.GetOptions{})
			if err == nil && p.Labels["app"] == deployment {
				return true
			}
		}
		return false
	}, "events of %s", deployment)
}

// countedBy counts records by an attribute.
func countedBy(records []harness.Record, attribute string) map[any]int {
	counts := map[any]int{}
	for _, record := range records {
		counts[record.Get(attribute)]++
	}
	return counts
}
