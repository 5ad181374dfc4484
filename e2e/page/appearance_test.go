// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	_ "embed"
	"image/png"
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

// testModes takes a picture of the page in both modes. With -update, they become those in docs/.
func testModes(t *testing.T, b *browser) {
	if *update {
		b.await(t, `document.querySelectorAll("#chart g").length > 12`)
	}
	for mode, tt := range map[string]struct {
		file     string
		darkest  float64 // of the picture's mean brightness
		lightest float64
	}{
		"light": {"page.png", 0.8, 1},
		"dark":  {"page-dark.png", 0, 0.2},
	} {
		t.Run(mode, func(t *testing.T) {
			b.prefer(t, mode)
			picture := b.picture(t, tt.file)
			if *update {
				require.NoError(t, os.WriteFile(harness.InRepository("docs", tt.file), picture, 0o644))
			}
			mean := brightness(t, picture)
			assert.GreaterOrEqual(t, mean, tt.darkest)
			assert.LessOrEqual(t, mean, tt.lightest)
			assert.Empty(t, value[[]string](t, b, unreadable))
		})
	}
	b.prefer(t, "light")
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

// brightness returns the mean brightness of a picture, from 0 to 1.
func brightness(t *testing.T, picture []byte) float64 {
	t.Helper()
	decoded, err := png.Decode(bytes.NewReader(picture))
	require.NoError(t, err)
	size, sum := decoded.Bounds(), 0.0
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			red, green, blue, _ := decoded.At(x, y).RGBA()
			sum += float64(red+green+blue) / (3 * 0xffff)
		}
	}
	return sum / float64(size.Dx()*size.Dy())
}

// testNarrowWindow is about a window as wide as a telephone.
func testNarrowWindow(t *testing.T, b *browser, url string) {
	b.do(t, chromedp.EmulateViewport(narrow, 800))
	defer func() { b.do(t, chromedp.ResetViewport()) }()
	for name, show := range map[string]action{
		"all workloads": func(*testing.T, *browser) {},
		"one workload": func(t *testing.T, b *browser) {
			follow("shop")(t, b)
			b.await(t, `location.search.startsWith("?workload=") && !document.querySelector("[aria-busy]")`)
		},
		"long filters": func(t *testing.T, b *browser) {
			b.open(t, url+"?from=2026-03-01T11:30:00Z&until=2026-03-01T11:31:00Z&text=a+long+text+with+blanks&name="+strings.Repeat("long", 50))
		},
		"commands of a long name": func(t *testing.T, b *browser) {
			b.run(t, `document.querySelector('.kubectl[aria-label*="/longlong"]').click();`)
		},
		"only warnings": func(t *testing.T, b *browser) {
			onlyWarnings(t, b)
			b.awaitSelection(t, "?warnings=only")
		},
	} {
		t.Run("narrow: "+name, func(t *testing.T) {
			b.open(t, url)
			show(t, b)
			assert.LessOrEqual(t, value[int](t, b, `document.documentElement.scrollWidth`), narrow, "the page scrolls to the side")
			assert.Empty(t, value[[]string](t, b, `Array.from(document.querySelectorAll("input, select, button, a, td, code, dialog, .object, h2, #state"))
				.filter((e) => e.checkVisibility() && !e.matches(".skip") && (e.getBoundingClientRect().left < 0 || e.getBoundingClientRect().right > innerWidth))
				.map((e) => e.textContent.trim() || e.name)`), "cut off")
			for _, mode := range []string{"dark", "light"} {
				b.prefer(t, mode)
				assert.Empty(t, value[[]string](t, b, unreadable), mode)
				b.picture(t, mode+".png")
			}
		})
	}
}

// testTimes is about viewers in other time zones than the Collector.
func testTimes(t *testing.T, b *browser, url string) {
	defer send(t, b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{})
	for _, name := range []string{"Asia/Tokyo", "America/St_Johns"} {
		t.Run(name, func(t *testing.T) {
			zone, err := time.LoadLocation(name)
			require.NoError(t, err)
			send(t, b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name})
			b.open(t, url)
			assert.Equal(t, []string{"Times in " + name}, b.texts(t, "#zone"))
			inZone := func() {
				times := value[[][2]string](t, b, `Array.from(document.querySelectorAll("time:not(.minute)"), (e) => [e.dateTime, e.textContent])`)
				require.NotEmpty(t, times)
				for _, each := range times {
					at, err := time.Parse(time.RFC3339, each[0])
					require.NoError(t, err)
					assert.Equal(t, at.In(zone).Format(time.TimeOnly), each[1])
				}
				assert.NotContains(t, b.texts(t, "svg title")[0], "Z", "a time of the server")
			}
			inZone()
			b.run(t, `window.before = document.querySelector("#chart");`)
			b.await(t, `!before.isConnected`)
			inZone()
		})
	}
}

// testWithoutScripts is about a browser that runs no scripts: it has the list, and a button.
func testWithoutScripts(t *testing.T, b *browser, url string) {
	disable := func(disabled bool) {
		send(t, b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: disabled})
	}
	disable(true)
	defer disable(false)
	t.Run("without scripts", func(t *testing.T) {
		b.do(t, chromedp.Navigate(url))
		assert.Subset(t, b.texts(t, "h3"), []string{"deployment shop", "deployment stuck"})
		assert.Equal(t, []string{"Times in UTC"}, b.texts(t, "#zone"))
		typeName("stuck")(t, b)
		onlyWarnings(t, b)
		b.do(t, chromedp.Click(chromedp.CSS("#filters button")))
		b.await(t, `location.search.includes("name=stuck") && document.readyState === "complete"`)
		assert.Equal(t, []string{"deployment stuck"}, b.texts(t, "h3"))
		assert.Equal(t, "on", value[string](t, b, `document.querySelector("[name=warnings]").checked ? "on" : "off"`))
		follow("Clear filters")(t, b)
		b.await(t, `location.search === "" && document.readyState === "complete"`)
		assert.Subset(t, b.texts(t, "h3"), []string{"deployment shop", "deployment stuck"})
	})
}
