// SPDX-License-Identifier: Apache-2.0

package page

import (
	_ "embed"
	"fmt"
	neturl "net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// unreadable is a script that returns the texts with too little contrast to what is behind them.
//
//go:embed unreadable.js
var unreadable string

// narrow is the width of a small telephone.
const narrow = 400

// testModes takes pictures of the page and of a workload in both modes.
func testModes(t *testing.T, b *browser, url string) {
	for _, width := range []int64{1180, narrow} {
		b.open(t, url)
		b.do(t, chromedp.EmulateViewport(width, 1100))
		for name, address := range map[string]string{
			"page": url, "filters": url + "?from=2026-03-01T11:30:00Z&until=2099-03-01T11:31:00Z&reason=" + strings.Repeat("long", 50),
			"workload": value[string](t, b, `document.querySelector("article h3 a").href`),
		} {
			for _, mode := range []string{"light", "dark"} {
				t.Run(fmt.Sprintf("%s, %s, %d", name, mode, width), func(t *testing.T) {
					b.open(t, address)
					b.run(t, `for (const summary of document.querySelectorAll("details:not([open]) > summary")) summary.click();`)
					b.prefer(t, mode)
					file := name + map[string]string{"dark": "-dark"}[mode] + ".png"
					b.picture(t, file)
					assert.Empty(t, value[[]string](t, b, unreadable))
					assert.LessOrEqual(t, value[int64](t, b, `document.documentElement.scrollWidth`), width, "the page scrolls to the side")
				})
			}
		}
	}
	b.do(t, chromedp.ResetViewport())
	b.prefer(t, "light")
}

// retakePictures takes those in docs/ again with -update.
func (b *browser) retakePictures(t *testing.T, url string) {
	if !*update {
		return
	}
	b.do(t, chromedp.EmulateViewport(1180, 800))
	b.open(t, url)
	for mode, file := range map[string]string{"light": "page.png", "dark": "page-dark.png"} {
		b.prefer(t, mode)
		require.NoError(t, os.WriteFile(harness.InRepository("docs", file), withPalette(t, b.picture(t, file)), 0o644))
	}
	b.do(t, chromedp.ResetViewport())
	b.open(t, url+"?namespace=shop")
}

// picture takes a picture of the window. With the flag -artifacts, go test keeps it.
func (b *browser) picture(t *testing.T, file string) []byte {
	t.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(t.ArtifactDir(), file), picture, 0o644))
	return picture
}

// prefer sets what the viewer prefers: a mode, and nothing that moves.
func (b *browser) prefer(t *testing.T, mode string) {
	t.Helper()
	send(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: mode}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// testTimes is about a viewer in another time zone than the Collector.
func testTimes(t *testing.T, b *browser, url string) {
	const name = "America/St_Johns"
	defer send(t, b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{})
	t.Run(name, func(t *testing.T) {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		send(t, b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name})
		b.open(t, url)
		b.awaitUpdate(t)
		assert.Equal(t, []string{"Times in " + name}, b.texts(t, "#zone"))
		times := value[[][2]string](t, b, `Array.from(document.querySelectorAll("time"), (e) => [e.dateTime, e.textContent])`)
		require.NotEmpty(t, times)
		for _, each := range times {
			at, err := time.Parse(time.RFC3339, each[0])
			require.NoError(t, err)
			assert.Equal(t, at.In(zone).Format(time.TimeOnly), each[1])
		}
		assert.NotContains(t, b.texts(t, "svg title")[0], "Z", "a time of the server")
		before := time.Now().In(zone).Add(-30 * time.Minute).Truncate(time.Minute) // in the hour of the page, before the demo
		local, sent := before.Format("2006-01-02T15:04"), neturl.QueryEscape(before.UTC().Format(time.RFC3339))
		b.run(t, fmt.Sprintf(`filters.elements.until.value = %q; filters.requestSubmit();`, local))
		b.await(t, fmt.Sprintf(`location.search === "?until=%s" && document.getElementById("state").value === "live"`, sent))
		assert.Equal(t, local, value[string](t, b, `filters.elements.until.value`))
		assert.Contains(t, b.texts(t, "h2")[0], "0 problems go on in what is chosen")
	})
}
