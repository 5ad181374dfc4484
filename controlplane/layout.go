// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// layout has the paths of the files in the data directory.
type layout struct {
	dir string
}

func (l layout) path(name string) string       { return filepath.Join(l.dir, name) }
func (l layout) log(program string) string     { return l.path(program + ".log") }
func (l layout) kubeconfig(user string) string { return l.path(user + ".kubeconfig") }

// certificate returns the path of the API server's certificate. The API server signs it itself, and
// writes it there with the authority that signed it.
func (l layout) certificate() string { return l.path("certificates/apiserver.crt") }

// writeSecrets writes the key that signs tokens of service accounts, and the administrator's token.
// It keeps those of an earlier control plane. It returns the token.
func (l layout) writeSecrets() (string, error) {
	if err := writeNew(l.path("service-account.key"), newSigningKey); err != nil {
		return "", err
	}
	tokens := l.path("tokens.csv")
	if err := writeNew(tokens, newAdminToken); err != nil {
		return "", err
	}
	line, err := os.ReadFile(tokens)
	token, _, _ := strings.Cut(string(line), ",")
	return token, err
}

// writeNew writes the result of content to path, unless the file exists.
func writeNew(path string, content func() ([]byte, error)) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := content()
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

func newSigningKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

// newAdminToken returns a line of kube-apiserver's token file: token, user, id, groups.
func newAdminToken() ([]byte, error) {
	return fmt.Appendf(nil, "%s,admin,admin,system:masters\n", rand.Text()), nil
}

// writeKubeconfig writes a kubeconfig file for the user of config's token and returns its path.
func (l layout) writeKubeconfig(user string, config *rest.Config) (string, error) {
	const cluster = "controlplane"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[cluster] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	kubeconfig.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	kubeconfig.CurrentContext = cluster

	path := l.kubeconfig(user)
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		return "", fmt.Errorf("write the kubeconfig of %s: %w", user, err)
	}
	return path, nil
}
