// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// TestHostileEvents are delivered as well as they can be, and never stop the stream. Anyone who may
// create events can write them: the API server checks little, and in protobuf nearly nothing.
func TestHostileEvents(t *testing.T) {
	t.Parallel()
	c := bare.get(t)
	ns := c.newNamespace(t)
	g := newGateway(t, c.Kubeconfig())
	r := c.run(t, in(ns, "default"), g.config(), "exclude_reasons: [Starting, NodeNotReady, InDefault]")
	binary := c.inProtobuf(t)
	megabyte := strings.Repeat("0123456789abcdef", 1<<16)

	for name, test := range map[string]struct {
		event *corev1.Event
		check func(t *testing.T, r record)
	}{
		"a message of 1 MB": {
			withMessage(megabyte),
			func(t *testing.T, r record) {
				assert.LessOrEqual(t, len(r.body()), 64<<10)
				assert.Greater(t, len(r.body()), 64<<10-4)
				assert.True(t, strings.HasSuffix(r.body(), "…"))
			},
		},
		"an empty message": {
			withMessage(""),
			func(t *testing.T, r record) { assert.Empty(t, r.body()) },
		},
		"control characters": {
			withMessage("a\x00b\x1b[31mc\u2028d\r\n"),
			func(t *testing.T, r record) { assert.Equal(t, "a\x00b\x1b[31mc\u2028d\r\n", r.body()) },
		},
		"no valid UTF-8": {
			&corev1.Event{
				Reason: "bad\xff", Message: "b\xc3\x28d", Type: "\xfe", Action: "\x80", Source: corev1.EventSource{Component: "\xf0\x28", Host: "\xf8"},
				InvolvedObject: corev1.ObjectReference{APIVersion: "\xff/v1", Kind: "\xff", Name: "n\xff", UID: "\xff", FieldPath: "spec.containers{\xff}", ResourceVersion: "\xff"},
				Related:        &corev1.ObjectReference{APIVersion: "\xff", Kind: "\xff", Namespace: "\xff", Name: "\xff", UID: "\xff"},
			},
			func(t *testing.T, r record) {
				assert.Equal(t, "b\ufffd(d", r.body())
				assert.Equal(t, "bad\ufffd", r.text("k8s.event.reason"))
				assert.Equal(t, "n\ufffd", r.text("k8s.object.name"))
			},
		},
		"a pod whose name is no valid UTF-8": {
			&corev1.Event{Reason: "Bad", InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p\xff", UID: "u\xff"}},
			func(t *testing.T, r record) { assert.Equal(t, "p\ufffd", r.text("k8s.pod.name")) },
		},
		"nothing but a name": {
			&corev1.Event{},
			func(t *testing.T, r record) {
				assert.Equal(t, r.log.Timestamp().AsTime().Format(time.RFC3339), r.text("k8s.event.start_time"))
				assert.EqualValues(t, 1, r.count())
			},
		},
		"a negative count": {
			withCount(eventOf("Negative", "pod"), math.MinInt32),
			func(t *testing.T, r record) {
				assert.Equal(t, observation{1, 1}, observation{r.count(), r.occurrences()})
			},
		},
		"the greatest count": {
			withCount(eventOf("Great", "pod"), math.MaxInt32),
			func(t *testing.T, r record) {
				assert.Equal(t, observation{math.MaxInt32, math.MaxInt32}, observation{r.count(), r.occurrences()})
			},
		},
		"a negative series": {
			&corev1.Event{Series: &corev1.EventSeries{Count: -7}},
			func(t *testing.T, r record) { assert.EqualValues(t, 1, r.count()) },
		},
		"times of the year 30000": {
			timed(time.Date(30000, 1, 1, 0, 0, 0, 0, time.UTC)),
			func(t *testing.T, r record) { assert.WithinDuration(t, time.Now(), r.time(), time.Hour) },
		},
		"times before Christ": {
			timed(time.Date(-500, 1, 1, 0, 0, 0, 0, time.UTC)),
			func(t *testing.T, r record) { assert.WithinDuration(t, time.Now(), r.time(), time.Hour) },
		},
		"a name that leads elsewhere": {
			eventAbout("Elsewhere", corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: "../../../kube-system/secrets/any?watch=true#"}),
			func(t *testing.T, r record) { assert.Equal(t, "not_found", r.resolution()) },
		},
		"a group that leads elsewhere": {
			eventAbout("Elsewhere", corev1.ObjectReference{APIVersion: "../../api/v1", Kind: "Secret", Name: "any"}),
			func(t *testing.T, r record) { assert.Equal(t, "not_found", r.resolution()) },
		},
		"an API version full of slashes": {
			eventAbout("Slashes", corev1.ObjectReference{APIVersion: "a/b/c/d", Kind: "Pod", Name: "any"}),
			func(t *testing.T, r record) {
				assert.Equal(t, "not_found", r.resolution())
				assert.NotContains(t, r.resource, "k8s.pod.name")
			},
		},
		"references of 100 kB": {
			eventAbout("Long", corev1.ObjectReference{APIVersion: megabyte[:100_000], Kind: megabyte[:100_000], Name: megabyte[:100_000], UID: types.UID(megabyte[:100_000])}),
			func(t *testing.T, r record) { assert.Equal(t, "not_found", r.resolution()) },
		},
		"a related object that is empty": {
			&corev1.Event{Related: &corev1.ObjectReference{}},
			func(*testing.T, record) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev := test.event.DeepCopy()
			ev.Name, ev.Namespace, ev.InvolvedObject.Namespace = unique("hostile"), ns, ns
			_, err := binary.CoreV1().Events(ns).Create(t.Context(), ev, metav1.CreateOptions{})
			require.NoError(t, err)
			rec := r.of(t, ev.Name)
			test.check(t, rec)
			r.fence(t, ns)
		})
	}

	t.Run("no involved object at all", func(t *testing.T) {
		t.Parallel()
		rec := r.of(t, c.makeEvent(t, "default", &corev1.Event{Reason: "Nothing"}).Name)
		resourceIs(t, rec, map[string]any{})
		assert.Equal(t, "not_found", rec.resolution())
		r.awaitSum(t, 1, func(p point) bool {
			return p.attrs["k8s.event.reason"] == "Nothing" && len(p.attrs) == 2
		})
	})

	t.Cleanup(func() {
		assert.Empty(t, g.requests(func(r *http.Request) bool {
			return strings.Contains(r.URL.Path, "secrets") || strings.Contains(r.URL.Path, "..")
		}))
	})
}

func withMessage(message string) *corev1.Event {
	ev := eventOf("Message", "pod")
	ev.Message = message
	return ev
}

// timed has one time in all its fields.
func timed(at time.Time) *corev1.Event {
	ev := newStyle("Timed")
	ev.FirstTimestamp, ev.LastTimestamp, ev.EventTime = metav1.NewTime(at), metav1.NewTime(at), metav1.NewMicroTime(at)
	ev.Series = &corev1.EventSeries{Count: 1, LastObservedTime: metav1.NewMicroTime(at)}
	return ev
}

// inProtobuf is a client that writes protobuf, in which strings hold any bytes.
func (c *cluster) inProtobuf(t *testing.T) kubernetes.Interface {
	t.Helper()
	config := c.RESTConfig()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}
