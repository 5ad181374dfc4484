// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
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
