// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
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
		assert.Regexp(t, `^The rollout of replicaset\.apps/crashing-\S+ began (\d+ (s|min) before|in the same second as) the first warning, BackOff of pod/crashing-\S+ at `, answer)
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
	testScaleUp(t, url)
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

// testNarrowTimeline opens everything, in both modes, also in a window as wide as a telephone. With
// -update, a picture becomes the one in docs/.
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
				picture := b.picture(t, fmt.Sprintf("timeline-%d-%s.png", width, mode))
				if *update && width > narrow && mode == "light" {
					require.NoError(t, os.WriteFile(harness.InRepository("docs", "rollouts.png"), picture, 0o644))
				}
			})
		}
	}
}

// testScaleUp scales a Deployment beyond a quota, and reads what the page says of the controllers' records.
func testScaleUp(t *testing.T, url string) {
	t.Run("a scale-up beyond a quota", func(t *testing.T) {
		const name = "scaled"
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "pods"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("1")}}}
		_, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = kube.CoreV1().ResourceQuotas(name).Create(t.Context(), quota, metav1.CreateOptions{})
		require.NoError(t, err)
		labels := map[string]string{"app": name}
		pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}}}
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pod}}
		_, err = kube.AppsV1().Deployments(name).Create(t.Context(), deployment, metav1.CreateOptions{})
		require.NoError(t, err)
		harness.Eventually(t, func() bool {
			found, err := kube.AppsV1().Deployments(name).Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && found.Status.ObservedGeneration > 0 && found.Status.Replicas == 1
		}, "the first pod")
		_, err = kube.AppsV1().Deployments(name).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"replicas":30}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		var answers []string
		harness.Eventually(t, func() bool {
			answers = readAnswers(t, url+"api/workloads?warnings=only&name="+name)
			return len(answers) > 0
		}, "an answer")
		require.Len(t, answers, 2)
		assert.Regexp(t, `^scaling: replicaset\.apps/scaled-\S+ was scaled from 1 to 30, FailedCreate$`, answers[0])
		assert.Regexp(t, `^rollout: The rollout of replicaset\.apps/scaled-\S+ began, FailedCreate$`, answers[1])
	})
}

// readAnswers returns what changed before the first warning of each workload.
func readAnswers(t *testing.T, url string) (all []string) {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	var read struct {
		Workloads []struct {
			Changed struct {
				FirstWarning struct{ Reason string }       `json:"first_warning"`
				Changes      []struct{ Kind, Text string } `json:"changes"`
			}
		}
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&read))
	for _, w := range read.Workloads {
		for _, c := range w.Changed.Changes {
			all = append(all, c.Kind+": "+c.Text+", "+w.Changed.FirstWarning.Reason)
		}
	}
	return all
}
