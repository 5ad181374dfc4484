// SPDX-License-Identifier: Apache-2.0

// Package page checks the page of events that a user of make run sees: the same configuration, the
// same demo on a real control plane, and a browser.
package page

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/demo"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/proc"
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

// serve runs the Collector of make run with the page at an address.
func serve(t *testing.T, address string) *harness.Collector {
	t.Helper()
	return harness.Run(t, harness.Otelcol(t), harness.InRepository("distribution", "config.yaml"),
		"KUBECONFIG="+kube.Kubeconfig(), "PAGE_ENDPOINT="+address, "PROMETHEUS_ENDPOINT=127.0.0.1:0")
}

func TestTheDemoInABrowser(t *testing.T) {
	addresses, err := proc.FreeAddresses(1)
	require.NoError(t, err)
	collector := serve(t, addresses[0])
	b := browse(t, "http://"+addresses[0])
	b.awaitLive(t)
	perform(t)

	t.Run("events come without a reload, grouped by the end of the owner chain", func(t *testing.T) {
		for _, top := range []string{"bakery corner", "deployment shop", "deployment stuck", "deployment crashing"} {
			b.await(t, fmt.Sprintf(`Array.from(document.querySelectorAll("h3"), (e) => e.textContent.trim()).includes(%q)`, top))
		}
	})
	t.Run("the chain is drawn from the custom resource down to the pod", func(t *testing.T) {
		b.await(t, `Array.from(document.querySelectorAll("article")).some((card) => {
			const kind = (depth) => card.querySelector(".tree > li" + " > ul > li".repeat(depth) + " > .object > .kind")?.textContent;
			return kind(0) === "bakery" && kind(1) === "deployment" && kind(2) === "replicaset" && kind(3) === "pod";
		})`)
	})
	t.Run("occurrences over time are drawn, and counts go up", func(t *testing.T) {
		b.await(t, `["normal", "warning"].every((type) => document.querySelector("#chart rect." + type))`)
		b.await(t, `Array.from(document.querySelectorAll("td.count")).some((e) => e.textContent === "×3")`)
	})
	testModes(t, b)
	testHostileEvents(t, b)
	url := "http://" + addresses[0] + "/"
	testWhatViewersDo(t, b, url)
	testKeyboard(t, b, url)
	testRollouts(t, b, url)
	testZoom(t, b, url)
	testCommands(t, b, url)
	testTimes(t, b, url)
	testNarrowWindow(t, b, url)
	testWithoutScripts(t, b, url)
	testPrefixes(t, b, addresses[0])
	b.open(t, url)
	testAttention(t, b)
	assert.Empty(t, b.complained())

	collector.Stop(t)
	b.await(t, `document.getElementById("state").className === "lost"`)
	refuse(t, addresses[0])
	serve(t, addresses[0])
	b.awaitLive(t)
}

// refuse answers at an address as a proxy does behind which there is no Collector, until the page
// has asked it for updates.
func refuse(t *testing.T, address string) {
	t.Helper()
	var asked atomic.Bool
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	proxy := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Store(true)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	require.NoError(t, proxy.Listener.Close())
	proxy.Listener = listener
	proxy.Start()
	defer proxy.Close()
	harness.Eventually(t, asked.Load, "the page's next request for updates")
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
		b.await(t, fmt.Sprintf(`Array.from(document.querySelectorAll("td.message")).some((e) => e.textContent === %q)`, hostile))
		assert.Empty(t, b.texts(t, "article script, article img, td b, td + b, .reason b"))
		assert.False(t, value[bool](t, b, `"hacked" in window`))
		assert.Empty(t, b.complained(), "the security policy had to stop something")
	}
	t.Run("in an update", isText)
	t.Run("a new warning is announced", func(t *testing.T) {
		b.await(t, `document.querySelector("[role=status]").textContent === "New warnings: node node-0"`)
	})
	b.do(t, chromedp.Reload())
	t.Run("in a page", isText)
}

// testAttention is about who does not look at the page, and who is busy in a part of it.
func testAttention(t *testing.T, b *browser) {
	const crashing = `Array.from(document.querySelectorAll("article")).find((card) => card.querySelector("h3").textContent.trim() === "deployment crashing")`
	t.Run("a link that has the focus keeps it while its card changes", func(t *testing.T) {
		b.run(t, `window.before = `+crashing+`; before.querySelector("h3 a").focus();`)
		b.await(t, `!before.isConnected && document.activeElement.textContent === before.querySelector("h3 a").textContent`)
	})
	t.Run("text can be copied while its card changes", func(t *testing.T) {
		b.run(t, `window.before = `+crashing+`; getSelection().selectAllChildren(before.querySelector("td.message"));`)
		b.await(t, `postponed.has(before.id)`)
		b.run(t, `arrange(Array.from(cards.children, (card) => card.id).reverse());`)
		assert.Equal(t, "Back-off restarting failed container", value[string](t, b, `getSelection().toString().trim()`))
		b.run(t, `getSelection().removeAllRanges();`)
		b.await(t, `!before.isConnected && document.getElementById(before.id) !== null`)
	})
	t.Run("a list of values is not exchanged under the pointer, but afterwards", func(t *testing.T) {
		b.run(t, `window.before = document.getElementById("facet-reason"); before.querySelector("select").focus();`)
		b.await(t, `postponed.has("facet-reason") && before.isConnected`)
		b.run(t, `document.activeElement.blur();`)
		b.await(t, `!before.isConnected`)
	})
	t.Run("a hidden page follows when it is seen again", func(t *testing.T) {
		hide := func(hidden bool) {
			b.run(t, fmt.Sprintf(`
				Object.defineProperty(document, "hidden", {value: %t, configurable: true});
				document.dispatchEvent(new Event("visibilitychange"));`, hidden))
		}
		hide(true)
		b.await(t, `document.getElementById("state").value === "paused" && updates.readyState === EventSource.CLOSED`)
		hide(false)
		b.awaitLive(t)
	})
}
