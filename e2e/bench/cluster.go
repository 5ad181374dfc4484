// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/promtext"
)

// cluster is a control plane: etcd and kube-apiserver, and nothing else that would use processor
// time or ask for owners.
type cluster struct {
	*controlplane.ControlPlane
	client kubernetes.Interface
	pods   []corev1.ObjectReference
}

// newCluster starts one with the pods of the Deployments, evenly spread over namespaces.
func newCluster(ctx context.Context, binaries string, sz size) (*cluster, error) {
	cp, err := controlplane.Start(ctx, controlplane.Options{Binaries: binaries})
	if err != nil {
		return nil, err
	}
	config := cp.RESTConfig()
	config.ContentType = "application/vnd.kubernetes.protobuf" // The load should use little of the processor.
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	c := &cluster{ControlPlane: cp, client: client}
	if err := c.populate(ctx, sz); err != nil {
		return nil, errors.Join(fmt.Errorf("make the pods: %w", err), cp.Stop())
	}
	return c, nil
}

func (c *cluster) populate(ctx context.Context, sz size) error {
	for i := range sz.namespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceName(i)}}
		if _, err := c.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	perDeployment := sz.pods / sz.deployments
	c.pods = make([]corev1.ObjectReference, sz.deployments*perDeployment)
	return inParallel(sz.deployments, func(i int) error {
		return c.deploy(ctx, namespaceName(i%sz.namespaces), fmt.Sprintf("app-%d", i), sz.retired, c.pods[i*perDeployment:(i+1)*perDeployment])
	})
}

func namespaceName(i int) string { return fmt.Sprintf("team-%d", i) }

// writers is how many requests go out at a time.
const writers = 16

// inParallel calls do for each number below n, and returns when all calls have.
func inParallel(n int, do func(i int) error) error {
	var workers sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		workers.Go(func() {
			for i := w; i < n && errs[w] == nil; i += writers {
				errs[w] = do(i)
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// shuffle puts the pods into a random order, always the same.
func (c *cluster) shuffle() {
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(c.pods), func(i, j int) { c.pods[i], c.pods[j] = c.pods[j], c.pods[i] })
}

// deploy makes a Deployment, its ReplicaSets and its pods, as the controllers would. All pods are
// of one of the ReplicaSets. Owners own the Deployment.
func (c *cluster) deploy(ctx context.Context, ns, name string, retired int, pods []corev1.ObjectReference, owners ...metav1.OwnerReference) error {
	labels := map[string]string{"app": name}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{NodeName: "node-0", Containers: []corev1.Container{{Name: "main", Image: "example.com/" + name}}},
	}
	deployment, err := c.client.AppsV1().Deployments(ns).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name, "tilt-manifest": name}, OwnerReferences: owners},
		Spec:       appsv1.DeploymentSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for i := range retired {
		if _, err := c.client.AppsV1().ReplicaSets(ns).Create(ctx, &appsv1.ReplicaSet{
			ObjectMeta: ownedBy(deployment, "Deployment", fmt.Sprintf("%s-58d4b%04d", name, i), labels),
			Spec:       appsv1.ReplicaSetSpec{Selector: selector, Template: template},
		}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	replicaSet, err := c.client.AppsV1().ReplicaSets(ns).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: ownedBy(deployment, "Deployment", name+"-5d8f7c9b6d", labels),
		Spec:       appsv1.ReplicaSetSpec{Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for i := range pods {
		pod, err := c.client.CoreV1().Pods(ns).Create(ctx, &corev1.Pod{
			ObjectMeta: ownedBy(replicaSet, "ReplicaSet", fmt.Sprintf("%s-x%04d", replicaSet.Name, i), labels),
			Spec:       template.Spec,
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		pods[i] = corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: ns, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			FieldPath: "spec.containers{main}",
		}
	}
	return nil
}

func ownedBy(owner metav1.Object, kind, name string, labels map[string]string) metav1.ObjectMeta {
	controller := true
	return metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &controller,
	}}}
}

// deploymentOf is the name of the Deployment that a pod of deploy belongs to.
func deploymentOf(pod string) string {
	app, _, _ := strings.Cut(strings.TrimPrefix(pod, "app-"), "-")
	return "app-" + app
}

// kubeletEvent is an event as a kubelet's recorder writes it.
func kubeletEvent(name string, pod corev1.ObjectReference, at time.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: pod.Namespace}, InvolvedObject: pod,
		Reason: "BackOff", Type: corev1.EventTypeWarning,
		Message:             "Back-off restarting failed container main in pod " + pod.Name + "_" + pod.Namespace + "(" + string(pod.UID) + ")",
		Source:              corev1.EventSource{Component: "kubelet", Host: "node-0"},
		ReportingController: "kubelet", ReportingInstance: "node-0",
		Count: 1, FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at),
	}
}

// probe makes an event that only finds out whether a Collector watches. Its time is exact, because
// k8s_events drops what happened before it started, and a time in whole seconds would seem to.
func (c *cluster) probe(ctx context.Context, name string, at time.Time) error {
	_, err := c.client.CoreV1().Events(metav1.NamespaceDefault).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: name},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: metav1.NamespaceDefault, Name: metav1.NamespaceDefault},
		Reason:         "Probe", Type: corev1.EventTypeNormal, Message: "Is anybody there?", Action: "Probing",
		EventTime: metav1.NewMicroTime(at), ReportingController: "example.com/bench", ReportingInstance: "bench-0",
	}, metav1.CreateOptions{})
	return err
}

// probeUntilReceived makes a probe every 100 ms until a sink that has received nothing so far
// receives one, and returns when that was.
func (c *cluster) probeUntilReceived(ctx context.Context, s *sink) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("none of the probes has arrived"))
	var probes sync.WaitGroup
	defer probes.Wait()
	defer cancel()
	var first time.Time
	next := time.Now()
	err := apiwait.PollUntilContextCancel(ctx, 2*time.Millisecond, true, func(context.Context) (bool, error) {
		if now := time.Now(); !now.Before(next) {
			next = next.Add(100 * time.Millisecond)
			// Without waiting for the answer: an API server that is busy would slow down the clock.
			// A probe that fails is none, and the next one comes soon.
			probes.Go(func() { _ = c.probe(ctx, fmt.Sprintf("probe.%x", now.UnixNano()), now) })
		}
		first = s.firstArrival()
		return !first.IsZero(), nil
	})
	if err != nil {
		return time.Time{}, context.Cause(ctx)
	}
	return first, nil
}

// awaitWatching waits until a Collector watches. Events that name no object find that out without a
// lookup: what a Collector does at its first one is left to the scenario.
func (c *cluster) awaitWatching(ctx context.Context, s *sink) error {
	err := until(ctx, time.Minute, "the Collector watches", func() bool {
		now := time.Now()
		_, _ = c.client.CoreV1().Events(metav1.NamespaceDefault).Create(ctx, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("nothing.%x", now.UnixNano())},
			InvolvedObject: corev1.ObjectReference{Namespace: metav1.NamespaceDefault},
			Reason:         "Probe", Type: corev1.EventTypeNormal, Source: corev1.EventSource{Component: "bench"},
			Count: 1, FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now),
		}, metav1.CreateOptions{})
		_ = wait(ctx, 40*time.Millisecond)
		return !s.firstArrival().IsZero()
	})
	if err != nil {
		return err
	}
	if err := wait(ctx, time.Second); err != nil { // for late ones
		return err
	}
	s.reset()
	return nil
}

// listedOwners is how many objects of lists of owners the API server has sent, from its cache and
// from etcd.
func (c *cluster) listedOwners(ctx context.Context) (total int, err error) {
	metrics, err := c.metrics(ctx)
	for _, resource := range ownerResources {
		for _, metric := range []string{"apiserver_cache_list_returned_objects_total", "apiserver_storage_list_returned_objects_total"} {
			total += int(metrics.Sum(metric, "resource", resource))
		}
	}
	return total, err
}

var ownerResources = []string{"pods", "replicasets", "deployments"}

func (c *cluster) metrics(ctx context.Context) (promtext.Metrics, error) {
	page, err := c.client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	return promtext.Parse(page)
}

// requestCounts are numbers of requests, by verb and resource.
type requestCounts map[string]int

// ownerRequests are the reading requests for owners that the API server has answered; nothing but
// the Collectors makes any.
func (c *cluster) ownerRequests(ctx context.Context) (requestCounts, error) {
	metrics, err := c.metrics(ctx)
	if err != nil {
		return nil, err
	}
	counts := requestCounts{}
	for _, resource := range ownerResources {
		for _, verb := range []string{"GET", "LIST", "WATCH"} {
			if n := int(metrics.Sum("apiserver_request_total", "resource", resource, "verb", verb)); n > 0 {
				counts[verb+" "+resource] = n
			}
		}
	}
	return counts, nil
}

// since are the requests that have come since earlier ones.
func (r requestCounts) since(earlier requestCounts) requestCounts {
	counts := requestCounts{}
	for what, n := range r {
		if more := n - earlier[what]; more > 0 {
			counts[what] = more
		}
	}
	return counts
}

// gets is how many of them are for one object.
func (r requestCounts) gets() (sum int) {
	for _, resource := range ownerResources {
		sum += r["GET "+resource]
	}
	return sum
}

func (r requestCounts) total() (sum int) {
	for _, n := range r {
		sum += n
	}
	return sum
}
