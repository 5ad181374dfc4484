// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// RestrictedKubeconfig creates a service account in the namespace default, with the permissions of
// rules in the whole cluster. It returns the path of a kubeconfig file with a token of this
// account, valid for an hour. The account, its ClusterRole and its ClusterRoleBinding are all named
// name: change or delete them to change the permissions later.
func (cp *ControlPlane) RestrictedKubeconfig(ctx context.Context, name string, rules ...rbacv1.PolicyRule) (string, error) {
	client, err := kubernetes.NewForConfig(cp.config)
	if err != nil {
		return "", err
	}
	if err := createAccount(ctx, client, name, rules); err != nil {
		return "", fmt.Errorf("create service account %s: %w", name, err)
	}
	token, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).
		CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token of service account %s: %w", name, err)
	}
	config := cp.RESTConfig()
	config.BearerToken = token.Status.Token
	return cp.layout.writeKubeconfig(name, config)
}

func createAccount(ctx context.Context, client kubernetes.Interface, name string, rules []rbacv1.PolicyRule) error {
	meta := metav1.ObjectMeta{Name: name}
	_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).
		Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = client.RbacV1().ClusterRoles().
		Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	return err
}
