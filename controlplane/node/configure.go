// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/internal/realnode"
)

// ConfigureKubelet sets fields of a KubeletConfiguration, in YAML, which take precedence over the
// node's own configuration, and starts kubelet again. The containers continue.
func (n *Node) ConfigureKubelet(fields string) error {
	if err := n.writeKubeletFields(fields); err != nil {
		return err
	}
	return n.KillKubelet()
}

// writeKubeletFields writes a file in the directory whose files take precedence over kubelet's
// configuration.
func (n *Node) writeKubeletFields(fields string) error {
	dir := filepath.Join(n.dir, realnode.KubeletConfigurations)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	content := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + fields
	return os.WriteFile(filepath.Join(dir, "options.conf"), []byte(content), 0o600)
}
