// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

// errPortTaken reports that another program took a port after freePorts found it free.
var errPortTaken = errors.New("a port was taken by another program")

// loopback is the only address that the programs listen on.
const loopback = "127.0.0.1"

// ports are the ports that the programs listen on. They stay the same for the life of the control
// plane, so that clients find a restarted API server.
type ports struct {
	etcd, etcdPeer, apiServer int
}

// freePorts returns ports that no program listens on.
func freePorts() (ports, error) {
	var p ports
	for _, port := range []*int{&p.etcd, &p.etcdPeer, &p.apiServer} {
		listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
		if err != nil {
			return ports{}, fmt.Errorf("find a free port on %s: %w", loopback, err)
		}
		defer listener.Close() // after all are known, so that they differ
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	return p, nil
}

func (p ports) etcdURL() string      { return url("http", p.etcd) }
func (p ports) etcdPeerURL() string  { return url("http", p.etcdPeer) }
func (p ports) apiServerURL() string { return url("https", p.apiServer) }

func url(scheme string, port int) string {
	return scheme + "://" + net.JoinHostPort(loopback, strconv.Itoa(port))
}

func (cp *ControlPlane) etcdArgs() []string {
	return []string{
		"--data-dir=" + cp.layout.path("etcd"),
		"--listen-client-urls=" + cp.ports.etcdURL(),
		"--advertise-client-urls=" + cp.ports.etcdURL(),
		"--listen-peer-urls=" + cp.ports.etcdPeerURL(),
		"--initial-advertise-peer-urls=" + cp.ports.etcdPeerURL(),
		"--initial-cluster=default=" + cp.ports.etcdPeerURL(),
		// The data need not survive a power failure.
		"--unsafe-no-fsync",
	}
}

func (cp *ControlPlane) apiServerArgs() []string {
	args := []string{
		"--etcd-servers=" + cp.ports.etcdURL(),
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(cp.ports.apiServer),
		"--cert-dir=" + cp.layout.path("certificates"),
		"--token-auth-file=" + cp.layout.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + cp.layout.path("service-account.key"),
		"--service-account-signing-key-file=" + cp.layout.path("service-account.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
	}
	args = append(args, cp.addressArgs()...)
	if !cp.options.ControllerManager {
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if cp.options.EventTTL > 0 {
		args = append(args, "--event-ttl="+cp.options.EventTTL.String())
	}
	return append(args, cp.options.APIServerArgs...)
}

func (cp *ControlPlane) controllerManagerArgs() []string {
	return append(cp.clientArgs(),
		"--service-account-private-key-file="+cp.layout.path("service-account.key"),
		"--root-ca-file="+cp.layout.certificate(),
	)
}

func (cp *ControlPlane) schedulerArgs() []string { return cp.clientArgs() }

// clientArgs returns the common arguments of the controller manager and the scheduler: one replica,
// no server, and no rate limit that slows it down.
func (cp *ControlPlane) clientArgs() []string {
	return []string{
		"--kubeconfig=" + cp.Kubeconfig(),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	}
}
