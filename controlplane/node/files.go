// SPDX-License-Identifier: Apache-2.0

package node

import (
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/internal/realnode"
)

// newCgroupName returns a name that no other node uses.
func newCgroupName() string { return "kube-events-node-" + strings.ToLower(rand.Text()[:8]) }

// writeFiles creates the node's directory, with a kubeconfig file for its programs: inside, the API
// server has the node's address.
func (n *Node) writeFiles(config *rest.Config, apiServerPort string) error {
	if err := os.MkdirAll(filepath.Join(n.dir, realnode.Manifests), 0o700); err != nil {
		return err
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["node"] = &clientcmdapi.Cluster{
		Server:                   "https://" + net.JoinHostPort(Address, apiServerPort),
		CertificateAuthorityData: config.CAData,
	}
	kubeconfig.AuthInfos["node"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	kubeconfig.Contexts["node"] = &clientcmdapi.Context{Cluster: "node", AuthInfo: "node"}
	kubeconfig.CurrentContext = "node"
	return clientcmd.WriteToFile(*kubeconfig, filepath.Join(n.dir, realnode.Kubeconfig))
}
