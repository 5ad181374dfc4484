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
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/controlplane/demo"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/proc"
)

var update = flag.Bool("update", false, "take the screenshot of the README again")

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
			b.await(t, fmt.Sprintf(`Array.from(document.querySelectorAll("h2"), (e) => e.textContent.trim()).includes(%q)`, top))
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
	if *update {
		takeScreenshot(t, b)
	}
	testFilters(t, b)
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

// testAttention is about who does not look at the page, and who walks through it with the keyboard.
func testAttention(t *testing.T, b *browser) {
	t.Run("a link that has the focus keeps it while its card changes", func(t *testing.T) {
		b.do(t, chromedp.Evaluate[chromedp.Void](`{
			window.before = document.querySelector("article");
			window.before.querySelector("h2 a").focus();
		}`))
		b.await(t, `!window.before.isConnected && document.activeElement.textContent === window.before.querySelector("h2 a").textContent`)
	})
	t.Run("a filter is not exchanged under the pointer, but afterwards", func(t *testing.T) {
		b.do(t, chromedp.Evaluate[chromedp.Void](`{
			window.before = document.getElementById("facets");
			window.before.querySelector("select").focus();
			new MutationObserver(() => { window.stayed = window.before.isConnected; }).observe(document.querySelector("main"), {childList: true});
		}`))
		b.await(t, `window.stayed && postponed !== null`)
		b.do(t, chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
		b.await(t, `!window.before.isConnected`)
	})
	t.Run("a hidden page follows when it is seen again", func(t *testing.T) {
		hide := func(hidden bool) {
			b.do(t, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{
				Object.defineProperty(document, "hidden", {value: %t, configurable: true});
				document.dispatchEvent(new Event("visibilitychange"));
			}`, hidden)))
		}
		hide(true)
		b.await(t, `document.getElementById("state").value === "paused" && updates.readyState === EventSource.CLOSED`)
		hide(false)
		b.awaitLive(t)
	})
}

// takeScreenshot waits until the demo has something to show over time.
func takeScreenshot(t *testing.T, b *browser) {
	b.await(t, `document.querySelectorAll("#chart g").length > 12`)
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(harness.InRepository("docs", "page.png"), picture, 0o644))
}

func testFilters(t *testing.T, b *browser) {
	t.Run("the events of a manifest", func(t *testing.T) {
		b.choose(t, "manifest", "bakery")
		assert.Equal(t, []string{"bakery corner"}, b.texts(t, "h2"))
		b.choose(t, "manifest", "")
	})
	t.Run("warnings of a namespace", func(t *testing.T) {
		b.choose(t, "namespace", "demo")
		b.choose(t, "type", "Warning")
		assert.ElementsMatch(t, []string{"deployment crashing", "deployment stuck"}, b.texts(t, "h2"))
		assert.Subset(t, []string{"BackOff", "FailedScheduling"}, b.texts(t, "td.reason"))
	})
	t.Run("a reason", func(t *testing.T) {
		b.choose(t, "reason", "FailedScheduling")
		assert.Equal(t, []string{"deployment stuck"}, b.texts(t, "h2"))
		b.choose(t, "type", "")
		b.choose(t, "reason", "")
	})
	t.Run("one workload", func(t *testing.T) {
		b.do(t, chromedp.Click(`//h2/a[contains(., "shop")]`))
		b.await(t, `location.search.includes("workload=") && document.readyState === "complete"`)
		assert.Equal(t, []string{"deployment shop"}, b.texts(t, "h2"))
		assert.Empty(t, b.texts(t, "article .hidden"), "all that is known of it")
		b.do(t, chromedp.Click(`//a[.="all workloads"]`))
		b.await(t, `document.querySelectorAll("article").length > 3`)
	})
}
