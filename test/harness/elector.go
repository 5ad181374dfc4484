// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// LeaseNamespace and leaseName name the lease of the leader election, and ProgressName the ConfigMap
// that the receiver keeps next to it.
const (
	LeaseNamespace = "observability"
	leaseName      = "kube-events"
	ProgressName   = "kube-events-kube-events"
)

// Elector is a leader elector whose elections a test decides. The lease of an Elector without values
// is not known.
type Elector struct {
	component.StartFunc
	component.ShutdownFunc
	config *leaseConfig // The receiver reads it by reflection, as that of the extension k8s_leader_elector.

	mu      sync.Mutex
	started []func(context.Context)
	stopped []func()
}

type leaseConfig struct{ LeaseNamespace, LeaseName string }

// NewElector returns an elector of which nobody is the leader.
func NewElector() *Elector {
	return &Elector{config: &leaseConfig{LeaseNamespace: LeaseNamespace, LeaseName: leaseName}}
}

// SetCallBackFuncs registers a receiver.
func (e *Elector) SetCallBackFuncs(started func(context.Context), stopped func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started, e.stopped = append(e.started, started), append(e.stopped, stopped)
}

// Elect begins a term that only Depose ends.
func (e *Elector) Elect() { e.ElectUntil(context.Background()) }

// ElectUntil begins a term that ends with the context.
func (e *Elector) ElectUntil(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, started := range e.started {
		started(ctx)
	}
}

// CallFirst adds a call that the elector makes before those of its receivers, when a term ends.
func (e *Elector) CallFirst(stopped func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = slices.Insert(e.stopped, 0, stopped)
}

// Pause lets the receivers find that their process has not run for a minute.
func (e *Elector) Pause() {
	l, leave := election.Join(e)
	defer leave()
	l.NoteBeat(time.Now().Add(time.Minute))
}

// Depose ends the term, and returns when the work of all receivers has ended.
func (e *Elector) Depose() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, stopped := range e.stopped {
		stopped()
	}
}

// NewReplicas launches two replicas. Neither of them leads.
func NewReplicas(t *testing.T, api *apitest.Server, on *Disk, config string) (a, b *Process) {
	t.Helper()
	return NewReplica(t, api, on, config), NewReplica(t, api, on, config)
}

// NewReplica launches one of several receivers of which one leads.
func NewReplica(t *testing.T, api *apitest.Server, on *Disk, config string) *Process {
	t.Helper()
	return Launch(t, api, Options{Config: config, Disk: on, Elector: NewElector()})
}

// NotedProgress returns the progress of the leader's cluster-wide stream; empty if there is none.
func NotedProgress(api *apitest.Server) string {
	streams := api.ConfigMap(LeaseNamespace, ProgressName)["streams"]
	version, _ := strings.CutPrefix(streams, `{"":"`)
	return strings.TrimSuffix(version, `"}`)
}

// NoteProgress notes progress of the cluster-wide stream, as the leader of another replica does.
func NoteProgress(api *apitest.Server, cluster, version string) {
	api.PutConfigMap(LeaseNamespace, ProgressName, map[string]string{"cluster": cluster, "leader": "another", "streams": `{"":"` + version + `"}`})
}
