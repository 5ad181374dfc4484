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

// open loads a page as somebody does who got its address, and waits until it follows along.
func (b *browser) open(t *testing.T, url string) {
	t.Helper()
	b.do(t, chromedp.Navigate(url))
	b.awaitLive(t)
}

// run runs a script's statements in the page.
func (b *browser) run(t *testing.T, statements string) {
	t.Helper()
	b.do(t, chromedp.Evaluate[chromedp.Void]("{"+statements+"}"))
}

// value returns the value of a script's expression.
func value[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(t, err, expression)
	return got
}

// send sends a command of the DevTools protocol.
func send[P any](t *testing.T, b *browser, command cdp.Command[P, cdp.Empty], params P) {
	t.Helper()
	_, err := chromedp.Call(b.ctx, command, params)
	require.NoError(t, err)
}

// texts are those of all elements that a selector finds.
func (b *browser) texts(t *testing.T, selector string) []string {
	t.Helper()
	return value[[]string](t, b, fmt.Sprintf("Array.from(document.querySelectorAll(%q), (e) => e.textContent.trim().replace(/\\s+/g, ' '))", selector))
}
