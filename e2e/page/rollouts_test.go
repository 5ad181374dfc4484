// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crashingCard is the card of the workload that crashes.
const crashingCard = `Array.from(document.querySelectorAll("article")).find((card) => card.querySelector("h3").textContent.trim() === "deployment crashing")`

// testRollouts is about a viewer who wants to know what changed: the answer, the records that it rests
// on, and the timeline.
func testRollouts(t *testing.T, b *browser, url string) {
	t.Run("what changed before the first warning", func(t *testing.T) {
		b.open(t, url)
		b.await(t, crashingCard+`?.querySelector(".changed") != null`)
		answer := value[string](t, b, crashingCard+`.querySelector(".changed p").textContent.replace(/\s+/g, " ")`)
		assert.Regexp(t, `^The rollout of replicaset\.apps/crashing-\S+ began (\d+ (s|min) before|in the same second as) the first warning, BackOff at `, answer)
	})
	t.Run("a link leads to the record", func(t *testing.T) {
		b.run(t, crashingCard+`.querySelector(".changed .records a").click();`)
		b.await(t, `location.hash.startsWith("#record-") && document.querySelector(".evidence .target") !== null`)
		b.awaitLive(t)
		b.run(t, `window.before = document.querySelector("article");`)
		b.await(t, `!before.isConnected`)
		assert.Contains(t, value[string](t, b, `document.querySelector(".evidence .target").textContent`), "Scaled up replica set crashing-")
	})
	t.Run("the timeline has the tree of the trace", func(t *testing.T) {
		kinds := value[[]string](t, b, `Array.from(document.querySelectorAll(".rollouts .name > .kind"), (e) => e.textContent)`)
		assert.Subset(t, kinds, []string{"rollout", "pod", "schedule"})
		assert.Positive(t, value[int](t, b, `document.querySelectorAll(".rollouts rect.warned").length`))
	})
	testTimelineByKeyboard(t, b)
	testNarrowTimeline(t, b)
	t.Run("a script reads the same", func(t *testing.T) {
		b.run(t, `window.read = null; fetch("api/workloads").then((r) => r.json()).then((all) => {
			const uid = all.workloads.find((w) => w.name === "crashing").uid;
			return fetch("api/workloads/" + uid);
		}).then((r) => r.json()).then((one) => { window.read = one; });`)
		b.await(t, `read !== null`)
		said := value[string](t, b, crashingCard+`.querySelector(".changed p").textContent`)
		assert.Contains(t, said, value[string](t, b, `read.changed.changes[0].text`))
		assert.Equal(t, value[string](t, b, `document.querySelector(".evidence .target").id`), "record-"+value[string](t, b, `read.changed.changes[0].records[0].uid`))
		assert.Equal(t, value[int](t, b, `read.rollouts.length`), value[int](t, b, `document.querySelectorAll(".rollouts > details").length`))
	})
}

// testTimelineByKeyboard opens and closes what a rollout has, and waits for the next update of the card.
func testTimelineByKeyboard(t *testing.T, b *browser) {
	const pod = `document.querySelector(".rollouts details details")`
	t.Run("the timeline is opened with the keyboard, and stays open and focused", func(t *testing.T) {
		require.True(t, value[bool](t, b, `document.querySelector(".rollouts > details").open`), "the newest rollout is open")
		b.run(t, `document.querySelector(".rollouts > details > summary").focus();`)
		b.press(t, kb.Tab)
		at := value[focused](t, b, describeFocused)
		assert.True(t, at.Ringed && at.Seen, "%+v", at)
		assert.Contains(t, at.Name, "pod crashing-")
		b.press(t, kb.Enter)
		b.await(t, pod+`.open`)
		b.run(t, `window.before = document.querySelector("article");`)
		b.await(t, `!before.isConnected`)
		assert.True(t, value[bool](t, b, pod+`.open`), "it is open after an update")
		assert.Contains(t, value[focused](t, b, describeFocused).Name, "pod crashing-")
		heard := fmt.Sprint(b.heard(t)["DisclosureTriangle"])
		assert.Contains(t, heard, "rollout crashing-")
		assert.Contains(t, heard, "warning")
		b.press(t, " ")
		b.await(t, `!`+pod+`.open`)
	})
}

// testNarrowTimeline opens everything, in both modes, in a window as wide as a telephone.
func testNarrowTimeline(t *testing.T, b *browser) {
	defer func() { b.do(t, chromedp.ResetViewport()) }()
	b.run(t, `for (const summary of document.querySelectorAll(".rollouts details:not([open]) > summary")) summary.click();`)
	for _, width := range []int64{1180, narrow} {
		b.do(t, chromedp.EmulateViewport(width, 1500))
		for _, mode := range []string{"dark", "light"} {
			t.Run(fmt.Sprintf("timeline: %d, %s", width, mode), func(t *testing.T) {
				b.prefer(t, mode)
				assert.LessOrEqual(t, value[int64](t, b, `document.documentElement.scrollWidth`), width, "the page scrolls to the side")
				assert.Empty(t, value[[]string](t, b, unreadable))
				b.picture(t, fmt.Sprintf("timeline-%d-%s.png", width, mode))
			})
		}
	}
}
