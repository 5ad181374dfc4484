// This module only pins the programs of containerd, with all their dependencies. There is no Go code
// here. `make controlplane` builds them into build/controlplane.
module github.com/kubeevents/kubeeventsreceiver/tools/containerd

go 1.26.0

tool (
	github.com/containerd/containerd/v2/cmd/containerd
	github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2
	github.com/containerd/containerd/v2/cmd/ctr
)
