// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Fleet is a set of Deployments with one ReplicaSet each and the Pods of those, spread evenly.
// Nothing of it is held: names identify objects, and the time decides which pods exist.
type Fleet struct {
	Namespaces, Deployments, Pods int

	// Retired is how many more ReplicaSets each Deployment has: those of earlier revisions, which
	// have no pods.
	Retired int

	// Begin is when the first pod is created; one follows after each Every and exists for Lifetime.
	// Without a Lifetime all pods exist at all times.
	Begin           time.Time
	Every, Lifetime time.Duration
}

// templateHash replaces the hash of the one pod template that a Deployment here ever has.
const templateHash = "6f5c9d7b4"

// Created is when a pod is created.
func (f *Fleet) Created(pod int) time.Time { return f.Begin.Add(time.Duration(pod) * f.Every) }

// Deleted is when a pod is deleted, for pods with a Lifetime.
func (f *Fleet) Deleted(pod int) time.Time { return f.Created(pod).Add(f.Lifetime) }

func (f *Fleet) exists(pod int, at time.Time) bool {
	if pod < 0 || pod >= f.Pods {
		return false
	}
	return f.Lifetime == 0 || !at.Before(f.Created(pod)) && at.Before(f.Deleted(pod))
}

// alive is the range of the pods that exist.
func (f *Fleet) alive(at time.Time) (from, to int) {
	if f.Lifetime == 0 {
		return 0, f.Pods
	}
	passed := at.Sub(f.Begin)
	if passed < 0 {
		return 0, 0
	}
	from = int((passed-f.Lifetime)/f.Every) - 1
	to = int(passed/f.Every) + 1
	from, to = max(0, from), min(to, f.Pods)
	for from < to && !f.exists(from, at) {
		from++
	}
	return from, max(from, to)
}

// retiredHash replaces the hash of an earlier pod template.
func retiredHash(revision int) string { return fmt.Sprintf("58d4b%04x", revision) }

func (f *Fleet) deploymentOf(pod int) int { return pod % f.Deployments }

// Namespace is the one of a Deployment and all that it owns.
func (f *Fleet) namespace(deployment int) string {
	return fmt.Sprintf("team-%03d", deployment%f.Namespaces)
}

func deploymentName(deployment int) string { return fmt.Sprintf("app-%04d", deployment) }

func replicaSetName(deployment int) string { return deploymentName(deployment) + "-" + templateHash }

func retiredName(deployment, revision int) string {
	return deploymentName(deployment) + "-" + retiredHash(revision)
}

// podName ends like a generated name: the order of names is not that of creation.
func (f *Fleet) podName(pod int) string {
	return fmt.Sprintf("%s-%06x", replicaSetName(f.deploymentOf(pod)), scatter(pod))
}

const (
	scatterMask  = 1<<24 - 1
	scatterBy    = 0x9e3779
	gatherBy     = 0xb382c9 // scatterBy times this is 1, modulo 2^24
	podKind      = 1
	setKind      = 2
	deployedKind = 3
	retiredKind  = 4 // and above: one for each revision
)

// scatter gives different numbers for different pods, and gather undoes it.
func scatter(pod int) uint32 { return uint32(pod) * scatterBy & scatterMask }

func gather(scattered uint32) int { return int(scattered * gatherBy & scatterMask) }

func uid(kind, number int) types.UID {
	return types.UID(fmt.Sprintf("5eed%04x-0000-4000-8000-%012x", kind, number))
}

// get is nil for what does not exist.
func (f *Fleet) get(resource, namespace, name string, at time.Time) *metav1.PartialObjectMetadata {
	deployment, rest, ok := f.parse(name)
	if !ok || f.namespace(deployment) != namespace {
		return nil
	}
	switch {
	case resource == "deployments" && rest == "":
		return f.deployment(deployment)
	case resource == "replicasets" && rest == templateHash:
		return f.replicaSet(deployment)
	case resource == "replicasets":
		for revision := range f.Retired {
			if rest == retiredHash(revision) {
				return f.retired(deployment, revision)
			}
		}
	case resource == "pods":
		suffix, _ := strings.CutPrefix(rest, templateHash+"-")
		scattered, err := strconv.ParseUint(suffix, 16, 24)
		if pod := gather(uint32(scattered)); err == nil && f.exists(pod, at) && f.podName(pod) == name {
			return f.pod(pod)
		}
	}
	return nil
}

// parse takes a name apart after the Deployment's.
func (f *Fleet) parse(name string) (deployment int, rest string, ok bool) {
	numbered, ok := strings.CutPrefix(name, "app-")
	if !ok {
		return 0, "", false
	}
	number, rest, _ := strings.Cut(numbered, "-")
	deployment, err := strconv.Atoi(number)
	return deployment, rest, err == nil && deployment < f.Deployments
}

// listed is an object of a listing. It is described only if it is on the page.
type listed struct {
	place    string // orders objects as etcd does: namespace and name
	describe func() *metav1.PartialObjectMetadata
}

// list gives what exists in a namespace, or in all of them if it is empty, in the order
// of an API server.
func (f *Fleet) list(resource, namespace string, at time.Time) (all []listed) {
	from, to := f.alive(at)
	for deployment := range f.deploymentsIn(namespace) {
		in := f.namespace(deployment) + "/"
		switch resource {
		case "deployments":
			all = append(all, listed{in + deploymentName(deployment), func() *metav1.PartialObjectMetadata { return f.deployment(deployment) }})
		case "replicasets":
			all = append(all, listed{in + replicaSetName(deployment), func() *metav1.PartialObjectMetadata { return f.replicaSet(deployment) }})
			for revision := range f.Retired {
				all = append(all, listed{in + retiredName(deployment, revision), func() *metav1.PartialObjectMetadata { return f.retired(deployment, revision) }})
			}
		case "pods":
			for pod := f.podFrom(from, deployment); pod < to; pod += f.Deployments {
				all = append(all, listed{in + f.podName(pod), func() *metav1.PartialObjectMetadata { return f.pod(pod) }})
			}
		}
	}
	slices.SortFunc(all, func(a, b listed) int { return cmp.Compare(a.place, b.place) })
	return all
}

// deploymentsIn are those of a namespace, or all if it is empty.
func (f *Fleet) deploymentsIn(namespace string) iter.Seq[int] {
	first, step := 0, 1
	if namespace != "" {
		number, err := strconv.Atoi(strings.TrimPrefix(namespace, "team-"))
		if err != nil || number < 0 || number >= f.Namespaces || f.namespace(number) != namespace {
			return func(func(int) bool) {}
		}
		first, step = number, f.Namespaces
	}
	return func(yield func(int) bool) {
		for deployment := first; deployment < f.Deployments && yield(deployment); deployment += step {
		}
	}
}

// podFrom is the first pod of a Deployment that is not below another pod.
func (f *Fleet) podFrom(from, deployment int) int {
	return from + (deployment-from%f.Deployments+f.Deployments)%f.Deployments
}

func (f *Fleet) deployment(deployment int) *metav1.PartialObjectMetadata {
	name := deploymentName(deployment)
	return described(uid(deployedKind, deployment), f.namespace(deployment), name, map[string]string{
		"app.kubernetes.io/name": name, "tilt-manifest": "manifest-" + strconv.Itoa(deployment),
	}, nil)
}

func (f *Fleet) replicaSet(deployment int) *metav1.PartialObjectMetadata {
	name := deploymentName(deployment)
	owner := owner("Deployment", name, uid(deployedKind, deployment))
	return described(uid(setKind, deployment), f.namespace(deployment), replicaSetName(deployment), map[string]string{
		"app.kubernetes.io/name": name, "pod-template-hash": templateHash,
	}, owner)
}

func (f *Fleet) retired(deployment, revision int) *metav1.PartialObjectMetadata {
	name := deploymentName(deployment)
	owner := owner("Deployment", name, uid(deployedKind, deployment))
	return described(uid(retiredKind+revision, deployment), f.namespace(deployment), retiredName(deployment, revision), map[string]string{
		"app.kubernetes.io/name": name, "pod-template-hash": retiredHash(revision),
	}, owner)
}

func (f *Fleet) pod(pod int) *metav1.PartialObjectMetadata {
	deployment := f.deploymentOf(pod)
	owner := owner("ReplicaSet", replicaSetName(deployment), uid(setKind, deployment))
	described := described(uid(podKind, pod), f.namespace(deployment), f.podName(pod), map[string]string{
		"app.kubernetes.io/name": deploymentName(deployment), "pod-template-hash": templateHash,
	}, owner)
	described.ManagedFields = []metav1.ManagedFieldsEntry{
		managedBy("kube-controller-manager", fieldsOfPod, described.CreationTimestamp.Time),
		managedBy("kubelet", fieldsOfPodStatus, described.CreationTimestamp.Time),
	}
	return described
}

func owner(kind, name string, uid types.UID) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: &yes, BlockOwnerDeletion: &yes}}
}

func described(uid types.UID, namespace, name string, labels map[string]string, owners []metav1.OwnerReference) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metadataType, ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: namespace, UID: uid, ResourceVersion: "1000", Labels: labels, OwnerReferences: owners,
		CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)),
	}}
}
