// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/internal/realnode"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// Address is the node's address. Pods reach the ports in Options.HostPorts there.
const Address = realnode.Address

// ErrUnavailable means that a real node cannot run on this machine. Start returns it.
var ErrUnavailable = errors.New("a real node cannot run on this machine")

// Options describe a node.
type Options struct {
	// HostPorts are ports of this machine's loopback interface that pods reach as the same ports of
	// Address.
	HostPorts []int
}

// Node is a running node. Its methods may be used concurrently.
type Node struct {
	name       string
	dir        string
	binaries   string
	cgroup     string
	supervisor *process.Process
}

// Start starts a node of a control plane that has the options RealNode and ControllerManager. There
// can be one at a time. Start returns when the node is ready for pods, and gives up when ctx ends.
// After an error, nothing is left; the error quotes the log of the program that failed.
func Start(ctx context.Context, cp *controlplane.ControlPlane, options Options) (*Node, error) {
	if err := Check(cp.Binaries()); err != nil {
		return nil, err
	}
	n, err := launch(cp, options)
	if err != nil {
		return nil, fmt.Errorf("start a real node: %w", err)
	}
	if err := n.awaitReady(ctx, cp); err != nil {
		return nil, fmt.Errorf("start a real node: %w", err)
	}
	return n, nil
}

// Check returns an error that names what a real node needs and is missing: ErrUnavailable for the
// machine, controlplane.ErrBinariesMissing for the programs that make builds.
func Check(binaries string) error {
	if missing := realnode.Missing(); len(missing) > 0 {
		return fmt.Errorf("%w, because it lacks: %s", ErrUnavailable, strings.Join(missing, ", "))
	}
	var missing []string
	for _, name := range realnode.Programs() {
		if _, err := os.Stat(filepath.Join(binaries, name)); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s has no %v: `make controlplane` builds them", controlplane.ErrBinariesMissing, binaries, missing)
	}
	return nil
}

// launch writes the node's files and starts its supervisor.
func launch(cp *controlplane.ControlPlane, options Options) (*Node, error) {
	port, err := apiServerPort(cp)
	if err != nil {
		return nil, err
	}
	binaries, err := filepath.Abs(cp.Binaries())
	if err != nil {
		return nil, err
	}
	n := &Node{name: "node-0", dir: cp.NodeDir(), binaries: binaries, cgroup: newCgroupName()}
	if err := n.writeFiles(cp.RESTConfig(), port); err != nil {
		return nil, err
	}
	ports := port
	for _, p := range options.HostPorts {
		ports += fmt.Sprint(",", p)
	}
	n.supervisor, err = process.Start(process.Command{
		Path:       filepath.Join(binaries, "node"),
		Args:       []string{"supervise", "-name", n.name, "-dir", n.dir, "-binaries", binaries, "-cgroup", n.cgroup, "-ports", ports},
		Log:        filepath.Join(n.dir, realnode.Log("node")),
		Attributes: endsInOrder,
	})
	return n, err
}

func apiServerPort(cp *controlplane.ControlPlane) (string, error) {
	address, err := url.Parse(cp.RESTConfig().Host)
	if err != nil {
		return "", err
	}
	return address.Port(), nil
}

// stopTimeout bounds how long the supervisor may take to end all processes and remove what is left.
const stopTimeout = time.Minute

// Stop ends the node and all its containers, and removes everything but the logs. A second Stop
// does nothing.
func (n *Node) Stop() error {
	if err := n.supervisor.Stop(stopTimeout); err != nil {
		return err
	}
	if n.supervisor.ExitCode() != 0 {
		return n.supervisor.Ended()
	}
	return nil
}

// Name returns the name of the Node.
func (n *Node) Name() string { return n.name }

// ImportImage makes the image in an archive available to pods: an OCI archive, or one in the format
// of `docker save`. Pods use it only if they do not always pull their image.
func (n *Node) ImportImage(ctx context.Context, archive string) error {
	socket := filepath.Join(n.dir, realnode.ContainerdSocket)
	output, err := exec.CommandContext(ctx, filepath.Join(n.binaries, "ctr"),
		"--address", socket, "--namespace", "k8s.io", "images", "import", archive).CombinedOutput()
	if err != nil {
		return fmt.Errorf("import %s: %w: %s", archive, err, output)
	}
	return nil
}

// MakeDirectory creates a directory for a volume of pods, and returns its path on the node. It ends
// with the node.
func (n *Node) MakeDirectory(name string) (path string, err error) {
	return filepath.Join(realnode.Dir, realnode.Volumes, name), os.MkdirAll(filepath.Join(n.dir, realnode.Volumes, name), 0o755) //nolint:gosec // pods are other users
}

// AddStaticPod gives the kubelet the manifest of a static pod.
func (n *Node) AddStaticPod(name string, manifest []byte) error {
	// kubelet ignores files that begin with a dot. So it never reads half of a manifest.
	dir := filepath.Join(n.dir, realnode.Manifests)
	hidden := filepath.Join(dir, "."+name)
	if err := os.WriteFile(hidden, manifest, 0o600); err != nil {
		return err
	}
	return os.Rename(hidden, filepath.Join(dir, name+".yaml"))
}

// RemoveStaticPod takes the manifest of a static pod away.
func (n *Node) RemoveStaticPod(name string) error {
	return os.Remove(filepath.Join(n.dir, realnode.Manifests, name+".yaml"))
}
