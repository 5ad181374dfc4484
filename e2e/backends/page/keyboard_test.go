// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// focused is the element that has the keyboard focus.
type focused struct {
	Name   string // of a field, or the text of a link
	Ringed bool   // it has an outline
	Seen   bool   // it is in the window, and nothing is above it
}

const describeFocused = `(() => {
	const e = document.activeElement;
	const style = getComputedStyle(e);
	const box = e.getBoundingClientRect();
	const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
	return {
		name: e.name || e.ariaLabel || e.textContent.trim().replace(/\s+/g, " "),
		ringed: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
		seen: box.width > 0 && e.contains(top),
	};
})()`

// press presses keys one after the other.
func (b *browser) press(t *testing.T, keys string) {
	t.Helper()
	b.do(t, chromedp.KeyEvent(keys))
}

// tabTo moves the focus with the tab key until it is at an element, and checks each on the way.
func (b *browser) tabTo(t *testing.T, name string) {
	t.Helper()
	for range 40 {
		b.press(t, kb.Tab)
		at := value[focused](t, b, describeFocused)
		assert.True(t, at.Ringed, "%s has no outline", at.Name)
		assert.True(t, at.Seen, "%s is covered", at.Name)
		if at.Name == name {
			return
		}
	}
	t.Fatalf("the tab key does not lead to %q", name)
}

// testKeyboard is about a viewer without a mouse, and one who hears the page.
func testKeyboard(t *testing.T, b *browser, url string) {
	t.Run("skips the filters, and opens a problem", func(t *testing.T) {
		b.open(t, url+"?namespace=shop")
		b.tabTo(t, "Skip to the problems")
		b.press(t, kb.Enter)
		b.await(t, `document.activeElement.id === "content"`)
		b.tabTo(t, "deployment checkout")
		b.awaitUpdate(t)
		assert.Equal(t, "deployment checkout", value[focused](t, b, describeFocused).Name, "an update keeps the focus")
		b.press(t, kb.Enter)
		b.await(t, `location.search.startsWith("?workload=") && document.getElementById("state").value === "live"`)
	})
	t.Run("opens a pod of the timeline, which stays open", func(t *testing.T) {
		const pod = `document.querySelector(".rollouts details details")`
		b.run(t, `document.querySelector(".rollouts > details > summary").focus();`)
		b.press(t, kb.Tab)
		at := value[focused](t, b, describeFocused)
		assert.Contains(t, at.Name, "pod checkout-")
		assert.True(t, at.Ringed && at.Seen, "%+v", at)
		b.press(t, kb.Enter)
		b.await(t, pod+`.open`)
		b.awaitUpdate(t)
		assert.True(t, value[bool](t, b, pod+`.open`), "it is open after an update")
		assert.Contains(t, value[focused](t, b, describeFocused).Name, "pod checkout-")
	})
	t.Run("hears what everything is", func(t *testing.T) {
		b.open(t, url)
		heard := b.heard(t)
		for _, landmark := range []string{"banner", "search", "main"} {
			assert.Len(t, heard[landmark], 1, landmark)
		}
		assert.Subset(t, heard["combobox"], []string{"Namespace", "Reason", "Type", "Tilt manifest", "Last"})
		for _, role := range []string{"button", "link", "image"} {
			assert.NotContains(t, heard[role], "", role)
		}
		assert.Contains(t, heard["image"], "Warning:", "the mark of a warning")
		assert.Empty(t, value[[]string](t, b, skippedHeadings))
	})
}

// heard returns the names of the elements that a screen reader reads, by their roles.
func (b *browser) heard(t *testing.T) map[string][]string {
	t.Helper()
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	require.NoError(t, err)
	names := map[string][]string{}
	for _, node := range tree.Nodes {
		if role := textOf(t, node.Role); role != "" && !node.Ignored {
			names[role] = append(names[role], textOf(t, node.Name))
		}
	}
	return names
}

func textOf(t *testing.T, v *accessibility.Value) (text string) {
	t.Helper()
	if v != nil && len(v.Value) > 0 {
		require.NoError(t, json.Unmarshal(v.Value, &text), fmt.Sprint(v.Value))
	}
	return strings.TrimSpace(text)
}

// skippedHeadings lists headings that are more than one level below the heading before them.
const skippedHeadings = `Array.from(document.querySelectorAll("h1, h2, h3, h4, h5, h6")).filter((heading, i, all) =>
	heading.tagName[1] - (i === 0 ? 0 : all[i - 1].tagName[1]) > 1).map((heading) => heading.textContent)`
