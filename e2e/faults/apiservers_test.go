// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/account"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/fakeapi"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// balanced is a cluster with three API servers behind one address. What the last one knows of events
// and of their owners is out of date.
type balanced struct {
	*cluster
	kubeconfig string   // leads to all of them
	lagging    []string // the last one's arguments
}

const (
	eventsLag = time.Second
	ownersLag = 500 * time.Millisecond
)

// newBalanced starts one. Its clients use the load balancer, too.
func newBalanced(t *testing.T) *balanced {
	t.Helper()
	c := ownCluster(t, controlplane.Options{APIServers: 3, ControllerManager: true, Scheduler: true, Nodes: 1})
	var addresses []string
	for _, s := range c.APIServers() {
		addresses = append(addresses, s.Address())
	}
	b := &balanced{cluster: c, kubeconfig: fakeapi.NewTCPProxy(t, c.Kubeconfig(), addresses...).Kubeconfig}
	etcd := strings.TrimPrefix(c.EtcdEndpoint(), "http://")
	lateEvents, lateOwners := fakeapi.NewLateProxy(t, etcd, eventsLag), fakeapi.NewLateProxy(t, etcd, ownersLag)
	b.lagging = []string{"--etcd-servers-overrides=/events#http://" + lateEvents}
	for _, resource := range []string{"/pods", "apps/replicasets", "apps/deployments"} {
		b.lagging[0] += "," + resource + "#http://" + lateOwners
	}
	// It counts as ready although etcd answers late.
	b.lagging = append(b.lagging, "--etcd-readycheck-timeout=10s", "--etcd-healthcheck-timeout=10s")
	b.restart(t, 2, func() {})

	config, err := clientcmd.BuildConfigFromFlags("", b.kubeconfig)
	require.NoError(t, err)
	config.QPS, config.Timeout = -1, 10*time.Second
	c.Interface, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return b
}

// restart kills an API server, and starts it again after what happens meanwhile.
func (b *balanced) restart(t *testing.T, number int, meanwhile func()) {
	t.Helper()
	s := b.APIServers()[number]
	require.NoError(t, s.Kill())
	meanwhile()
	var arguments []string
	if number == 2 {
		arguments = b.lagging
	}
	require.NoError(t, s.Start(t.Context(), arguments...))
}

// apiServersRestart kills each of three API servers, while events are written and Deployments roll
// out. The receiver goes from an API server that is up to date to one that is not, and back.
func apiServersRestart(t *testing.T) row {
	b := newBalanced(t)
	f := newFixture(t, b.cluster)
	w := newWorkloads(t, b.cluster)
	f.also = w.namespace
	f.watchedBy(t, b.kubeconfig, withStorage)
	f.begin(t)
	w.rollOut(t)
	b.restartAll(t, f)
	return w.conclude(t, f)
}

// restartAll restarts each API server in turn. Then the receiver has no choice but the one that lags
// behind, and then no choice but the others.
func (b *balanced) restartAll(t *testing.T, f *fixture) {
	t.Helper()
	for number := range b.APIServers() {
		b.restart(t, number, func() { f.load.Grows(t, 100) })
		f.delivers(t, 50)
	}
	b.restart(t, 0, func() {
		b.restart(t, 1, func() {
			f.load.Grows(t, 100)
			f.delivers(t, 50)
		})
	})
	b.restart(t, 2, func() { f.load.Grows(t, 100) })
	f.delivers(t, 50)
}

// workloads are Deployments that roll out again and again.
type workloads struct {
	cluster   *cluster
	namespace string
	stop      context.CancelFunc
	done      sync.WaitGroup
}

const deployments = 3

func newWorkloads(t *testing.T, c *cluster) *workloads {
	t.Helper()
	return &workloads{cluster: c, namespace: c.newNamespace(t)}
}

// rollOut creates the Deployments, and changes their pods every 5 s until the end.
func (w *workloads) rollOut(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	t.Cleanup(w.end)
	for i := range deployments {
		name := fmt.Sprintf("app%d", i)
		w.done.Go(func() {
			for generation := 0; ctx.Err() == nil; generation++ {
				w.write(name, generation)
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Second):
				}
			}
		})
	}
}

func (w *workloads) end() {
	w.stop()
	w.done.Wait()
}

// write tries until an API server has taken it.
func (w *workloads) write(name string, generation int) {
	labels, replicas := map[string]string{"app": name}, int32(1)
	client := w.cluster.AppsV1().Deployments(w.namespace)
	_ = wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if generation > 0 {
			patch := fmt.Appendf(nil, `{"spec": {"template": {"metadata": {"annotations": {"generation": "%d"}}}}}`, generation)
			_, err := client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err == nil, nil
		}
		_, err := client.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
				},
			},
		}, metav1.CreateOptions{})
		return err == nil, nil
	})
}

// truth is how many occurrences of each event the cluster knows.
func (w *workloads) truth(t *testing.T) map[string]int64 {
	t.Helper()
	list, err := w.cluster.CoreV1().Events(w.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	all := map[string]int64{}
	for _, e := range list.Items {
		all[e.Name] = max(1, int64(e.Count))
		if e.Series != nil {
			all[e.Name] = int64(e.Series.Count)
		}
	}
	return all
}

// conclude ends the rollouts and the fixture, and checks that no event about them is lost, and that
// each has its Deployment.
func (w *workloads) conclude(t *testing.T, f *fixture) row {
	t.Helper()
	w.end()
	var outcome account.Outcome
	harness.Poll(time.Minute, func() bool {
		outcome = account.Judge(w.truth(t), accounts(recordsIn(w.namespace, f.sink.allRecords())))
		return outcome.Lost == 0
	})
	assert.Positive(t, outcome.Made, "occurrences about rollouts")
	assert.Zero(t, outcome.Lost, "lost occurrences about rollouts")
	r := f.conclude(t)
	wrong, without := 0, 0
	for _, rec := range recordsIn(w.namespace, f.sink.allRecords()) {
		name, _, _ := strings.Cut(rec.object, "-")
		switch rec.workload {
		case "Deployment/" + name:
		case "":
			without++
			t.Logf("%s has no workload: %s", rec.object, rec.resolution)
		default:
			wrong++
			assert.Fail(t, "wrong owner", "%s has the workload %s", rec.object, rec.workload)
		}
	}
	assert.Zero(t, without, "records about rollouts without a workload")
	r.remark = fmt.Sprintf("and %d occurrences about rollouts: %d lost, %d with a wrong owner, %d without", outcome.Made, outcome.Lost, wrong, without)
	return r
}
