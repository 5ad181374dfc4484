// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// typeMessage types a text into the search field for messages.
func typeMessage(text string) action {
	return func(t *testing.T, b *browser) {
		b.run(t, `const field = document.querySelector("[name=text]"); field.focus(); field.select();`)
		b.do(t, chromedp.KeyEvent(text))
	}
}

// click clicks the first element that an XPath finds.
func click(xpath string) action {
	return func(t *testing.T, b *browser) { b.do(t, chromedp.Click(xpath)) }
}

const (
	aReason    = `//ul[@class="reasons"]//a[contains(., "FailedScheduling")]`
	aRowReason = `//td//a[.="FailedScheduling"]`
	aNamespace = `//article[contains(., "stuck")]//*[@class="namespace"]/a`
	aKind      = `//*[@class="tree"]//a[@class="kind"][.="bakery"]`
	aName      = `//*[@class="tree"]//a[@class="name"][.="shop"]`
	aChosen    = `//*[@id="chosen"]//a[contains(., "FailedScheduling")]`
)

// zoomed is the time in the page's address.
func (b *browser) zoomed(t *testing.T) (from, until time.Time) {
	t.Helper()
	b.await(t, `location.search.includes("from=") && !document.querySelector("[aria-busy]")`)
	query := value[map[string]string](t, b, `Object.fromEntries(new URLSearchParams(location.search))`)
	from, err := time.Parse(time.RFC3339, query["from"])
	require.NoError(t, err)
	until, err = time.Parse(time.RFC3339, query["until"])
	require.NoError(t, err)
	return from, until
}

// place returns where a part of the chart is, in the window.
func (b *browser) place(t *testing.T, part float64) (x, y float64) {
	t.Helper()
	at := value[[]float64](t, b, fmt.Sprintf(`(() => {
		const box = document.querySelector("#chart svg").getBoundingClientRect();
		return [box.x + box.width * %f, box.y + box.height / 2];
	})()`, part))
	return at[0], at[1]
}

func (b *browser) mouse(t *testing.T, kind input.DispatchMouseEventType, part float64) {
	t.Helper()
	x, y := b.place(t, part)
	b.do(t, chromedp.MouseEvent(kind, x, y, chromedp.ButtonLeft, func(p *input.DispatchMouseEventParams) { p.ClickCount = 1 }))
}

// shownTimes are those of the listed events.
const shownTimes = `Array.from(document.querySelectorAll("td time"), (e) => Date.parse(e.dateTime) / 1000)`

// testZoom is about a viewer who looks at a part of the chart.
func testZoom(t *testing.T, b *browser, url string) {
	t.Run("drags over the chart", func(t *testing.T) {
		b.open(t, url)
		b.mouse(t, chromedp.MousePressed, 0.25)
		b.mouse(t, chromedp.MouseMoved, 0.4)
		b.mouse(t, chromedp.MouseMoved, 0.75)
		assert.True(t, value[bool](t, b, `document.querySelector("#chart .range").getBoundingClientRect().width > document.querySelector("#chart svg").getBoundingClientRect().width * 0.45`))
		b.await(t, `postponed.has("chart") && document.querySelector("#chart .range") !== null`)
		b.mouse(t, chromedp.MouseReleased, 0.75)
		from, until := b.zoomed(t)
		assert.True(t, from.Before(until))
		for _, at := range value[[]int64](t, b, shownTimes) {
			assert.True(t, at >= from.Unix() && at < until.Unix(), "an event that did not occur in this time")
		}
		assert.Equal(t, from.Format(time.RFC3339), value[string](t, b, `document.getElementById("chart").dataset.from`))
		assert.Regexp(t, `, from [\d:]+ to [\d:]+$`, b.texts(t, "#news")[0], "what the page says of it")
		cards := b.texts(t, "h3")
		assert.NotEmpty(t, cards)
		b.open(t, value[string](t, b, `location.href`))
		assert.ElementsMatch(t, cards, b.texts(t, "h3"), "of who opens the address")

		click(`//button[.="Reset zoom"]`)(t, b)
		b.awaitSelection(t, "")
		b.await(t, `document.querySelector("[name=reset]").hidden`)
		assert.Equal(t, "start", value[focused](t, b, describeFocused).Name, "the button that had the focus is gone")
	})
	t.Run("clicks on the chart, or changes its mind", func(t *testing.T) {
		b.open(t, url)
		b.mouse(t, chromedp.MousePressed, 0.5)
		b.mouse(t, chromedp.MouseReleased, 0.5)
		b.mouse(t, chromedp.MousePressed, 0.25)
		b.mouse(t, chromedp.MouseMoved, 0.75)
		b.press(t, kb.Escape)
		b.await(t, `document.querySelector("#chart .range, #chart .dragged") === null`)
		b.mouse(t, chromedp.MouseReleased, 0.75)
		assert.Empty(t, value[string](t, b, `location.search`))
	})
	t.Run("zooms with the keyboard", func(t *testing.T) {
		b.open(t, url)
		b.tabTo(t, "start")
		b.press(t, kb.ArrowRight+kb.ArrowRight)
		b.tabTo(t, "end")
		b.press(t, kb.ArrowLeft)
		chosen := value[[]int64](t, b, `range`)
		b.tabTo(t, "Zoom")
		b.press(t, kb.Enter)
		from, until := b.zoomed(t)
		assert.Equal(t, []int64{from.Unix(), until.Unix()}, chosen)
		assert.Regexp(t, `^\d\d:\d\d:\d\d$`, value[string](t, b, `document.querySelector("[name=start]").getAttribute("aria-valuetext")`))
		b.tabTo(t, "reset")
		b.press(t, kb.Enter)
		b.awaitSelection(t, "")
	})
	t.Run("chooses how far back to look instead", func(t *testing.T) {
		now := time.Now().UTC()
		b.open(t, url+"?from="+now.Add(-time.Minute).Format(time.RFC3339)+"&until="+now.Format(time.RFC3339))
		choose("minutes", "10")(t, b)
		b.awaitSelection(t, "?minutes=10")
	})
}

// hostileName is a name that a shell must not read.
const hostileName = `$(touch hacked)'<img onerror>`

// nameHostile writes an event about a pod with such a name, which no API server checks.
func nameHostile(t *testing.T, b *browser) {
	t.Helper()
	_, err := kube.CoreV1().Events("demo").Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "hostile-name"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "demo", Name: hostileName, UID: "hostile-name"},
		Type:           "Normal", Reason: "Named", Message: "m", FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	b.await(t, fmt.Sprintf(`Array.from(document.querySelectorAll("a.name"), (e) => e.textContent).includes(%q)`, hostileName))
}

// pasted returns what the clipboard has.
func (b *browser) pasted(t *testing.T) string {
	t.Helper()
	b.run(t, `const area = document.createElement("textarea"); (document.querySelector("dialog[open]") ?? document.body).append(area); area.focus();`)
	defer b.run(t, `document.querySelector("textarea").remove();`)
	b.do(t, chromedp.KeyEvent("v", chromedp.KeyModifiers(chromedp.ModifierCtrl), func(p *input.DispatchKeyEventParams) {
		if p.Type != kb.KeyUp {
			p.Commands = []string{"paste"}
		}
	}))
	return value[string](t, b, `document.querySelector("textarea").value`)
}

// testCommands is about a viewer who goes on in a terminal.
func testCommands(t *testing.T, b *browser, url string) {
	b.open(t, url)
	nameHostile(t, b)
	const crashing = `document.querySelector('.kubectl[aria-label*="pod/crashing-"]')`
	t.Run("copies with the keyboard, while the card changes", func(t *testing.T) {
		b.run(t, `window.before = `+crashing+`; before.focus();`)
		pod := value[string](t, b, `before.closest(".object").querySelector("a.name").textContent`)
		b.press(t, kb.Enter)
		assert.Equal(t, []string{
			"kubectl describe pod -n demo " + pod,
			"kubectl logs -n demo " + pod + " --previous",
			"kubectl get events -n demo --field-selector involvedObject.name=" + pod,
		}, b.texts(t, "#commands code"))
		b.tabTo(t, "Copy kubectl logs -n demo "+pod+" --previous")
		b.press(t, kb.Enter)
		b.await(t, fmt.Sprintf(`document.querySelector("#commands [role=status]").textContent === "Copied: kubectl logs -n demo %s --previous"`, pod))
		assert.Equal(t, []string{"Copy", "Copied", "Copy"}, b.texts(t, "#commands li button"))
		assert.Equal(t, "kubectl logs -n demo "+pod+" --previous", b.pasted(t))
		b.await(t, `!before.isConnected`)
		b.press(t, kb.Escape)
		// The browser fires the event that returns the focus after it has closed the dialog.
		b.await(t, fmt.Sprintf(`!document.querySelector("dialog[open]") && document.activeElement.ariaLabel === "Commands and filters for pod/%s"`, pod))
	})
	t.Run("filters with the keyboard", func(t *testing.T) {
		b.run(t, crashing+`.focus();`)
		b.press(t, kb.Enter)
		b.tabTo(t, "pod")
		b.press(t, kb.Enter)
		b.awaitSelection(t, "?kind=pod")
		assert.False(t, value[bool](t, b, `document.getElementById("commands").open`), "the key also pressed the button")
		assert.Equal(t, "cards", value[string](t, b, `document.activeElement.id`))
	})
	t.Run("copies the name of an attacker", func(t *testing.T) {
		b.open(t, url)
		b.run(t, fmt.Sprintf(`Array.from(document.querySelectorAll(".object")).find((e) => e.title === "pod/" + %q).querySelector("button").click();`, hostileName))
		b.do(t, chromedp.Click(`//*[@id="commands"]//button[.="Copy"]`))
		b.await(t, `document.querySelector("#commands [role=status]").textContent.startsWith("Copied")`)
		assert.Equal(t, `kubectl describe pod -n demo '$(touch hacked)'\''<img onerror>'`, b.pasted(t))
		assert.Empty(t, b.texts(t, "#commands img, article img, #chosen img"))
	})
	testClipboards(t, b, url, crashing)
}

// testClipboards is about browsers that keep the clipboard from the page, as on an address with
// http://.
func testClipboards(t *testing.T, b *browser, url, button string) {
	for name, tt := range map[string]struct{ script, says string }{
		"copies what is selected": {`Object.defineProperty(navigator, "clipboard", {value: undefined});`, "Copied: kubectl describe "},
		"cannot copy": {`
			Object.defineProperty(navigator, "clipboard", {value: undefined});
			document.execCommand = () => false;`, "The browser does not allow it."},
	} {
		t.Run("has no clipboard: "+name, func(t *testing.T) {
			b.open(t, url)
			b.run(t, tt.script+button+`.click();`)
			command := b.texts(t, "#commands code")[0]
			b.do(t, chromedp.Click(`//*[@id="commands"]//button[.="Copy"]`))
			b.await(t, fmt.Sprintf(`document.querySelector("#commands [role=status]").textContent.startsWith(%q)`, tt.says))
			assert.Equal(t, command, value[string](t, b, `getSelection().toString()`), "it can be copied with the keyboard")
		})
	}
}
