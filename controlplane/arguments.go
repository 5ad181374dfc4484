// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// errPortTaken reports that another program took a port after freePorts found it free.
var errPortTaken = errors.New("a port was taken by another program")

// loopback is the only address that the programs listen on.
const loopback = "127.0.0.1"

// ports are the ports that the programs listen on. They stay the same for the life of the control
// plane, so that clients find a restarted API server.
type ports struct {
	store, etcdPeer string
	apiServers      []string
}

// freePorts returns ports that no program listens on.
func freePorts(apiServers int) (ports, error) {
	addresses, err := process.FreeAddresses(2 + apiServers)
	if err != nil {
		return ports{}, fmt.Errorf("find free ports: %w", err)
	}
	for i, address := range addresses {
		_, addresses[i], _ = net.SplitHostPort(address)
	}
	return ports{store: addresses[0], etcdPeer: addresses[1], apiServers: addresses[2:]}, nil
}

func (p ports) storeURL() string    { return url("http", p.store) }
func (p ports) etcdPeerURL() string { return url("http", p.etcdPeer) }

func url(scheme, port string) string { return scheme + "://" + net.JoinHostPort(loopback, port) }

func (cp *ControlPlane) storeArgs() []string {
	if cp.store == Kine {
		return cp.kineArgs()
	}
	return []string{
		"--data-dir=" + cp.storeData(),
		"--listen-client-urls=" + cp.ports.storeURL(),
		"--advertise-client-urls=" + cp.ports.storeURL(),
		"--listen-peer-urls=" + cp.ports.etcdPeerURL(),
		"--initial-advertise-peer-urls=" + cp.ports.etcdPeerURL(),
		"--initial-cluster=default=" + cp.ports.etcdPeerURL(),
		// The data need not survive a power failure.
		"--unsafe-no-fsync",
	}
}

// kineArgs returns kine's arguments. Those of SQLite are kine's defaults.
func (cp *ControlPlane) kineArgs() []string {
	return []string{
		"--listen-address=" + strings.TrimPrefix(cp.ports.storeURL(), "http://"),
		"--endpoint=sqlite://" + filepath.Join(cp.storeData(), "state.db") +
			"?_journal_mode=WAL&_busy_timeout=30000&_synchronous=NORMAL&_txlock=immediate",
		"--metrics-bind-address=0",
		// Otherwise, a compaction keeps the newest 1,000 versions, and tests would have to write them.
		"--compact-min-retain=0",
	}
}

func (cp *ControlPlane) apiServerArgs(number int) []string {
	args := []string{
		"--etcd-servers=" + cp.ports.storeURL(),
		"--bind-address=" + loopback,
		"--secure-port=" + cp.ports.apiServers[number],
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
