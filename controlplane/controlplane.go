// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// Options select the parts of a control plane. The zero value means etcd and kube-apiserver.
type Options struct {
	// Binaries is the directory of the programs. Empty means the directory in the environment
	// variable KUBEBUILDER_ASSETS. If it has kine and no etcd, kine keeps the cluster's data in
	// SQLite, as k3s and k3d do.
	Binaries string
	// DataDir is the directory of certificates, logs and the cluster's data. Start creates it if it
	// does not exist. Empty means a temporary directory that Stop removes.
	DataDir string
	// EventTTL is how long the API server keeps events. Zero means its default, one hour.
	EventTTL time.Duration
	// APIServers is the number of API servers of the cluster. Zero means one. The clients that this
	// package starts use the first.
	APIServers int
	// APIServerArgs are additional arguments of kube-apiserver. They take precedence over the
	// arguments of this package.
	APIServerArgs []string
	// ControllerManager starts kube-controller-manager. Without it, the API server admits pods
	// without a service account, because nothing creates one.
	ControllerManager bool
	// Scheduler starts kube-scheduler.
	Scheduler bool
	// Nodes is the number of simulated nodes, named node-0 and up. They need ControllerManager,
	// which marks them as ready.
	Nodes int
	// RealNode prepares the API server for a node of package node, which needs ControllerManager. Then
	// there can be no simulated nodes.
	RealNode bool
}

// ControlPlane is a running control plane. Its methods may be used concurrently, but those that
// start and end one API server only one after the other.
type ControlPlane struct {
	options    Options
	store      string // the program that keeps the cluster's data
	temporary  bool   // whether Stop removes the data directory
	layout     layout
	ports      ports
	apiServers []*APIServer
	token      string       // of a user in system:masters
	config     *rest.Config // with that token, for the first API server; not changed once it is ready

	mu     sync.Mutex         // guards the field below, and the processes of the API servers
	others []*process.Process // in the order they were started
}

// Start starts a control plane and returns when the control plane and its nodes are ready. It gives
// up when ctx ends. After an error, it stops what it has started; the error quotes the log of the
// program that failed.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	// Another program may have taken a free port in the meantime. Then try other ports.
	const attempts = 3
	for attempt := 1; ; attempt++ {
		cp, err := startOnce(ctx, options)
		if err == nil || attempt == attempts || !errors.Is(err, errPortTaken) {
			return cp, err
		}
	}
}

func startOnce(ctx context.Context, options Options) (*ControlPlane, error) {
	cp, err := prepare(options)
	if err != nil {
		return nil, err
	}
	if err := cp.startAll(ctx); err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	return cp, nil
}

// prepare writes the files that the programs need.
func prepare(options Options) (*ControlPlane, error) {
	if options.Binaries == "" {
		options.Binaries = os.Getenv("KUBEBUILDER_ASSETS")
	}
	if options.RealNode && options.Nodes > 0 {
		return nil, errors.New("kwok would also simulate the real node: set Options.Nodes or Options.RealNode, not both")
	}
	cp := &ControlPlane{options: options, store: StoreIn(options.Binaries), temporary: options.DataDir == ""}
	if err := cp.checkBinaries(); err != nil {
		return nil, err
	}
	if err := cp.makeDataDir(); err != nil {
		return nil, fmt.Errorf("create the control plane's data directory: %w", err)
	}
	var err error
	if cp.ports, err = freePorts(max(1, options.APIServers)); err != nil {
		return nil, err
	}
	for i := range cp.ports.apiServers {
		cp.apiServers = append(cp.apiServers, &APIServer{cp: cp, number: i})
	}
	if cp.token, err = cp.layout.writeSecrets(); err != nil {
		return nil, fmt.Errorf("write the control plane's credentials: %w", err)
	}
	if err := cp.prepareForRealNode(); err != nil {
		return nil, fmt.Errorf("prepare the control plane for a real node: %w", err)
	}
	return cp, nil
}

// checkBinaries returns one error that names all missing programs.
func (cp *ControlPlane) checkBinaries() error {
	if cp.options.Binaries == "" {
		return errors.New("no directory of control plane programs: set Options.Binaries or the environment variable KUBEBUILDER_ASSETS")
	}
	var missing []string
	for _, name := range cp.programs() {
		if _, err := os.Stat(cp.binary(name)); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s has no %v: `make controlplane` builds them into build/controlplane",
			ErrBinariesMissing, cp.options.Binaries, missing)
	}
	return nil
}

// ErrBinariesMissing means that the directory does not have all programs. Start returns it.
var ErrBinariesMissing = errors.New("control plane programs are missing")

func (cp *ControlPlane) programs() []string {
	programs := []string{cp.store, "kube-apiserver"}
	if cp.options.ControllerManager {
		programs = append(programs, "kube-controller-manager")
	}
	if cp.options.Scheduler {
		programs = append(programs, "kube-scheduler")
	}
	if cp.options.Nodes > 0 {
		programs = append(programs, "kwok")
	}
	return programs
}

func (cp *ControlPlane) binary(name string) string {
	return filepath.Join(cp.options.Binaries, name)
}

func (cp *ControlPlane) makeDataDir() error {
	dir := cp.options.DataDir
	if cp.temporary {
		var err error
		if dir, err = makeTemporaryDir(); err != nil {
			return err
		}
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	abs, err := filepath.Abs(dir)
	cp.layout = layout{dir: abs}
	return err
}

func (cp *ControlPlane) startAll(ctx context.Context) error {
	if err := cp.makeStoreData(); err != nil {
		return err
	}
	if err := cp.start(cp.store, cp.storeArgs()); err != nil {
		return err
	}
	if err := cp.apiServers[0].launch(); err != nil {
		return err
	}
	if err := cp.connect(ctx); err != nil {
		return err
	}
	if err := cp.apiServers[0].wait(ctx); err != nil {
		return err
	}
	// The first one has written the certificate that all of them use.
	for _, other := range cp.apiServers[1:] {
		if err := other.Start(ctx); err != nil {
			return err
		}
	}
	return cp.startClients(ctx)
}

// startClients starts the clients of the API server.
func (cp *ControlPlane) startClients(ctx context.Context) error {
	if cp.options.ControllerManager {
		if err := cp.start("kube-controller-manager", cp.controllerManagerArgs()); err != nil {
			return err
		}
	}
	if cp.options.Scheduler {
		if err := cp.start("kube-scheduler", cp.schedulerArgs()); err != nil {
			return err
		}
	}
	if cp.options.Nodes > 0 {
		if err := cp.startNodes(ctx); err != nil {
			return err
		}
	}
	return cp.waitForNamespace(ctx)
}

// start starts a program that ends with the control plane.
func (cp *ControlPlane) start(name string, args []string, env ...string) error {
	p, err := process.Start(process.Command{Path: cp.binary(name), Args: args, Env: env, Log: cp.layout.log(name)})
	if err != nil {
		return err
	}
	cp.mu.Lock()
	defer cp.mu.Unlock()
	cp.others = append(cp.others, p)
	return nil
}

// gracePeriod is how long a program may take to end before it is killed.
const gracePeriod = 5 * time.Second

// Stop stops every program, waits for its end, and removes the data directory if it is temporary. A
// second Stop does nothing.
func (cp *ControlPlane) Stop() error {
	cp.mu.Lock()
	others := cp.others
	cp.others = nil
	cp.mu.Unlock()

	// Stop clients first and the store last, so that no program logs that its server is gone.
	slices.Reverse(others)
	var errs []error
	for _, p := range others[:max(0, len(others)-1)] {
		errs = append(errs, p.Stop(gracePeriod))
	}
	for _, s := range cp.apiServers {
		errs = append(errs, s.Stop())
	}
	if len(others) > 0 {
		errs = append(errs, others[len(others)-1].Stop(gracePeriod))
	}
	if cp.temporary {
		errs = append(errs, os.RemoveAll(cp.layout.dir))
	}
	return errors.Join(errs...)
}

// Kubeconfig returns the path of a kubeconfig file with all permissions.
func (cp *ControlPlane) Kubeconfig() string { return cp.layout.kubeconfig("admin") }

// RESTConfig returns a copy of a client configuration with all permissions and without a
// client-side rate limit.
func (cp *ControlPlane) RESTConfig() *rest.Config { return rest.CopyConfig(cp.config) }

// EtcdEndpoint returns the URL at which etcd or kine serves etcd's clients, without authentication.
func (cp *ControlPlane) EtcdEndpoint() string { return cp.ports.storeURL() }

// PIDs returns the process ids of the programs that were started and not stopped. Each program
// leads its own process group.
func (cp *ControlPlane) PIDs() []int {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	var pids []int
	for _, p := range cp.others {
		pids = append(pids, p.PID())
	}
	for _, s := range cp.apiServers {
		if s.process != nil {
			pids = append(pids, s.process.PID())
		}
	}
	return pids
}
