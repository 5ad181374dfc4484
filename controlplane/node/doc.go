// SPDX-License-Identifier: Apache-2.0

// Package node runs a real node of a control plane on this machine: containerd, kubelet and
// kube-proxy. Pods run as containers, and their events are those of a real kubelet. It needs Linux,
// root, and a few programs of the machine: Start returns an error that names what is missing.
//
// The node changes nothing on the machine. A supervisor, the program cmd/node, starts it in a PID,
// a mount and a network namespace of its own. When the first process there ends, the kernel ends
// all other processes in these namespaces, with all mounts, interfaces and packet filter rules.
// Then the supervisor removes the node's cgroup and files. It does so after Stop, and also when the
// process that called Start ends in whatever way.
//
// No interface connects the network of the node with the machine. Two sockets in the file system
// do: through one, the API server reaches kubelet, pods and Services. Through the other, pods reach
// the API server and the ports in Options.HostPorts. They find the API server through the Service
// kubernetes, as in any cluster. Nothing else outside can be reached, and there is no cluster DNS:
// a pod reaches a Service by its address. Images must be imported, or be in a registry on one of
// Options.HostPorts, with the name 127.0.0.1:PORT/…; every other pull fails.
//
// The kubelet is an administrator of the cluster, and anyone who can connect to it may use it.
package node
