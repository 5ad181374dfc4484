// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	env    []corev1.EnvVar // of each container
}

// onCluster measures on a control plane of its own, since what an earlier run left behind would slow
// down the later ones.
func (b *benchmark) onCluster(ctx context.Context, sz size, measure func(*cluster) (values, error)) (v values, err error) {
	kube, err := newCluster(ctx, b.controlPlane, sz)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kube.Stop()) }()
	return measure(kube)
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
	c := &cluster{ControlPlane: cp, client: client, env: make([]corev1.EnvVar, sz.variables)}
	for i := range c.env {
		c.env[i] = corev1.EnvVar{Name: fmt.Sprintf("APP_SETTING_%d", i), Value: strings.Repeat("v", 100)}
	}
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

// deploy makes a Deployment, its ReplicaSets and its pods, as the controllers would. All pods are
// of one of the ReplicaSets. Owners own the Deployment.
func (c *cluster) deploy(ctx context.Context, ns, name string, retired int, pods []corev1.ObjectReference, owners ...metav1.OwnerReference) error {
	labels := map[string]string{"app": name}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{NodeName: "node-0", Containers: []corev1.Container{{Name: "main", Image: "example.com/" + name, Env: c.env}}},
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
	const hash = "5d8f7c9b6d"
	labels = map[string]string{"app": name, "pod-template-hash": hash} // k8s_attributes takes the Deployment's name from it.
	meta := ownedBy(deployment, "Deployment", name+"-"+hash, labels)
	meta.Annotations = map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(deployment.Generation)}
	replicaSet, err := c.client.AppsV1().ReplicaSets(ns).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: meta,
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

// probe makes an event that only finds out whether a Collector watches. It names no object, so the
// Collector looks nothing up. Its time is exact, because k8s_events drops what happened before it
// started.
func (c *cluster) probe(ctx context.Context, at time.Time) error {
	_, err := c.client.CoreV1().Events(metav1.NamespaceDefault).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("probe.%x", at.UnixNano())},
		InvolvedObject: corev1.ObjectReference{Namespace: metav1.NamespaceDefault},
		Reason:         "Probe", Type: corev1.EventTypeNormal, Message: "Is anybody there?", Action: "Probing",
		EventTime: metav1.NewMicroTime(at), ReportingController: "example.com/bench", ReportingInstance: "bench-0",
	}, metav1.CreateOptions{})
	return err
}

// writeEvents makes events about the pods.
func (c *cluster) writeEvents(ctx context.Context, n int) error {
	now := time.Now()
	return inParallel(n, func(i int) error {
		pod := c.pods[i%len(c.pods)]
		name := fmt.Sprintf("%s.%x-%d", pod.Name, now.UnixNano(), i)
		_, err := c.client.CoreV1().Events(pod.Namespace).Create(ctx, kubeletEvent(name, pod, now), metav1.CreateOptions{})
		return err
	})
}

// reads returns how many GET and LIST requests for the resources the API server has answered. Only
// the Collectors read these.
func (c *cluster) reads(ctx context.Context, resources ...string) (n float64, err error) {
	page, err := c.client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	metrics, err := promtext.Parse(page)
	for _, resource := range resources {
		for _, verb := range []string{"GET", "LIST"} {
			n += metrics.Sum("apiserver_request_total", "resource", resource, "verb", verb)
		}
	}
	return n, err
}

// ownerResources are those that the Collector reads to find owners of pods.
var ownerResources = []string{"pods", "replicasets", "deployments"}
