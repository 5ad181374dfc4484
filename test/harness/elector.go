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
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// ProgressNamespace and ProgressName name the ConfigMap in which the leader notes its progress.
const (
	ProgressNamespace = "observability"
	ProgressName      = "kube-events-progress"
)

// Elector is a leader elector whose elections a test decides.
type Elector struct {
	component.StartFunc
	component.ShutdownFunc

	mu      sync.Mutex
	started []func(context.Context)
	stopped []func()
}

// NewElector returns an elector of which nobody is the leader.
func NewElector() *Elector { return &Elector{} }

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
	l, leave, _ := election.Join(e, types.NamespacedName{})
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
	streams := api.ConfigMap(ProgressNamespace, ProgressName)["streams"]
	version, _ := strings.CutPrefix(streams, `{"":"`)
	return strings.TrimSuffix(version, `"}`)
}

// NoteProgress notes progress of the cluster-wide stream, as the leader of another replica does.
func NoteProgress(api *apitest.Server, cluster, version string) {
	api.PutConfigMap(ProgressNamespace, ProgressName, map[string]string{"cluster": cluster, "leader": "another", "streams": `{"":"` + version + `"}`})
}
