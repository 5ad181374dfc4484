// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// browser is a Chromium with one tab.
type browser struct {
	ctx context.Context

	mu         sync.Mutex
	complaints []string // what its console shows: errors of scripts, and what the page's security policy keeps out
}

// browse opens a page in a Chromium that ends with the test. Without one the test is skipped.
func browse(t *testing.T, url string) *browser {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("the page is looked at in Chromium, which is not installed: ", err)
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath("chromium"), chromedp.Headless, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.WindowSize(1180, 1500), chromedp.UserDataDir(t.TempDir())}
	for _, flag := range []string{"disable-background-networking", "disable-component-update", "disable-quic", "disable-sync"} {
		options = append(options, chromedp.Flag(flag, true)) // It needs no connection but that to the page.
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which Chromium has none of for root
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		assert.NoError(t, chromedp.Cancel(ctx))
		closeTab()
		end()
	})
	b := &browser{ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, b.note))
	_, err := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	require.NoError(t, err)
	b.do(t, chromedp.Navigate(url))
	return b
}

func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, event.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.complaints = append(b.complaints, event.Entry.Text+" "+event.Entry.URL)
	}
}

// complained is what the console has shown so far.
func (b *browser) complained() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.complaints
}

func (b *browser) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, 2*time.Minute)
	defer stop()
	require.NoError(t, chromedp.Do(ctx, actions...))
}

// await waits until a script's expression is true.
func (b *browser) await(t *testing.T, expression string) {
	t.Helper()
	harness.Eventually(t, func() bool {
		holds, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		return err == nil && holds // An error is that of a page which is being loaded.
	}, "%s", expression)
}

// awaitLive waits until the page follows along.
func (b *browser) awaitLive(t *testing.T) {
	t.Helper()
	b.await(t, `document.getElementById("state").value === "live"`)
}

// texts are those of all elements that a selector finds.
func (b *browser) texts(t *testing.T, selector string) []string {
	t.Helper()
	all, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](
		"Array.from(document.querySelectorAll(`"+selector+"`), (e) => e.textContent.trim().replace(/\\s+/g, ' '))"))
	require.NoError(t, err)
	return all
}

// choose takes a value of a filter, as a user does, and waits for the page that shows what passes.
func (b *browser) choose(t *testing.T, filter, value string) {
	t.Helper()
	b.do(t, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{
		const select = document.querySelector("select[name=%s]");
		select.value = %q;
		select.dispatchEvent(new Event("change", {bubbles: true}));
	}`, filter, value)))
	b.await(t, fmt.Sprintf(`(new URLSearchParams(location.search).get(%q) || "") === %q && document.readyState === "complete"`, filter, value))
}
