// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// TestRecipesLoseNothing: no exporter of a recipe acknowledges records that only its memory has.
func TestRecipesLoseNothing(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(harness.InRepository("examples", "*", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		var config struct {
			Exporters map[string]struct {
				SendingQueue struct {
					Enabled       *bool  `json:"enabled"`
					Storage       string `json:"storage"`
					WaitForResult bool   `json:"wait_for_result"`
				} `json:"sending_queue"`
			} `json:"exporters"`
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		// Manifests have several documents, and no exporters.
		if strings.Contains(string(text), "\n---\n") || yaml.Unmarshal(text, &config) != nil {
			continue
		}
		for name, exporter := range config.Exporters {
			q := exporter.SendingQueue
			assert.True(t, !strings.HasPrefix(name, "otlp") || q.Enabled != nil && !*q.Enabled || q.Storage != "" || q.WaitForResult, "%s: %s", path, name)
		}
	}
}

// TestTilt: of one manifest every Warning, Pulling and Pulled, though the label is on the
// Deployments alone, and nothing else.
func TestTilt(t *testing.T) {
	t.Parallel()
	kube.Apply(t, file("tilt", "shop.yaml"))
	collector := run(t, "tilt", "TILT_MANIFEST=shop")
	harness.Eventually(t, func() bool {
		return len(collector.Lines("k8s.event.reason=Pulled")) > 0 && len(collector.Lines("k8s.event.reason=FailedScheduling")) > 0
	}, "a Pulled and a Warning")
	collector.Stop(t)
	for _, line := range collector.Lines("ResourceLog #") {
		assert.Contains(t, line, "tilt.manifest=shop")
	}
	for _, line := range collector.Lines("k8s.event.reason=") {
		assert.True(t, strings.Contains(line, "k8s.event.type=Warning") || strings.Contains(line, "k8s.event.reason=Pull"), line)
	}
}

// TestCartographer: the supply chain's reasons are counted for each Workload, those of what it
// stamped among them, and for cluster-scoped blueprints.
func TestCartographer(t *testing.T) {
	t.Parallel()
	kube.Apply(t, file("cartographer", "crds.yaml"), file("cartographer", "workload.yaml"), file("cartographer", "generated.yaml"))
	workload := kube.Get(t, "carto.run/v1alpha1", "Workload", "cartographer", "petclinic")
	image := kube.Get(t, "kpack.io/v1alpha2", "Image", "cartographer", "petclinic")
	chain := kube.Get(t, "carto.run/v1alpha1", "ClusterSupplyChain", "", "source-to-url")

	events := kube.Recorder(t, "cartographer")
	for _, resource := range []string{"source-provider", "image-builder"} {
		events.Eventf(workload, corev1.EventTypeNormal, "StampedObjectApplied", "Created object [%s]", resource)
	}
	for range 3 {
		events.Event(workload, corev1.EventTypeNormal, "ResourceOutputChanged", "[image-builder] found a new output")
	}
	events.Event(image, corev1.EventTypeWarning, "BuildFailed", "exit code 51")
	events.Event(chain, corev1.EventTypeWarning, "TemplateNotFound", "kpack")

	backend := harness.NewBackend(t)
	collector := run(t, "cartographer", "OTLP_ENDPOINT="+backend.URL)
	backend.Await(t, "k8s.event.reason", "ResourceOutputChanged", "k8s.event.count", int64(3))
	backend.Await(t, "k8s.event.reason", "TemplateNotFound")
	scheduled := backend.Await(t, "k8s.event.reason", "Scheduled", "k8s.pod.name", "petclinic-build-1-build-pod")
	failed := backend.Await(t, "k8s.event.reason", "BuildFailed")
	collector.Stop(t)

	assert.Equal(t, []any{"build.kpack.io/petclinic-build-1", "image.kpack.io/petclinic", "workload.carto.run/petclinic"}, scheduled.Get("k8s.owner.chain"))
	assert.Equal(t, "complete", scheduled.Get("k8s.owner.resolution"))
	for _, record := range []harness.Record{scheduled, failed} {
		assert.Equal(t, string(workload.GetUID()), record.Get("k8s.workload.uid"))
		assert.Equal(t, "source-to-url", record.Get("carto.supply_chain"), "found on what was stamped")
	}
	ofWorkload := []any{"k8s.workload.kind", "Workload", "k8s.workload.name", "petclinic", "k8s.namespace.name", "cartographer"}
	for reason, count := range map[string]int64{"StampedObjectApplied": 2, "ResourceOutputChanged": 3, "BuildFailed": 1, "Scheduled": 1} {
		assert.Equal(t, count, backend.Occurrences(append(ofWorkload, "k8s.event.reason", reason)...), reason)
	}
	assert.Equal(t, int64(1), backend.Occurrences("k8s.workload.kind", "ClusterSupplyChain", "k8s.workload.name", "source-to-url",
		"k8s.event.reason", "TemplateNotFound", "k8s.namespace.name", nil))
}

// TestArgoRollouts: events of the pods of the canary and of the stable version belong to the
// Rollout, and the revision tells them apart.
func TestArgoRollouts(t *testing.T) {
	t.Parallel()
	kube.Apply(t, file("argo-rollouts", "crds.yaml"), file("argo-rollouts", "rollout.yaml"), file("argo-rollouts", "generated.yaml"))
	rollout := kube.Get(t, "argoproj.io/v1alpha1", "Rollout", "argo-rollouts-example", "checkout")
	events := kube.Recorder(t, "rollouts-controller")
	events.Event(rollout, corev1.EventTypeNormal, "RolloutUpdated", "Rollout updated to revision 2")
	events.Event(kube.Get(t, "argoproj.io/v1alpha1", "AnalysisRun", "argo-rollouts-example", "checkout-7c6d5e4b3-2-1"),
		corev1.EventTypeWarning, "AnalysisRunFailed", "Analysis Completed. Result: Failed")

	backend := harness.NewBackend(t)
	collector := run(t, "argo-rollouts", "OTLP_ENDPOINT="+backend.URL)
	ofRollout := []any{"k8s.workload.kind", "Rollout", "k8s.workload.name", "checkout", "k8s.workload.uid", string(rollout.GetUID())}
	for reason, revision := range map[string]any{"RolloutUpdated": nil, "AnalysisRunFailed": nil, "Started": "1", "FailedScheduling": "2"} {
		record := backend.Await(t, append(ofRollout, "k8s.event.reason", reason)...)
		assert.Equal(t, revision, record.Get("rollout.revision"), reason)
		assert.Equal(t, "checkout", record.Get("tilt.manifest"))
		assert.Equal(t, "complete", record.Get("k8s.owner.resolution"))
	}
	collector.Stop(t)
	assert.Equal(t, int64(1), backend.Occurrences(append(ofRollout[:4:4], "k8s.event.reason", "AnalysisRunFailed", "k8s.event.type", "Warning")...))
}

// TestKnative: a pod's event names the Knative Service, which is not taken for a Service of
// Kubernetes.
func TestKnative(t *testing.T) {
	t.Parallel()
	kube.Apply(t, file("knative", "crds.yaml"), file("knative", "service.yaml"), file("knative", "generated.yaml"))
	service := kube.Get(t, "serving.knative.dev/v1", "Service", "knative-example", "hello")

	backend := harness.NewBackend(t)
	collector := run(t, "knative", "OTLP_ENDPOINT="+backend.URL)
	ofService := []any{"k8s.workload.kind", "Service", "k8s.workload.api_version", "serving.knative.dev/v1", "k8s.workload.uid", string(service.GetUID())}
	started := backend.Await(t, append(ofService, "k8s.event.reason", "Started")...)
	collector.Stop(t)
	assert.Equal(t, []any{
		"replicaset.apps/" + started.Get("k8s.replicaset.name").(string), "deployment.apps/hello-00001-deployment",
		"revision.serving.knative.dev/hello-00001", "configuration.serving.knative.dev/hello", "service.serving.knative.dev/hello",
	}, started.Get("k8s.owner.chain"))
	assert.Equal(t, "hello-00001", started.Get("knative.revision"))
	assert.Nil(t, started.Get("k8s.service.name"))
	assert.Equal(t, occurrencesOf(backend.Records(append(ofService, "k8s.event.reason", "Started")...)), backend.Occurrences(append(ofService[:4:4], "k8s.event.reason", "Started")...))
}

// occurrencesOf is the number of occurrences that records contain.
func occurrencesOf(records []harness.Record) (total int64) {
	for _, record := range records {
		total += record.Get("k8s.event.occurrences").(int64)
	}
	return total
}

// TestCronJob: the events of the CronJob, its Jobs and their pods name the CronJob, also those of a
// Job that a user creates, and the metric counts them by it.
func TestCronJob(t *testing.T) {
	t.Parallel()
	kubectl(t)
	for _, command := range commandsOf(t, "cronjob") {
		sh(t, command)
	}
	terminal := runCommand(t, "cronjob")
	harness.Eventually(t, func() bool {
		return len(terminal.Lines("k8s.object.name: Str(report-now)")) > 0 && len(terminal.Lines("k8s.event.reason: Str(Completed)")) > 0
	}, "the end of the Job on the terminal")
	runTonight(t, "cronjob", "report")

	backend := harness.NewBackend(t)
	collector := run(t, "cronjob", "OTLP_ENDPOINT="+backend.URL, "CRONJOB=report")
	for reason, kind := range map[string]string{"Started": "Pod", "Completed": "Job", "SawCompletedJob": "CronJob"} {
		record := backend.Await(t, "k8s.event.reason", reason, "k8s.object.kind", kind)
		assert.Equal(t, "report", record.Get("k8s.cronjob.name"))
		assert.Equal(t, "complete", record.Get("k8s.owner.resolution"))
	}
	completed := []any{"k8s.cronjob.name", "report", "k8s.workload.kind", "CronJob", "k8s.event.reason", "Completed"}
	harness.Eventually(t, func() bool { return len(backend.Records(completed...)) == 2 }, "the end of both Jobs")
	collector.Stop(t)
	assert.Empty(t, backend.Records("k8s.cronjob.name", nil), "no other workload's events")
	assert.Equal(t, int64(2), backend.Occurrences("k8s.workload.kind", "CronJob", "k8s.workload.name", "report", "k8s.event.reason", "Completed"))
	assert.Equal(t, occurrencesOf(backend.Records()), backend.Occurrences(), "all of it, and nothing else")
}

// runTonight makes a run of the CronJob due, as if its last one were two days ago.
func runTonight(t *testing.T, namespace, name string) {
	t.Helper()
	past := time.Now().Add(-48 * time.Hour).UTC().Format(time.RFC3339)
	_, err := kube.BatchV1().CronJobs(namespace).Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"status": {"lastScheduleTime": "`+past+`"}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

// TestApproval: what the script notes has the workload of the rollout that it allowed, and comes
// before it.
func TestApproval(t *testing.T) {
	t.Parallel()
	kubectl(t)
	for _, command := range commandsOf(t, "approval") {
		sh(t, command)
	}
	message := `quoted "twice", C:\temp, $HOME` + "\nand a second line"
	approve := exec.Command(harness.InRepository("examples", "approval", "approve.sh"), "approval", "payments", message)
	approve.Env = append(approve.Environ(), "KUBECONFIG="+kube.Kubeconfig(), `APPROVER=O"Neill`)
	output, err := approve.CombinedOutput()
	require.NoError(t, err, string(output))

	backend := harness.NewBackend(t)
	run(t, "approval", "OTLP_ENDPOINT="+backend.URL)
	approved := backend.Await(t, "k8s.event.reason", "DeploymentApproved", "k8s.event.reporting_instance", "jane")
	assert.Equal(t, "change 4711: payments 2.0, approved by jane", approved.Log.Body().AsString())
	assert.Equal(t, "Approve", approved.Get("k8s.event.action"))
	other := backend.Await(t, "k8s.event.reason", "DeploymentApproved", "k8s.event.reporting_instance", `O"Neill`)
	assert.Equal(t, strings.ReplaceAll(message, "\n", " ")+`, approved by O"Neill`, other.Log.Body().AsString(), "any text may be written")

	var rollout []harness.Record
	harness.Eventually(t, func() bool {
		rollout = backend.Records("k8s.workload.uid", approved.Get("k8s.workload.uid"), "k8s.event.reason", "ScalingReplicaSet")
		return len(rollout) > 1
	}, "the rollout of the first and of the second image")
	assert.Equal(t, "payments", rollout[1].Get("k8s.deployment.name"))
	assert.LessOrEqual(t, approved.Log.Timestamp(), rollout[1].Log.Timestamp())
}

// TestMultiCluster: two Deployments of one name in two clusters stay apart.
func TestMultiCluster(t *testing.T) {
	t.Parallel()
	west, err := harness.StartCluster(t.Context(), controlplane.Options{ControllerManager: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, west.Stop()) })
	clusters := map[string]*harness.Cluster{"east": kube, "west": west}
	for _, cluster := range clusters {
		cluster.Apply(t, file("multi-cluster", "deployment.yaml"))
	}
	backend := harness.NewBackend(t)
	collector := run(t, "multi-cluster", "OTLP_ENDPOINT="+backend.URL, "KUBECONFIG_EAST="+kube.Kubeconfig(), "KUBECONFIG_WEST="+west.Kubeconfig())
	for name, cluster := range clusters {
		record := backend.Await(t, "k8s.cluster.name", name, "k8s.event.reason", "ScalingReplicaSet", "k8s.deployment.name", "gateway")
		assert.Equal(t, cluster.UID(t), record.Get("k8s.cluster.uid"))
		gateway := cluster.Get(t, "apps/v1", "Deployment", "multi-cluster", "gateway")
		assert.Equal(t, string(gateway.GetUID()), record.Get("k8s.workload.uid"))
	}
	collector.Stop(t)
	for name, cluster := range clusters {
		assert.Equal(t, int64(1), backend.Occurrences("k8s.cluster.name", name, "k8s.cluster.uid", cluster.UID(t),
			"k8s.event.reason", "ScalingReplicaSet", "k8s.workload.name", "gateway"), name)
	}
}

// TestSamplingAndRouting: one workload's events go to one backend, all of them; of the others every
// Warning and some of the rest to another; and the metric counts all.
func TestSamplingAndRouting(t *testing.T) {
	t.Parallel()
	kube.Apply(t, file("sampling-and-routing", "workloads.yaml"))
	here := []any{"k8s.namespace.name", "sampling"}
	billing, rest := harness.NewBackend(t), harness.NewBackend(t)
	awaitEvents(t, "Started", 26)
	awaitEvents(t, "FailedScheduling", 5)
	collector := run(t, "sampling-and-routing", "WORKLOAD=billing", "OTLP_ENDPOINT_WORKLOAD="+billing.URL, "OTLP_ENDPOINT="+rest.URL)
	billing.Await(t, append(here, "k8s.event.reason", "Started")...)
	harness.Eventually(t, func() bool { return len(rest.Records(append(here, "k8s.event.type", "Warning")...)) >= 5 }, "every Warning")
	collector.Stop(t)

	assert.Empty(t, billing.Records("k8s.workload.name", "catalog"))
	assert.Empty(t, rest.Records("k8s.workload.name", "billing"))

	ofCatalog := []any{"k8s.namespace.name", "sampling", "k8s.workload.name", "catalog"}
	assert.GreaterOrEqual(t, rest.Occurrences(append(ofCatalog, "k8s.event.reason", "Started")...), int64(25), "the metric is not sampled")
	kept := occurrencesOf(rest.Records(ofCatalog...))
	assert.Positive(t, kept)
	assert.Less(t, kept, rest.Occurrences(ofCatalog...), "not all Normal events are kept")
}

// awaitEvents waits until there are as many events of a reason in the recipe's namespace.
func awaitEvents(t *testing.T, reason string, count int) {
	t.Helper()
	harness.Eventually(t, func() bool {
		events, err := kube.CoreV1().Events("sampling").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
		return err == nil && len(events.Items) >= count
	}, "%d events %s", count, reason)
}
