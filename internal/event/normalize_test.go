// SPDX-License-Identifier: Apache-2.0

package event

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/text"
)

const invalid = "a\xff\xfe\u200b\u202eb"

func every(string) bool { return true }

// setStrings sets every string of a struct, also those of nested structs, to s.
func setStrings(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for _, field := range v.Fields() {
			if field.CanSet() {
				setStrings(field, s)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			setStrings(v.Elem(), s)
		}
	}
}

func TestNormalizeMakesEveryStringValid(t *testing.T) {
	ev := &corev1.Event{Related: &corev1.ObjectReference{}}
	setStrings(reflect.ValueOf(ev), invalid)
	ev.Labels = map[string]string{invalid: "v", "k": invalid}
	ev.Annotations = map[string]string{invalid: invalid}
	ev.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	Keep(ev, every, every)
	Normalize(ev)

	want := "a\uFFFDb"
	expected := &corev1.Event{Related: &corev1.ObjectReference{}}
	setStrings(reflect.ValueOf(expected), want)
	expected.Labels = map[string]string{want: "v", "k": want}
	expected.Annotations = map[string]string{want: want}
	// The receiver uses none of these.
	for _, e := range []*corev1.Event{ev, expected} {
		e.TypeMeta, e.GenerateName, e.SelfLink = metav1.TypeMeta{}, "", "" //nolint:staticcheck // All fields.
	}
	assert.Equal(t, expected, ev)
}

func TestNormalizeLeavesAValidEventAsItIs(t *testing.T) {
	ev := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"k": "ä"}},
		Message:    "größer \uFFFD",
	}
	want := ev.DeepCopy()
	Normalize(ev)
	assert.Equal(t, want, ev)
	assert.Zero(t, testing.AllocsPerRun(10, func() { Normalize(ev) }))
}

func TestKeysThatBecomeTheSameGiveTheSameMapEachTime(t *testing.T) {
	for range 20 {
		ev := &corev1.Event{}
		ev.Labels = map[string]string{"k\xfe": "first", "k\xff": "second"}
		Keep(ev, every, every)
		Normalize(ev)
		require.Equal(t, map[string]string{"k\uFFFD": "second"}, ev.Labels)
	}
}

func TestNormalizeBoundsEveryString(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	ev := &corev1.Event{Related: &corev1.ObjectReference{}}
	setStrings(reflect.ValueOf(ev), long)
	ev.Labels, ev.Annotations = map[string]string{long: long}, map[string]string{long: long}
	ev.OwnerReferences = []metav1.OwnerReference{{Name: long}}
	ev.Finalizers = []string{long}
	Keep(ev, every, every)
	Normalize(ev)
	assert.Len(t, ev.Message, text.MaxBody-1, "a character has two bytes, the mark three")
	assert.True(t, strings.HasSuffix(ev.Message, "ä…"))
	assert.LessOrEqual(t, len(ev.Reason), text.MaxValue)
	ev.TypeMeta = metav1.TypeMeta{} // The decoder sets it.
	assert.Less(t, ev.Size(), text.MaxBody+30*text.MaxValue)
}

func TestOnlyUsedLabelsAndAnnotationsOfAnEventAreKept(t *testing.T) {
	ev := &corev1.Event{ObjectMeta: metav1.ObjectMeta{
		Labels:      map[string]string{"team": "a", "other": "b"},
		Annotations: map[string]string{Traceparent: "00-…", "team": "c", "other": "d"},
	}}
	Keep(ev, func(key string) bool { return key == "team" }, func(string) bool { return false })
	assert.Equal(t, map[string]string{"team": "a"}, ev.Labels)
	assert.Equal(t, map[string]string{Traceparent: "00-…"}, ev.Annotations)
}

func FuzzNormalize(f *testing.F) {
	f.Add("plain")
	f.Add(invalid)
	f.Fuzz(func(t *testing.T, s string) {
		ev := &corev1.Event{Message: s}
		Normalize(ev)
		assert.True(t, utf8.ValidString(ev.Message))
		assert.Equal(t, text.Cut(s, text.MaxBody), ev.Message)
	})
}
