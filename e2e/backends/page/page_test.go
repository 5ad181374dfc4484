// SPDX-License-Identifier: Apache-2.0

// Package page checks the page of events that a user of make run sees: the same configuration, the
// same demo on a real control plane, and a browser.
package page

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/demo"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

var update = flag.Bool("update", false, "take the screenshots in docs/ again")

var kube *harness.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(harness.RunAll(m, controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 3}, &kube))
}

// perform runs the demo of make run until the test ends.
func perform(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- demo.Run(ctx, kube.RESTConfig()) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
	})
}

// serve runs the Collector of make run, and waits until it serves the page at an address.
func serve(t *testing.T, address string) *harness.Collector {
	t.Helper()
	collector := harness.Run(t, harness.Otelcol(t), harness.InRepository("distribution", "config.yaml"),
		"KUBECONFIG="+kube.Kubeconfig(), "PAGE_ENDPOINT="+address, "PROMETHEUS_ENDPOINT=127.0.0.1:0")
	awaitPage(t, address)
	return collector
}

// awaitPage waits until somebody listens at the address.
func awaitPage(t *testing.T, address string) {
	t.Helper()
	harness.Eventually(t, func() bool {
		connection, err := net.Dial("tcp", address)
		return err == nil && connection.Close() == nil
	}, "the page at %s", address)
}

func TestTheDemoInABrowser(t *testing.T) {
	addresses, err := process.FreeAddresses(1)
	require.NoError(t, err)
	collector := serve(t, addresses[0])
	url := "http://" + addresses[0] + "/"
	b := browse(t, url)
	b.awaitLive(t)
	perform(t)
	t.Run("problems come without a reload, and are announced", func(t *testing.T) {
		b.await(t, `Array.from(document.querySelectorAll("article.current h3"), (e) => e.textContent.trim()).includes("deployment stuck")`)
		b.await(t, `document.getElementById("news").textContent.startsWith("New problems: ")`)
	})
	lowerLimit(t)
	testProblem(t, b, url)
	b.open(t, url)
	testHostileEvents(t, b)
	testKeyboard(t, b, url)
	testTimes(t, b, url)
	testModes(t, b, url)
	b.open(t, url)
	testAttention(t, b)
	assert.Empty(t, b.complained())

	collector.Stop(t)
	b.await(t, `document.getElementById("state").className === "lost"`)
	serve(t, addresses[0])
	b.awaitLive(t)
}

// TestAPasswordInABrowser: a browser sends a password only if the answer without one asks for it.
func TestAPasswordInABrowser(t *testing.T) {
	addresses, err := process.FreeAddresses(1)
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte(`
receivers: {kube_events: {auth_type: kubeConfig}}
exporters:
  event_page:
    endpoint: `+addresses[0]+`
    auth: {authenticator: basicauth}
    response_headers: {WWW-Authenticate: Basic realm="events"}
extensions:
  basicauth: {htpasswd: {inline: "alice:secret"}}
service:
  extensions: [basicauth]
  pipelines: {logs: {receivers: [kube_events], exporters: [event_page]}}
`), 0o600))
	harness.Run(t, harness.Otelcol(t), config, "KUBECONFIG="+kube.Kubeconfig())
	awaitPage(t, addresses[0])
	b := browse(t, "http://alice:secret@"+addresses[0])
	b.open(t, "http://"+addresses[0])
}

// lowerLimit rolls out a limit of memory that is too low. The nodes are simulated, so the test ends the container, and
// writes the kubelet's Events.
func lowerLimit(t *testing.T) {
	t.Helper()
	kube.Apply(t, "e2e/backends/page/testdata/checkout.yaml")
	awaitPods(t, "256Mi", 3)
	ends, between := 1, time.Second // The events of controllers have whole seconds: two rollouts of the same second have no order.
	if *update {
		ends, between = 3, 20*time.Second // The pictures show a crash loop.
	}
	time.Sleep(between)
	// No pod is available for 500 s, so the new pod replaces none.
	patch := `{"spec":{"minReadySeconds":500,"template":{"spec":{"containers":[{"name":"app","resources":{"limits":{"memory":"128Mi"}}}]}}}}`
	_, err := kube.AppsV1().Deployments("shop").Patch(t.Context(), "checkout", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "argocd-controller"})
	require.NoError(t, err)
	pod, kubelet := awaitPods(t, "128Mi", 1)[0], kube.Recorder(t, "kubelet")
	container := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, FieldPath: "spec.containers{app}"}
	for restarts := range ends {
		time.Sleep(between)
		runOutOfMemory(t, pod.Name, restarts+1)
		kubelet.Event(container, "Warning", "BackOff", "Back-off restarting failed container app in pod "+pod.Name+"_shop("+string(pod.UID)+")")
	}
}

// runOutOfMemory writes that the kernel has ended a pod's container at its limit.
func runOutOfMemory(t *testing.T, pod string, restarts int) {
	t.Helper()
	end := time.Now()
	patch := fmt.Sprintf(`{"status":{"containerStatuses":[{"name":"app","image":"example.com/checkout:1.0","imageID":"","ready":false,"restartCount":%d,
		"state":{"waiting":{"reason":"CrashLoopBackOff"}},
		"lastState":{"terminated":{"reason":"OOMKilled","exitCode":137,"startedAt":%q,"finishedAt":%q}}}]}}`,
		restarts, end.Add(-2*time.Second).Format(time.RFC3339), end.Format(time.RFC3339))
	_, err := kube.CoreV1().Pods("shop").Patch(t.Context(), pod, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

// awaitPods waits for so many pods that run with a limit of memory.
func awaitPods(t *testing.T, limit string, count int) (found []corev1.Pod) {
	t.Helper()
	harness.Eventually(t, func() bool {
		pods, err := kube.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{})
		found = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
			return pod.Spec.Containers[0].Resources.Limits.Memory().String() != limit || pod.Status.Phase != corev1.PodRunning
		})
		return err == nil && len(found) == count
	}, "pods with the limit %s", limit)
	return found
}

// testProblem is about a viewer who wants to know why a workload fails.
func testProblem(t *testing.T, b *browser, url string) {
	t.Run("what is wrong, and what changed before", func(t *testing.T) {
		b.open(t, url+"?namespace=shop")
		b.await(t, `document.querySelector("article.current .causes") !== null`)
		b.retakePictures(t, url)
		article := b.texts(t, "article.current")[0]
		for _, part := range []string{
			"deployment checkout", "BackOff of container app", "1 of 1 pod of the new revision, 0 of 3 of the old one",
			"OOMKilled at 128 MiB, exit 137", "memory limit app: 256Mi → 128Mi, when checkout-",
		} {
			assert.Contains(t, article, part)
		}
	})
	t.Run("a link leads to the record, which stays marked", func(t *testing.T) {
		b.run(t, `document.querySelector("article.current .causes a").click();`)
		b.await(t, `location.hash.startsWith("#record-") && document.querySelector("tr.target") !== null && document.getElementById("state").value === "live"`)
		b.awaitUpdate(t)
		assert.Contains(t, b.texts(t, "tr.target")[0], "Scaled up replica set checkout-")
	})
	t.Run("the timeline has the tree of the trace", func(t *testing.T) {
		kinds := b.texts(t, ".rollouts .name > .kind")
		assert.Subset(t, kinds, []string{"rollout", "pod"})
		assert.Positive(t, value[int](t, b, `document.querySelectorAll(".rollouts rect.warned").length`))
	})
}

// testHostileEvents is about events that say what a page must not do.
func testHostileEvents(t *testing.T, b *browser) {
	const hostile = `</td><script>hacked = 1</script><img src="x" onerror="hacked = 2"><b>bold</b>`
	node, err := kube.CoreV1().Nodes().Get(t.Context(), "node-0", metav1.GetOptions{})
	require.NoError(t, err)
	recorder := kube.Recorder(t, "hostile")
	recorder.Event(node, "Warning", "<b>Bad</b>", hostile)
	long := strings.Repeat("long", 50)
	recorder.Event(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: long, UID: "long"}}, "Normal", long[:100], long+long)

	isText := func(t *testing.T) {
		b.await(t, fmt.Sprintf(`Array.from(document.querySelectorAll("blockquote"), (e) => e.textContent).some((text) => text && %q.startsWith(text.slice(0, 50)))`, hostile))
		assert.Empty(t, b.texts(t, "article script, article img, blockquote b, td b"))
		assert.False(t, value[bool](t, b, `"hacked" in window`))
		assert.Empty(t, b.complained(), "the security policy had to stop something")
	}
	t.Run("in an update", isText)
	b.do(t, chromedp.Reload())
	t.Run("in a page", isText)
}

// awaitUpdate waits until the content has been replaced.
func (b *browser) awaitUpdate(t *testing.T) {
	t.Helper()
	b.run(t, `window.before = document.getElementById("chart");`)
	b.await(t, `!before.isConnected`)
}

// testAttention is about who does not look at the page, and who is busy in a part of it.
func testAttention(t *testing.T, b *browser) {
	t.Run("text can be copied while the page changes", func(t *testing.T) {
		b.run(t, `window.before = document.querySelector("blockquote"); getSelection().selectAllChildren(before);`)
		b.await(t, `fetched !== null`)
		assert.True(t, value[bool](t, b, `before.isConnected && getSelection().toString().trim() === before.textContent.trim()`))
		b.run(t, `getSelection().removeAllRanges();`)
		b.await(t, `!before.isConnected`)
	})
	t.Run("a hidden page follows when it is seen again", func(t *testing.T) {
		hide := func(hidden bool) {
			b.run(t, fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %t, configurable: true});`, hidden))
		}
		hide(true)
		b.await(t, `document.getElementById("state").value === "paused"`)
		hide(false)
		b.awaitLive(t)
	})
}
