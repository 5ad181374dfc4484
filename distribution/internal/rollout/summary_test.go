// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestWhyAnUpdateWithTheSameImages: a changed limit is no restart.
func TestWhyAnUpdateWithTheSameImages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		changes       []string
		isOnlyRestart bool
		reason        string
	}{
		{name: "nothing is known", reason: Restart},
		{"kubectl rollout restart", []string{"restart by hand at 2026-03-01T10:00:00Z"}, true, Restart},
		{"a reload controller", []string{"annotation checksum/config changed"}, true, Restart},
		{"a limit of memory", []string{"memory limit app: 256Mi → 128Mi"}, false, Update},
		{"a restart with another image", []string{"annotation checksum/config changed", "image app: a → b"}, false, Update},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			images := map[string]string{"app": "app:1"}
			r := Rollout{Replaced: "before", Images: images, Former: images, Template: Template{Changes: test.changes}}
			assert.Equal(t, test.isOnlyRestart, r.Template.IsOnlyRestart())
			assert.Equal(t, test.reason, r.reason(&run{}, false))
		})
	}
}
