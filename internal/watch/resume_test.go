// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	kwatch "k8s.io/apimachinery/pkg/watch"
)

func TestWhereAStreamResumesAfterAChange(t *testing.T) {
	tests := []struct {
		kind          kwatch.EventType
		version, want string
	}{
		{kwatch.Added, "7", "7"},
		{kwatch.Modified, "7", "7"},
		{kwatch.Deleted, "7", "6"},
		{kwatch.Deleted, "2", "1"},
		{kwatch.Deleted, "1", "1"},
		{kwatch.Deleted, "0", "0"},
		{kwatch.Deleted, "opaque", "opaque"},
		{kwatch.Deleted, "", ""},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, resumeAfter(test.kind, test.version), "%s at %q", test.kind, test.version)
	}
}
