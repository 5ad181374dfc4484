// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

func TestALimitThatIsLowered(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]bool{
		"memory limit app: 256Mi → 128Mi":     true,
		"memory limit app: 1Gi → 1000Mi":      true,
		"memory limit app: 1G → 1Gi":          false,
		"memory limit app: 128974848 → 129M":  false,
		"memory limit app: 128Mi → 256Mi":     false,
		"memory limit app: 64Mi added":        true,
		"memory limit app: 64Mi removed":      false,
		"memory limit side: 256Mi → 128Mi":    false,
		"memory request app: 256Mi → 128Mi":   false,
		"cpu limit app: 2 → 1":                false,
		"memory limit app: 256Mi → 128Mi now": false,
	} {
		assert.Equal(t, want, loweredLimit(&rollout.Template{Changes: []string{change}}, "app") != "", change)
	}
}

func TestOrdinals(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 112: "112th", 122: "122nd"} {
		assert.Equal(t, want, ordinal(n))
	}
}

// TestWhatIsKeptOfAnEventThatIsRepeated: of one that shows a problem, or that a container starts again, since when it has
// gone on. Of any other one, the last hour is enough.
func TestWhatIsKeptOfAnEventThatIsRepeated(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]time.Duration{
		"Pod/web-aaa-1 !BackOff{app} event=e x%d/0s: Back-off restarting failed container": 0,
		"Pod/web-aaa-1 Started{app} event=e x%d/0s: Container started":                     0,
		"Pod/web-aaa-1 Pulled{app} event=e x%d/0s: pulled":                                 2 * time.Hour,
	} {
		m := NewModel(story.Epoch.Add(-Horizon))
		var fact *Fact
		for i := range 91 {
			at := time.Duration(i) * 2 * time.Minute
			fact = factIn(t, fmt.Sprintf("%v "+line, at, i+1))
			m.AddFacts([]*Fact{FactOf(&fact.Record, story.Epoch.Add(at))}, story.Epoch.Add(at))
		}
		for _, w := range m.workloads {
			moments := w.facts["e"].Moments
			assert.LessOrEqual(t, len(moments), maxMoments)
			first := moments[0].At.Sub(story.Epoch)
			assert.InDelta(t, want.Minutes(), first.Minutes(), 5, line)
		}
	}
}
