// SPDX-License-Identifier: Apache-2.0

package ownersprocessor

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/distribution/ownersprocessor/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

var (
	node       = apitest.Object{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "node-uid", Labels: map[string]string{"zone": "a"}}
	namespace  = apitest.Object{APIVersion: "v1", Kind: "Namespace", Name: "shop", UID: "namespace-uid", Labels: map[string]string{"team": "red"}}
	deployment = object("apps/v1", "Deployment", "fe", "deployment-uid")
	replicaSet = object("apps/v1", "ReplicaSet", "fe-1", "rs-uid", deployment)
	pod        = object("v1", "Pod", "fe-1-a", "pod-uid", replicaSet)
	stateful   = object("apps/v1", "StatefulSet", "db", "sts-uid")
	database   = object("v1", "Pod", "db-0", "db-uid", stateful)
	daemonSet  = object("apps/v1", "DaemonSet", "agent", "ds-uid")
	agent      = object("v1", "Pod", "agent-q", "agent-uid", daemonSet)
	cronJob    = object("batch/v1", "CronJob", "backup", "cj-uid")
	job        = object("batch/v1", "Job", "backup-1", "job-uid", cronJob)
	backup     = object("v1", "Pod", "backup-1-x", "backup-uid", job)
	rollout    = object("argoproj.io/v1alpha1", "Rollout", "canary", "rollout-uid")
	canarySet  = object("apps/v1", "ReplicaSet", "canary-1", "canary-rs-uid", rollout)
	canary     = object("v1", "Pod", "canary-1-z", "canary-uid", canarySet)
	stranger   = apitest.Object{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "fe-1-a", UID: "stranger-uid"}
	mirror     = apitest.Object{
		APIVersion: "v1", Kind: "Pod", Namespace: "kube-system", Name: "etcd-n1", UID: "mirror-uid",
		Annotations: map[string]string{"kubernetes.io/config.mirror": "0123456789abcdef0123456789abcdef"},
		Owners:      ownedBy(node),
	}
)

// object is an object in the namespace shop, with the object that controls it.
func object(apiVersion, kind, name, uid string, controller ...apitest.Object) apitest.Object {
	return apitest.Object{APIVersion: apiVersion, Kind: kind, Namespace: "shop", Name: name, UID: uid, Owners: ownedBy(controller...)}
}

// newCluster is a fake API server with all objects, and without a network.
func newCluster() *apitest.Objects {
	api := apitest.NewObjectsInMemory()
	api.Serve("argoproj.io/v1alpha1", "Rollout", "rollouts", true)
	api.Put(node, namespace, deployment, replicaSet, pod, stateful, database, daemonSet, agent, cronJob, job, backup, rollout, canarySet, canary, stranger, mirror)
	return api
}

// newEnricher is what the pipelines of a configuration share, with the default configuration but for what configure
// changes. The end of the test shuts it down.
func newEnricher(t testing.TB, api http.RoundTripper, configure func(*Config)) *enricher {
	t.Helper()
	return newEnricherWith(t, api, configure, processortest.NewNopSettings(metadata.Type))
}

func newEnricherWith(t testing.TB, api http.RoundTripper, configure func(*Config), settings processor.Settings) *enricher {
	t.Helper()
	config := createDefaultConfig().(*Config)
	if configure != nil {
		configure(config)
	}
	require.NoError(t, config.Validate())
	all := &instances{}
	e, err := all.get(config, settings)
	require.NoError(t, err)
	require.NoError(t, e.connect(&rest.Config{Host: "http://api", QPS: -1, Transport: api}))
	t.Cleanup(func() { require.NoError(t, e.Shutdown(t.Context())) })
	return e
}

// logsOf are logs with a resource for each object: its namespace, its name and its UID.
func logsOf(objects ...apitest.Object) plog.Logs {
	data := plog.NewLogs()
	for _, o := range objects {
		attributes := data.ResourceLogs().AppendEmpty().Resource().Attributes()
		attributes.PutStr("k8s.namespace.name", o.Namespace)
		attributes.PutStr("k8s.pod.name", o.Name)
		attributes.PutStr("k8s.pod.uid", o.UID)
	}
	return data
}

// workloads are the workloads of resources, KIND/NAME; empty: a resource has none.
func workloads(data plog.Logs) (all []string) {
	for _, r := range data.ResourceLogs().All() {
		all = append(all, workloadOf(r.Resource().Attributes()))
	}
	return all
}

func workloadOf(attributes pcommon.Map) string {
	kind, ok := attributes.Get("k8s.workload.kind")
	if !ok {
		return ""
	}
	name, _ := attributes.Get("k8s.workload.name")
	return kind.Str() + "/" + name.Str()
}

// send sends logs through the processor, and returns the workloads of their resources and how long they waited.
func send(t testing.TB, e *enricher, objects ...apitest.Object) (all []string, waited time.Duration) {
	t.Helper()
	begun := time.Now()
	data, err := e.logs(t.Context(), logsOf(objects...))
	require.NoError(t, err)
	return workloads(data), time.Since(begun)
}

func ownedBy(controllers ...apitest.Object) (owners []metav1.OwnerReference) {
	for _, o := range controllers {
		owners = append(owners, apitest.OwnedBy(o, true))
	}
	return owners
}

// fault is how an API server fails; the zero fault is none.
type fault struct {
	isDown bool          // it does not answer
	status int           // of its answers
	delay  time.Duration // of its answers
}

// faulty is an API server that fails for requests with a part of a path in them.
type faulty struct {
	http.RoundTripper

	mu    sync.Mutex
	part  string
	fault fault
	seen  int // requests that failed
}

// fail makes requests fail from now on.
func (f *faulty) fail(part string, fault fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.part, f.fault, f.seen = part, fault, 0
}

// heal ends the fault.
func (f *faulty) heal() { f.fail("", fault{}) }

// failed returns how many requests have failed since.
func (f *faulty) failed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}

func (f *faulty) faultFor(r *http.Request) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault == (fault{}) || !strings.Contains(r.URL.Path, f.part) {
		return fault{}
	}
	f.seen++
	return f.fault
}

// CloseIdleConnections does nothing: there are none.
func (f *faulty) CloseIdleConnections() {}

func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	fault := f.faultFor(r)
	if fault.delay > 0 {
		select {
		case <-time.After(fault.delay):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	switch {
	case fault.isDown:
		return nil, errors.New("connection refused")
	case fault.status != 0:
		w := httptest.NewRecorder()
		w.WriteHeader(fault.status)
		return w.Result(), nil
	default:
		return f.RoundTripper.RoundTrip(r)
	}
}

// tracesOf are traces with a resource for an object.
func tracesOf(o apitest.Object) ptrace.Traces {
	data := ptrace.NewTraces()
	attributes := data.ResourceSpans().AppendEmpty().Resource().Attributes()
	attributes.PutStr("k8s.namespace.name", o.Namespace)
	attributes.PutStr("k8s.pod.name", o.Name)
	return data
}
