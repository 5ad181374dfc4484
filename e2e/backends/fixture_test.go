// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/demo"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// clusterName is the option cluster_name. The dot has a meaning in a regular expression.
const clusterName = "named.cluster"

// fixture is a cluster with the demo on it, a Collector that watches it, and the backends that the
// Collector feeds.
type fixture struct {
	page      *page
	directory string
	started   []*program

	cluster         *harness.Cluster
	demo            chan error
	loki            *loki
	pushed, scraped *prometheus
	metrics         string // the address at which the Collector serves the metric
}

// newFixture returns what was started even if something went wrong.
func newFixture(ctx context.Context) (f *fixture, err error) {
	f = &fixture{demo: make(chan error, 1)}
	if f.page, err = readPage(); err != nil {
		return f, err
	}
	if f.directory, err = os.MkdirTemp("", "backends-"); err != nil {
		return f, err
	}
	metrics, err := process.FreeAddresses(3)
	if err != nil {
		return f, err
	}
	// The slow ones first: they get ready side by side.
	if err := f.startBackends(metrics); err != nil {
		return f, err
	}
	if err := f.startCluster(ctx); err != nil {
		return f, err
	}
	err = errors.Join(f.loki.await(f.loki.ready), f.pushed.await(f.pushed.ready), f.scraped.await(f.scraped.ready))
	if err != nil {
		return f, err
	}
	return f, errors.Join(f.startCollector(metrics[0], metrics[1]), f.startTroubledCollector(ctx, metrics[2]))
}

// startBackends starts the backends that docs/queries.md configures, and the Loki of
// examples/backends. Both Prometheus servers scrape the metric, the Collector's own metrics, and
// those of the Collector that has problems.
func (f *fixture) startBackends(metrics []string) (err error) {
	if f.loki, err = startLoki(f.make("loki")); err != nil {
		return err
	}
	f.started = append(f.started, f.loki.program)
	rules := f.make("rules")
	if err := evaluateFileOften(rules); err != nil {
		return err
	}
	replace := strings.NewReplacer("127.0.0.1:9464", metrics[0], `"127.0.0.1:8888"`, fmt.Sprintf("%q, %q", metrics[1], metrics[2]),
		"deploy/chart/rules", rules)
	scrape := replace.Replace(f.page.scrape)
	if f.scraped, err = startPrometheus(f.make("scraped"), scrape); err != nil {
		return err
	}
	f.started = append(f.started, f.scraped.program)
	// This one scrapes the Collector's own metrics alone.
	push := f.page.push + strings.Replace(scrape, metrics[0], "", 1)
	push = strings.Replace(push, `targets: [""]`, "targets: []", 1)
	if f.pushed, err = startPrometheus(f.make("pushed"), push); err != nil {
		return err
	}
	f.started = append(f.started, f.pushed.program)
	return nil
}

// evaluateFileOften does that with the rules of the repository.
func evaluateFileOften(directory string) error {
	text, err := os.ReadFile(harness.InRepository("deploy", "chart", "rules", "kube-events.yaml"))
	return errors.Join(err, evaluateOften(directory, text))
}

// evaluateOften writes rules into a directory that Prometheus evaluates every second, and that do not wait for
// what happens after a warning.
func evaluateOften(directory string, rules []byte) error {
	often := bytes.ReplaceAll(groupInterval.ReplaceAll(rules, []byte("interval: 1s")), []byte("offset 5m"), []byte("offset 1s"))
	return os.WriteFile(filepath.Join(directory, "rules.yaml"), often, 0o600)
}

// groupInterval is how often a group of rules is evaluated.
var groupInterval = regexp.MustCompile(`\binterval: \d+m\b`)

// make makes a directory of the fixture's.
func (f *fixture) make(name string) string {
	path := filepath.Join(f.directory, name)
	_ = os.Mkdir(path, 0o700)
	return path
}

func (f *fixture) startCluster(ctx context.Context) (err error) {
	f.cluster, err = harness.StartCluster(ctx, controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 2})
	if err != nil {
		return err
	}
	go func() { f.demo <- demo.Run(ctx, f.cluster.RESTConfig()) }()
	return makeMistyped(ctx, f.cluster)
}

// startCollector starts one that feeds the backends, as in docs/queries.md. It is configured as the
// demo's, which also shows the past. Prometheus scrapes three times in a collection, also on a
// machine that is busy.
func (f *fixture) startCollector(metrics, own string) error {
	f.metrics = metrics
	config := strings.NewReplacer("http://loki:3100", f.loki.url, "http://prometheus:9090", f.pushed.url, "127.0.0.1:9464", metrics).
		Replace(f.page.collector)
	return f.keep(f.startOtelcol(own, config, "yaml:receivers::kube_events::collection_interval: 3s",
		"yaml:receivers::kube_events::cluster_name: "+clusterName, "yaml:connectors: {kube_incidents: {}}",
		"yaml:service::pipelines::logs::exporters: [otlp_http/loki, kube_incidents]",
		"yaml:service::pipelines::logs/problems: {receivers: [kube_incidents], exporters: [otlp_http/loki]}"))
}

// startTroubledCollector starts one whose exporter fails, and that may not watch events with another
// receiver. It has the metrics of problems.
func (f *fixture) startTroubledCollector(ctx context.Context, own string) error {
	const config = `
receivers:
  kube_events:
    retry_on_failure: {initial_interval: 100ms, max_interval: 1s, max_elapsed_time: 1s}
  kube_events/forbidden: {auth_type: kubeConfig, kubeconfig: %q}
exporters:
  otlp_http: {endpoint: "http://127.0.0.1:1", sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
  nop:
service:
  pipelines:
    logs: {exporters: [otlp_http]}
    logs/forbidden: {receivers: [kube_events/forbidden], exporters: [nop]}
    metrics: {exporters: [nop]}
`
	mayNothing, err := f.cluster.RestrictedKubeconfig(ctx, "forbidden")
	if err != nil {
		return err
	}
	return f.keep(f.startOtelcol(own, fmt.Sprintf(config, mayNothing)))
}

// keep lets stop end what was started.
func (f *fixture) keep(p *program, err error) error {
	if p != nil {
		f.started = append(f.started, p)
	}
	return err
}

// startOtelcol starts a Collector, and returns when it serves its own metrics. The process is nil if
// it was not started.
func (f *fixture) startOtelcol(own, config string, more ...string) (*program, error) {
	path := filepath.Join(f.directory, strings.ReplaceAll(own, ":", "-")+".yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(own)
	arguments := []string{"--config", harness.InRepository("distribution", "config.yaml"), "--config", path}
	for _, setting := range more {
		arguments = append(arguments, "--config", setting)
	}
	env := []string{"KUBECONFIG=" + f.cluster.Kubeconfig(), "OTELCOL_METRICS_PORT=" + port}
	p, err := start("", env, harness.OtelcolPath(), arguments...)
	if err != nil {
		return nil, err
	}
	return p, p.await(func() error {
		_, err := get("http://" + own + "/metrics")
		return err
	})
}

// stop ends all, those that write before those that they write to.
func (f *fixture) stop() (err error) {
	for i := len(f.started) - 1; i >= 0; i-- {
		f.started[i].stop()
	}
	if f.cluster != nil {
		err = errors.Join(<-f.demo, f.cluster.Stop())
	}
	if f.directory != "" {
		err = errors.Join(err, os.RemoveAll(f.directory))
	}
	return err
}

// makeMistyped makes a Deployment whose image does not exist, and writes what a kubelet would of
// its pod: the nodes only simulate that they pull images. There are more warnings than each new pod has.
func makeMistyped(ctx context.Context, client kubernetes.Interface) error {
	const name, namespace = "mistyped", "mistakes"
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	labels := map[string]string{"app": name}
	_, err = client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "example.com/mistyped:1.O"}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	pod, err := podOf(ctx, client, namespace)
	if err != nil {
		return err
	}
	for i, e := range []corev1.Event{
		{Type: "Warning", Reason: "Failed", Message: `Failed to pull image "example.com/mistyped:1.O": not found`, Count: 9},
		{Type: "Normal", Reason: "BackOff", Message: `Back-off pulling image "example.com/mistyped:1.O"`, Count: 3},
	} {
		e.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("%s.%d", pod.Name, i), Namespace: namespace}
		e.InvolvedObject = corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: pod.Name, UID: pod.UID}
		e.Source = corev1.EventSource{Component: "kubelet", Host: "node-0"}
		e.FirstTimestamp, e.LastTimestamp = metav1.Now(), metav1.Now()
		if _, err := client.CoreV1().Events(namespace).Create(ctx, &e, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// podOf waits for the first pod of a namespace.
func podOf(ctx context.Context, client kubernetes.Interface, namespace string) (*corev1.Pod, error) {
	var found *corev1.Pod
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(pods.Items) == 0 {
			return false, err
		}
		found = &pods.Items[0]
		return true, nil
	})
	return found, err
}
