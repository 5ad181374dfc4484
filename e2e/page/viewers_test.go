// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// action is something that a viewer does on the page.
type action func(t *testing.T, b *browser)

// typeName types a name into the search field.
func typeName(name string) action {
	return func(t *testing.T, b *browser) {
		b.run(t, `const field = document.querySelector("[name=name]"); field.focus(); field.select();`)
		b.do(t, chromedp.KeyEvent(name))
	}
}

// onlyWarnings clicks the box.
func onlyWarnings(t *testing.T, b *browser) {
	b.do(t, chromedp.Click(chromedp.CSS("[name=warnings]")))
}

// choose takes a value from a list.
func choose(list, option string) action {
	return func(t *testing.T, b *browser) {
		b.run(t, fmt.Sprintf(`
			const select = document.querySelector("select[name=%s]");
			select.value = %q;
			select.dispatchEvent(new Event("input", {bubbles: true}));`, list, option))
	}
}

// follow clicks a link with a text that is not a filter.
func follow(text string) action {
	return func(t *testing.T, b *browser) {
		b.do(t, chromedp.Click(fmt.Sprintf(`//a[contains(., %q) and not(ancestor::*[@id="chosen"])]`, text)))
	}
}

// shows waits until the address has a query, and the page what it selects.
func shows(query string) action {
	return func(t *testing.T, b *browser) { b.awaitSelection(t, query) }
}

func back(t *testing.T, b *browser)    { b.run(t, `history.back();`) }
func forward(t *testing.T, b *browser) { b.run(t, `history.forward();`) }

// form returns the values of all filters.
const form = `Object.fromEntries(new FormData(document.getElementById("filters")))`

// testWhatViewersDo checks what the page shows after what a viewer does, without a reload, and that
// its address then shows the same to others.
func testWhatViewersDo(t *testing.T, b *browser, url string) {
	const crashing, stuck, shop, corner, node = "deployment crashing", "deployment stuck", "deployment shop", "bakery corner", "node node-0"
	const service = "service kubernetes"
	warnAboutService(t, b)
	tests := map[string]struct {
		does  []action
		query string
		want  []string // the workloads
	}{
		"types the name of a workload":       {[]action{typeName("stuck")}, "?name=stuck", []string{stuck}},
		"types a part of a pod's name":       {[]action{typeName("corner-oven-")}, "?name=corner-oven-", []string{corner}},
		"types a name in capitals":           {[]action{typeName("SHOP")}, "?name=SHOP", []string{shop}},
		"types a name that nothing has":      {[]action{typeName("nobody")}, "?name=nobody", []string{}},
		"types another name":                 {[]action{typeName("stuck"), shows("?name=stuck"), typeName("shop")}, "?name=shop", []string{shop}},
		"wants only warnings":                {[]action{onlyWarnings}, "?warnings=only", []string{crashing, stuck, node, service}},
		"wants only warnings of a namespace": {[]action{onlyWarnings, choose("namespace", "demo")}, "?namespace=demo&warnings=only", []string{crashing, stuck}},
		"chooses cluster-scoped objects": {
			[]action{onlyWarnings, choose("namespace", "(cluster-scoped)")}, "?namespace=%28cluster-scoped%29&warnings=only", []string{node}},
		"chooses a Tilt manifest":            {[]action{choose("manifest", "bakery")}, "?manifest=bakery", []string{corner}},
		"chooses a reason":                   {[]action{choose("reason", "FailedScheduling")}, "?reason=FailedScheduling", []string{stuck}},
		"looks less far back":                {[]action{choose("minutes", "10"), typeName("stuck")}, "?minutes=10&name=stuck", []string{stuck}},
		"types a text of a message":          {[]action{typeMessage("BACK-OFF restarting")}, "?text=BACK-OFF+restarting", []string{crashing}},
		"clicks a reason":                    {[]action{click(aReason)}, "?reason=FailedScheduling", []string{stuck}},
		"clicks the reason of an event":      {[]action{click(aRowReason)}, "?reason=FailedScheduling", []string{stuck}},
		"clicks a reason twice":              {[]action{typeName("stuck"), shows("?name=stuck"), click(aReason), shows("?name=stuck&reason=FailedScheduling"), click(aReason)}, "?name=stuck", []string{stuck}},
		"clicks a namespace":                 {[]action{onlyWarnings, shows("?warnings=only"), click(aNamespace)}, "?namespace=demo&warnings=only", []string{crashing, stuck}},
		"clicks a kind":                      {[]action{click(aKind)}, "?kind=bakery.example.com", []string{corner}},
		"clicks a name":                      {[]action{click(aName)}, "?name=shop", []string{shop}},
		"removes a filter":                   {[]action{typeName("stuck"), shows("?name=stuck"), click(aReason), shows("?name=stuck&reason=FailedScheduling"), click(aChosen)}, "?name=stuck", []string{stuck}},
		"goes back":                          {[]action{typeName("stuck"), shows("?name=stuck"), onlyWarnings, shows("?name=stuck&warnings=only"), back}, "?name=stuck", []string{stuck}},
		"goes back and forward":              {[]action{onlyWarnings, shows("?warnings=only"), back, shows(""), forward}, "?warnings=only", []string{crashing, stuck, node, service}},
		"goes back over a name, not letters": {[]action{onlyWarnings, shows("?warnings=only"), typeName("stu"), shows("?name=stu&warnings=only"), typeName("stuck"), shows("?name=stuck&warnings=only"), back}, "?warnings=only", []string{crashing, stuck, node, service}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b.open(t, url)
			b.run(t, `window.loadedOnce = true;`)
			for _, does := range tt.does {
				does(t, b)
			}
			b.awaitSelection(t, tt.query)
			assert.ElementsMatch(t, tt.want, b.texts(t, "h3"))
			assert.True(t, value[bool](t, b, `loadedOnce`), "the page was loaded again")
			filters := value[map[string]string](t, b, form)

			b.open(t, value[string](t, b, `location.href`))
			assert.ElementsMatch(t, tt.want, b.texts(t, "h3"), "of who opens the address")
			opened := value[map[string]string](t, b, form)
			assert.Equal(t, strings.ToLower(fmt.Sprint(filters)), strings.ToLower(fmt.Sprint(opened)), "of who opens the address")
		})
	}
	testOneWorkload(t, b, url)
	testWhatIsWrongComesFirst(t, b, url)
}

// warnAboutService writes what the API server of a busy machine writes, and waits until the page has
// it.
func warnAboutService(t *testing.T, b *browser) {
	t.Helper()
	service, err := kube.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	require.NoError(t, err)
	kube.Recorder(t, "ipallocator").Event(service, "Warning", "ClusterIPNotAllocated", "Cluster IP is not allocated; repairing")
	b.await(t, `Array.from(document.querySelectorAll("h3"), (e) => e.textContent.trim().replace(/\s+/g, " ")).includes("service kubernetes")`)
}

func testOneWorkload(t *testing.T, b *browser, url string) {
	t.Run("looks at one workload", func(t *testing.T) {
		b.open(t, url)
		b.run(t, `window.loadedOnce = true;`)
		follow("shop")(t, b)
		b.await(t, `location.search.startsWith("?workload=") && !document.querySelector("[aria-busy]")`)
		assert.Equal(t, []string{"deployment shop"}, b.texts(t, "h3"))
		assert.Empty(t, b.texts(t, "article .hidden"), "all that is known of it")
		follow("All workloads")(t, b)
		shows("")(t, b)
		assert.Subset(t, b.texts(t, "h3"), []string{"deployment shop", "deployment stuck"})
		assert.True(t, value[bool](t, b, `loadedOnce`), "the page was loaded again")
	})
	t.Run("finds nothing, and clears the filters", func(t *testing.T) {
		b.open(t, url+"?reason=Nothing&name=nobody")
		assert.Empty(t, b.texts(t, "h3"))
		follow("Show everything")(t, b)
		shows("")(t, b)
		assert.Subset(t, b.texts(t, "h3"), []string{"deployment shop", "deployment stuck"})
		assert.Empty(t, value[map[string]string](t, b, form)["name"])
	})
}

func testWhatIsWrongComesFirst(t *testing.T, b *browser, url string) {
	t.Run("opens the page: what is wrong comes first", func(t *testing.T) {
		b.open(t, url)
		const list = `Array.from(document.querySelectorAll("h2, h3"), (e) => e.textContent.trim())`
		headings := value[[]string](t, b, list)
		assert.Equal(t, "4 workloads with warnings", headings[0])
		assert.ElementsMatch(t, []string{"deployment crashing", "deployment stuck", "node node-0", "service kubernetes"}, headings[1:5])
		assert.Regexp(t, `^\d+ workloads without warnings$`, headings[5])
		assert.Contains(t, headings[6:], "deployment shop")
	})
}
