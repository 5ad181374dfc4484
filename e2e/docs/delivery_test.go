// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// These recipes promise that no record is lost. The tests count what a writer wrote.

// writer creates events in a namespace of its own, each of which occurs once.
type writer struct {
	namespace string

	mu   sync.Mutex
	uids map[string]bool
}

func newWriter(t *testing.T, name string) *writer {
	t.Helper()
	created, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return &writer{namespace: created.Name, uids: map[string]bool{}}
}

const written = "WrittenByTest"

func (w *writer) write(t *testing.T, count int) {
	t.Helper()
	for range count {
		w.writeOne(t)
	}
}

func (w *writer) writeOne(t *testing.T) (uid string) {
	now := metav1.Now()
	event, err := kube.CoreV1().Events(w.namespace).Create(context.Background(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "written-"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: w.namespace, Name: "written"},
		Reason:         written, Type: corev1.EventTypeNormal, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "delivery-test"},
	}, metav1.CreateOptions{})
	if assert.NoError(t, err) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.uids[string(event.UID)] = true
	}
	return string(event.UID)
}

// writeAlways writes until stop is called.
func (w *writer) writeAlways(t *testing.T) (stop func()) {
	stopped := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for {
			select {
			case <-stopped:
				return
			case <-time.After(5 * time.Millisecond):
				w.writeOne(t)
			}
		}
	})
	stop = sync.OnceFunc(func() {
		close(stopped)
		writing.Wait()
	})
	t.Cleanup(stop)
	return stop
}

func (w *writer) records(backend *harness.Backend) []harness.Record {
	return backend.Records("k8s.namespace.name", w.namespace, "k8s.event.reason", written)
}

// lost is the number of events of which the backend has no record.
func (w *writer) lost(backend *harness.Backend) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	arrived := map[string]bool{}
	for _, record := range w.records(backend) {
		arrived[record.Get("k8s.event.uid").(string)] = true
	}
	lost := 0
	for uid := range w.uids {
		if !arrived[uid] {
			lost++
		}
	}
	return lost
}

// arrivesCompletely waits until the backend has a record of each event.
func (w *writer) arrivesCompletely(t *testing.T, backend *harness.Backend) {
	t.Helper()
	if !harness.Poll(time.Minute, func() bool { return w.lost(backend) == 0 }) {
		t.Fatalf("%d of %d events are lost", w.lost(backend), len(w.uids))
	}
}

// awaitDelivery waits until the Collector delivers a new event. A signal before that could end the
// Collector, because it has not set up the handling of signals yet.
func (w *writer) awaitDelivery(t *testing.T, backend *harness.Backend) {
	t.Helper()
	backend.Await(t, "k8s.event.uid", w.writeOne(t))
}

// TestLargerRequests: kill -9 while the backend has not answered, again and again, loses nothing;
// what arrives twice has the same log.record.uid.
func TestLargerRequests(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "larger-requests")
	backend := harness.NewBackend(t)
	env := []string{"OTLP_ENDPOINT=" + backend.URL, "STORAGE_DIRECTORY=" + t.TempDir()}
	w.write(t, 100)
	for range 3 {
		asked := make(chan struct{}, 1)
		backend.Answer(func(ctx context.Context) error {
			select {
			case asked <- struct{}{}:
			default:
			}
			<-ctx.Done()
			return ctx.Err()
		})
		collector := run(t, "larger-requests", env...)
		w.write(t, 50)
		<-asked
		require.NoError(t, collector.Kill())

		backend.Answer(nil)
		collector = run(t, "larger-requests", env...)
		w.awaitDelivery(t, backend)
		w.write(t, 50)
		require.NoError(t, collector.Kill())
	}
	collector := run(t, "larger-requests", env...)
	w.arrivesCompletely(t, backend)
	collector.Stop(t)
	first := map[any]harness.Record{}
	for _, record := range w.records(backend) {
		id := record.Get("log.record.uid")
		if earlier, ok := first[id]; ok {
			assert.Equal(t, earlier.Attributes, record.Attributes)
		}
		first[id] = record
	}
	assert.Len(t, first, len(w.uids), "one identity for each record")
}

// TestReload: of a configuration that changes while events come, by SIGHUP, no reload loses or
// repeats anything, and each takes effect.
func TestReload(t *testing.T) {
	t.Parallel()
	const whole, partial = "Config updated, restart service", "Partial receiver reload completed successfully"
	for name, test := range map[string]struct {
		arguments []string
		// reports are what the Collector logs when the receiver has changed, and when the exporter has.
		receiver, exporter string
	}{
		"whole":   {receiver: whole, exporter: whole},
		"partial": {arguments: []string{"--feature-gates=service.partialReload"}, receiver: partial, exporter: whole},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWriter(t, "reload-"+name)
			backend := harness.NewBackend(t)
			r := startReloadable(t, backend, test.arguments...)
			w.awaitDelivery(t, backend)
			stop := w.writeAlways(t)
			const times = 5
			for i := range times {
				r.reload(t, test.receiver, excluding(i), excluding(i+1))
				w.awaitDelivery(t, backend)
			}
			r.reload(t, test.exporter, "enabled: false # the receiver retries", "enabled: false\n    timeout: 10s")
			stop()
			w.arrivesCompletely(t, backend)
			about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: w.namespace, Name: "excluded"}
			events := kube.Recorder(t, "reload")
			for i := range times {
				events.Eventf(about, corev1.EventTypeNormal, fmt.Sprint("Excluded", i+1), "event %d", i)
			}
			backend.Await(t, "k8s.namespace.name", w.namespace, "k8s.event.reason", fmt.Sprint("Excluded", times-1))
			w.write(t, 10)
			w.arrivesCompletely(t, backend)
			r.Stop(t)

			assert.Len(t, w.records(backend), len(w.uids), "none arrives twice")
			assert.Empty(t, backend.Records("k8s.namespace.name", w.namespace, "k8s.event.reason", fmt.Sprint("Excluded", times)), "the newest configuration applies")
			assert.Equal(t, int64(len(w.uids)), backend.Occurrences("k8s.namespace.name", w.namespace, "k8s.event.reason", written))
		})
	}
}

// excluding is the line of the configuration after so many changes.
func excluding(changes int) string {
	if changes == 0 {
		return "exclude_reasons: []"
	}
	return fmt.Sprintf("exclude_reasons: [Excluded%d]", changes)
}

// reloadable is the Collector of the recipe reload, with a copy of its configuration that the test
// changes.
type reloadable struct {
	*harness.Collector
	path, config string
}

func startReloadable(t *testing.T, backend *harness.Backend, arguments ...string) *reloadable {
	t.Helper()
	r := &reloadable{path: filepath.Join(t.TempDir(), "collector.yaml"), config: harness.Read(t, file("reload", "collector.yaml"))}
	require.NoError(t, os.WriteFile(r.path, []byte(r.config), 0o600))
	arguments = append(arguments, "--config", r.path, "--set=service.telemetry.metrics.level=none")
	r.Collector = harness.Start(t, exec.Command(harness.Otelcol(t), arguments...),
		"KUBECONFIG="+kubeconfigFor(t, "reload"), "OTLP_ENDPOINT="+backend.URL, "STORAGE_DIRECTORY="+t.TempDir())
	return r
}

// reload changes the configuration, sends the signal, and waits until the Collector reports the
// reload.
func (r *reloadable) reload(t *testing.T, report, from, to string) {
	t.Helper()
	require.Contains(t, r.config, from)
	r.config = strings.Replace(r.config, from, to, 1)
	reports := len(r.Output.Lines(report))
	require.NoError(t, os.WriteFile(r.path, []byte(r.config), 0o600))
	require.NoError(t, r.Signal(syscall.SIGHUP))
	harness.Eventually(t, func() bool { return len(r.Output.Lines(report)) > reports }, "%q in the log", report)
}

// TestTenants: each tenant gets the events of its namespaces, and nothing else; a backend that
// rejects the data of one tenant delays no other, and loses nothing.
func TestTenants(t *testing.T) {
	t.Parallel()
	kube.Apply(t, file("tenants", "namespaces.yaml"))
	w := newWriter(t, "tenants-other")
	namespaces := map[string]string{"red": "tenants-red", "blue": "tenants-blue", "platform": "tenants-none"}
	backends := map[string]*harness.Backend{}
	for tenant := range namespaces {
		backends[tenant] = harness.NewBackend(t)
	}
	endpoint := forward(t, func(r *http.Request) string { return backends[r.Header.Get("X-Scope-OrgID")].URL + r.URL.Path })
	env := []string{"OTLP_ENDPOINT=" + endpoint, "STORAGE_DIRECTORY=" + t.TempDir()}
	backends["blue"].Answer(func(context.Context) error { return errors.New("the test rejects this temporarily") })

	collector := run(t, "tenants", env...)
	for _, tenant := range []string{"red", "platform"} {
		backends[tenant].Await(t, "k8s.namespace.name", namespaces[tenant], "k8s.event.reason", "Started")
	}
	backends["platform"].Await(t, "k8s.object.kind", "Node")
	assert.Empty(t, backends["blue"].Records())
	backends["blue"].Answer(nil)
	backends["blue"].Await(t, "k8s.namespace.name", namespaces["blue"], "k8s.event.reason", "Started")
	// The last sums of the metric are in the queues when the Collector ends. The next start delivers
	// them.
	collector.Stop(t)
	collector = run(t, "tenants", env...)
	w.awaitDelivery(t, backends["platform"])
	for tenant, namespace := range namespaces {
		here := []any{"k8s.namespace.name", namespace}
		harness.Eventually(t, func() bool {
			return backends[tenant].Occurrences(here...) == occurrencesOf(backends[tenant].Records(here...))
		}, "the sums of %s", tenant)
	}
	collector.Stop(t)
	for tenant := range namespaces {
		for other, namespace := range namespaces {
			if other != tenant {
				assert.Empty(t, backends[tenant].Records("k8s.namespace.name", namespace), "%s has events of %s", tenant, other)
				assert.Zero(t, backends[tenant].Occurrences("k8s.namespace.name", namespace), "%s has sums of %s", tenant, other)
			}
		}
	}
}

// forward starts a proxy that forwards each request to the URL that a function returns.
func forward(t *testing.T, target func(*http.Request) string) (endpoint string) {
	t.Helper()
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		to, err := url.Parse(target(r.In))
		if assert.NoError(t, err) {
			r.Out.URL = to
		}
	}})
	t.Cleanup(server.Close)
	return server.URL
}
