// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/memory/dirty"
)

// life is one process: its coverage, which of its streams list completely, and what it finds.
type life struct {
	coverage Coverage
	lists    []string
	resumes  []string // streams that do not list at the start
	covers   string   // before any list: for N(ormal) and W(arning) of namespaces, such as "aN aW bN"
}

func all(namespaces ...string) Coverage { return Coverage{Namespaces: namespaces} }

func warnings(namespaces ...string) Coverage {
	return Coverage{Namespaces: namespaces, FieldSelector: "type=Warning"}
}

// covered names what the last coverage included.
func covered(s *streams) (names string) {
	for _, namespace := range []string{"a", "b"} {
		for _, eventType := range []string{"Normal", "Warning"} {
			if s.covers(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Type: eventType}) {
				names += " " + namespace + eventType[:1]
			}
		}
	}
	return names
}

func TestWhatTheLastCoverageIncluded(t *testing.T) {
	const everything = " aN aW bN bW"
	for name, lives := range map[string][]life{
		"nothing at the first start": {{all(""), nil, nil, ""}},
		"the same again": {
			{all(""), []string{""}, nil, ""}, {all(""), nil, []string{""}, everything},
		},
		"a first list that was not completed": {
			{all("a", "b"), []string{"a"}, nil, ""}, {all("a", "b"), nil, []string{"a"}, " aN aW"},
		},
		"another namespace": {
			{all("a"), []string{"a"}, nil, ""}, {all("a", "b"), []string{"b"}, []string{"a"}, " aN aW"}, {all("a", "b"), nil, []string{"a", "b"}, everything},
		},
		"a namespace that is removed and added again": {
			{all("a", "b"), []string{"a", "b"}, nil, ""},
			{all("a"), nil, []string{"a"}, " aN aW"},
			{all("a", "b"), nil, []string{"a"}, " aN aW"},
		},
		"to a namespace that was removed before": {
			{all("a", "b"), []string{"a", "b"}, nil, ""},
			{all("a"), nil, []string{"a"}, " aN aW"},
			{all("b"), []string{"b"}, nil, " aN aW"},
			{all("b"), nil, []string{"b"}, " bN bW"},
		},
		"from the cluster to namespaces": {
			{all(""), []string{""}, nil, ""},
			{all("a", "b"), []string{"a"}, nil, everything},
			{all("a", "b"), []string{"b"}, []string{"a"}, everything},
			{all("a", "b"), nil, []string{"a", "b"}, everything},
		},
		"from the cluster to one of its namespaces and back": {
			{all(""), []string{""}, nil, ""},
			{all("a"), []string{"a"}, nil, everything},
			{all(""), nil, nil, " aN aW"},
		},
		"back before the change was complete": {
			{all(""), []string{""}, nil, ""},
			{all("a", "b"), []string{"a"}, nil, everything},
			{all(""), nil, []string{""}, everything},
		},
		"a narrower type": {
			{all(""), []string{""}, nil, ""}, {warnings(""), []string{""}, nil, everything}, {warnings(""), nil, []string{""}, " aW bW"},
		},
		"a wider type": {
			{warnings(""), []string{""}, nil, ""}, {all(""), []string{""}, nil, " aW bW"}, {all(""), nil, []string{""}, everything},
		},
		"a type that was narrow for a while": {
			{all(""), []string{""}, nil, ""}, {warnings(""), []string{""}, nil, everything}, {all(""), nil, nil, " aW bW"},
		},
		"other namespaces and another type": {
			{warnings("a"), []string{"a"}, nil, ""}, {all(""), []string{""}, nil, " aW"}, {all(""), nil, []string{""}, everything},
		},
	} {
		t.Run(name, func(t *testing.T) {
			saved := map[dirty.Key][]byte{}
			for i, l := range lives {
				s := newStreams(l.coverage)
				s.Track()
				for k, value := range saved {
					assert.NoError(t, s.Restore(k, value))
				}
				s.settle()
				assert.Equal(t, l.covers, covered(s), "life %d", i)
				var resumes []string
				for _, namespace := range l.coverage.Namespaces {
					if s.resume(namespace) != "" {
						resumes = append(resumes, namespace)
					}
				}
				assert.Equal(t, l.resumes, resumes, "life %d", i)
				for _, namespace := range l.lists {
					s.listed(namespace)
					s.advance(namespace, "7")
				}
				for _, k := range s.TakeChanged() {
					saved[k] = s.Value(k)
				}
			}
		})
	}
}

func TestANamespaceWasWatchedAlsoByTheStreamOfTheCluster(t *testing.T) {
	s := newStreams(all("a"))
	assert.False(t, s.watched("a"))
	s.listed("a")
	assert.True(t, s.watched("a"))
	assert.False(t, s.watched("b"))
	s = newStreams(all(""))
	s.listed("")
	assert.True(t, s.watched("b"))
}

func TestOnlyStreamsThatAreCompletelyListedHaveAPosition(t *testing.T) {
	s := newStreams(all("a", "b"))
	s.advance("a", "7")
	assert.Empty(t, s.versions())
	s.listed("a")
	assert.Equal(t, map[string]uint64{"a": 7}, s.versions())
	s.advance("a", "not a number")
	assert.Empty(t, s.versions())
	assert.Equal(t, "not a number", s.resume("a"), "it can be resumed from all the same")
	s.forgetVersions()
	assert.Empty(t, s.resume("a"))
}
