// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/image"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/internal/realnode"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// configurations are the files of the programs. They are constant, because the node has the same
// paths and addresses in every namespace.
//
//go:embed files
var configurations embed.FS

// sandboxImage is the image of the process that keeps the namespaces of a pod.
// files/containerd.toml names it, too.
const sandboxImage = "registry.k8s.io/pause:3.10"

// run sets up the namespaces of this process, and runs the node in them until one of its programs
// ends. It always returns an error.
func (o options) run() error {
	os.Clearenv() // it may name proxies, which cannot be reached
	if err := os.Setenv("PATH", binariesDir+":"+realnode.SearchPath); err != nil {
		return err
	}
	if err := isolateFiles(o.dir, o.binaries); err != nil {
		return err
	}
	if err := createInterface(); err != nil {
		return err
	}
	if err := o.connect(); err != nil {
		return err
	}
	if err := os.CopyFS(nodeDir, configurations); err != nil {
		return err
	}
	return o.runPrograms()
}

func (o options) runPrograms() error {
	containerd, err := start("containerd", "--config="+nodeDir+"/files/containerd.toml")
	if err != nil {
		return err
	}
	if err := await(containerd); err != nil {
		return err
	}
	if err := importSandbox(); err != nil {
		return err
	}
	proxy, err := start("kube-proxy", o.proxyArgs()...)
	if err != nil {
		return err
	}
	for {
		kubelet, err := start("kubelet", o.kubeletArgs()...)
		if err != nil {
			return err
		}
		select {
		case <-containerd.Done():
			return containerd.Ended()
		case <-proxy.Done():
			return proxy.Ended()
		case <-kubelet.Done():
			// The node starts a kubelet that was killed again, as systemd does on a machine. A kubelet that
			// ends by itself cannot work here.
			if kubelet.ExitCode() != 128+int(syscall.SIGKILL) {
				return kubelet.Ended()
			}
		}
	}
}

func start(program string, args ...string) (*process.Process, error) {
	return process.Start(process.Command{
		Path: filepath.Join(binariesDir, program), Args: args, Log: filepath.Join(nodeDir, realnode.Log(program)),
	})
}

func (o options) kubeletArgs() []string {
	return []string{
		"--config=" + nodeDir + "/files/kubelet.yaml",
		"--kubeconfig=" + nodeDir + "/" + realnode.Kubeconfig,
		"--hostname-override=" + o.name,
		"--node-ip=" + realnode.Address,
		"--cgroup-root=/" + o.cgroup,
		"--root-dir=" + nodeDir + "/kubelet",
		"--cert-dir=" + nodeDir + "/certificates",
	}
}

func (o options) proxyArgs() []string {
	return []string{
		"--kubeconfig=" + nodeDir + "/" + realnode.Kubeconfig,
		"--hostname-override=" + o.name,
		"--proxy-mode=nftables",
		// These are settings of the whole machine.
		"--conntrack-max-per-core=0",
		"--conntrack-tcp-timeout-established=0",
		"--conntrack-tcp-timeout-close-wait=0",
	}
}

// await waits until containerd accepts connections.
func await(containerd *process.Process) error {
	for {
		conn, err := net.Dial("unix", filepath.Join(nodeDir, realnode.ContainerdSocket))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-containerd.Done():
			return containerd.Ended()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// importSandbox makes the sandbox image available. Its program waits for SIGTERM if it has no
// arguments.
func importSandbox() error {
	archive := filepath.Join(nodeDir, "sandbox.tar")
	if err := image.Pack(archive, filepath.Join(binariesDir, "workload"), sandboxImage); err != nil {
		return err
	}
	socket := filepath.Join(nodeDir, realnode.ContainerdSocket)
	output, err := exec.Command("ctr", "--address", socket, "--namespace", "k8s.io", "images", "import", archive).CombinedOutput()
	if err != nil {
		return fmt.Errorf("import the sandbox image: %w: %s", err, output)
	}
	return os.Remove(archive)
}
