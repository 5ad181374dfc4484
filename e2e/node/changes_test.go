// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// stage is a change of a workload, or near it, after which its container ends again and again.
type stage struct {
	name string // also of its namespace
	// do is what the container does before the change, with an argument.
	do   corev1.EnvVar
	with string

	manager             string // who creates the workload
	labels, annotations map[string]string
	copies              int // of the workload; 0 means 1
	shared              int // workloads that have the problem together
	change              func(t *testing.T, s *staged)

	first string // part of the first cause; empty: there is none
	also  string // part of another one
	never string // no cause has it

	unknown string // part of why no cause is known
}

const (
	byHand = "kubectl-edit"
	argo   = "argocd-controller"

	toCrash     = `{"data":{"do":"crash"}}`
	ofCrashes   = `{"spec":{"template":{"spec":{"containers":[{"name":"app","env":[{"name":"DO","value":"crash"}]}]}}}}`
	inSettings  = "/etc/settings/do"
	inKeys      = "/etc/keys/do"
	changedEnv  = "was rolled out: env app DO changed"
	argoTracked = "argocd.argoproj.io/tracking-id"
)

var changeStages = []stage{
	{
		name: "image", change: patched(byHand, `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"`+brokenImage+`"}]}}}}`),
		first: "was rolled out: image app: " + workloadImage + " → " + brokenImage + ", by kubectl-edit",
	},
	{name: "env", change: patched(byHand, ofCrashes), first: changedEnv + ", by kubectl-edit"},
	{
		name: "command", change: patched(byHand, `{"spec":{"template":{"spec":{"containers":[{"name":"app","command":["/missing","s3cret-command"]}]}}}}`),
		first: "was rolled out: command app added, by kubectl-edit",
	},
	{
		name: "limit", do: corev1.EnvVar{Value: "memory"}, with: "30",
		change: patched(byHand, `{"spec":{"template":{"spec":{"containers":[{"name":"app","resources":{"limits":{"memory":"24Mi"}}}]}}}}`),
		first:  "memory limit app: 64Mi → 24Mi",
	},
	{
		name: "hashed", do: corev1.EnvVar{ValueFrom: &corev1.EnvVarSource{}},
		change: patched(byHand, `{"spec":{"template":{"spec":{"containers":[{"name":"app","envFrom":[{"configMapRef":{"name":"options-9d21c"}}]}]}}}}`),
		first:  "was rolled out: configmap options: options-6f4b1 → options-9d21c, by kubectl-edit",
	},
	{
		name: "checksum", do: fromConfigMap, manager: "helm",
		change: func(t *testing.T, s *staged) {
			s.patchConfigMap(t, "settings", "helm", toCrash)
			s.patch(t, "web", "helm", `{"spec":{"template":{"metadata":{"annotations":{"checksum/config":"s3cret-after"}}}}}`)
		},
		// Both are what helm did. The first rollout of the workload, which is new, is the reason of their order.
		first: "was rolled out: annotation checksum/config changed, by helm", also: "the ConfigMap settings was changed by helm",
	},
	{
		name: "restart", do: fromSecret,
		change: func(t *testing.T, s *staged) {
			s.patchSecret(t)
			s.patch(t, "web", "kubectl-rollout", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"`+time.Now().Format(time.RFC3339)+`"}}}}}`)
		},
		first: "was rolled out: restart by hand at ",
	},
	{
		name: "argo-2", manager: argo, labels: map[string]string{"app.kubernetes.io/instance": "shop"},
		change: synced("shop", "web", ofCrashes),
		first:  changedEnv + ", by argocd-controller, deployed by application.argoproj.io/shop", also: "admin synced application shop to 8a1cb4a",
	},
	{
		name: "argo-3", manager: argo, annotations: map[string]string{argoTracked: "store:apps/Deployment:argo-3/web"},
		change: synced("store", "web", ofCrashes),
		first:  changedEnv + ", by argocd-controller, deployed by application.argoproj.io/store", also: "admin synced application store to 8a1cb4a",
	},
	{
		name: "flux-kustomization", manager: "kustomize-controller",
		labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
		change: func(t *testing.T, s *staged) {
			s.patch(t, "web", "kustomize-controller", ofCrashes)
			s.report(t, kustomization("apps"), "kustomize-controller", "Progressing", "Deployment/flux-kustomization/web configured")
			s.report(t, kustomization("apps"), "kustomize-controller", "ReconciliationSucceeded", "Reconciliation finished in 412.2ms, next run in 10m0s")
		},
		first: changedEnv + ", by kustomize-controller, deployed by kustomization.kustomize.toolkit.fluxcd.io/apps",
		also:  "kustomization apps: Deployment/flux-kustomization/web configured",
	},
	{
		name: "flux-helm", manager: "helm-controller",
		labels:      map[string]string{"helm.toolkit.fluxcd.io/name": "store", "helm.toolkit.fluxcd.io/namespace": "flux-system"},
		annotations: map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "flux-helm"},
		change: func(t *testing.T, s *staged) {
			s.patch(t, "web", "helm-controller", ofCrashes)
			s.report(t, helmRelease("store"), "helm-controller", "UpgradeSucceeded", "Helm upgrade succeeded for release flux-helm/web.v2 with chart web@1.2.0")
		},
		first: changedEnv + ", by helm-controller, deployed by helmrelease.helm.toolkit.fluxcd.io/store",
		also:  "helmrelease store: Helm upgrade succeeded for release flux-helm/web.v2 with chart web@1.2.0",
	},
	{
		name: "helm", manager: "helm", annotations: map[string]string{"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": "helm"},
		change: patched("helm", ofCrashes), first: changedEnv + ", by helm, deployed by helm/shop",
	},
	{
		name: "argo-other-name", manager: argo, annotations: map[string]string{argoTracked: "front:apps/Deployment:argo-other-name/web"},
		change: func(t *testing.T, s *staged) {
			s.report(t, application("web", "argo-other-name"), "argocd-application-controller", "OperationCompleted", "Sync operation to 1111111 succeeded")
			synced("front", "web", ofCrashes)(t, s)
		},
		first: changedEnv + ", by argocd-controller, deployed by application.argoproj.io/front",
		also:  "admin synced application front to 8a1cb4a", never: "application web",
	},
	{
		name: "argo-two", manager: argo, copies: 2, annotations: map[string]string{argoTracked: "checkout:apps/Deployment:argo-two/web"},
		change: func(t *testing.T, s *staged) {
			synced("checkout", "web", ofCrashes)(t, s)
			synced("stock", "web-1", `{"spec":{"template":{"spec":{"containers":[{"name":"app","env":[{"name":"NEW","value":"s3cret-new"}]}]}}}}`)(t, s)
		},
		first: changedEnv + ", by argocd-controller, deployed by application.argoproj.io/checkout",
		also:  "admin synced application checkout to 8a1cb4a", never: "application stock",
	},
	{
		name: "unused", do: corev1.EnvVar{Value: "follow"}, with: inKeys,
		unknown: "no ConfigMap that it uses has changed since",
		change: func(t *testing.T, s *staged) {
			s.awaitQuiet(t)
			s.patchConfigMap(t, "unused", byHand, toCrash)
			s.patchSecret(t)
		},
	},
	{
		name: "heartbeat", do: corev1.EnvVar{Value: "follow"}, with: inKeys,
		change: func(t *testing.T, s *staged) {
			s.beat(t)
			s.awaitQuiet(t)
			s.patchSecret(t)
		},
	},
	{
		name: "settings", copies: 10, shared: 10, do: corev1.EnvVar{Value: "follow"}, with: inSettings,
		change: func(t *testing.T, s *staged) {
			s.awaitQuiet(t)
			s.patchConfigMap(t, "settings", byHand, toCrash)
		},
		first: "the ConfigMap settings was changed by kubectl-edit",
	},
}

var (
	fromConfigMap = corev1.EnvVar{ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "do",
	}}}
	fromSecret = corev1.EnvVar{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "do",
	}}}
)

// patched changes the workload as a manager does.
func patched(manager, patch string) func(*testing.T, *staged) {
	return func(t *testing.T, s *staged) { s.patch(t, "web", manager, patch) }
}

// synced changes a workload as a sync of Argo CD does. The messages are those of its audit log.
// (argo-cd/util/argo/audit_logger.go; server/application/application.go; controller/appcontroller.go)
func synced(app, workload, patch string) func(*testing.T, *staged) {
	return func(t *testing.T, s *staged) {
		of := application(app, "argocd")
		s.report(t, of, "argocd-server", "OperationStarted", "admin initiated sync to main (8a1cb4a)")
		s.patch(t, workload, argo, patch)
		s.report(t, of, "argocd-application-controller", "OperationCompleted", "Sync operation to 8a1cb4a succeeded")
	}
}

func application(name, namespace string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "argoproj.io/v1alpha1", Kind: "Application", Namespace: namespace, Name: name, UID: types.UID("argo-" + name)}
}

func kustomization(name string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "flux-system", Name: name, UID: types.UID("flux-" + name)}
}

func helmRelease(name string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "helm.toolkit.fluxcd.io/v2", Kind: "HelmRelease", Namespace: "flux-system", Name: name, UID: types.UID("flux-" + name)}
}
