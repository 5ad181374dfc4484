// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhereAStreamResumesAfterADeletion(t *testing.T) {
	for version, want := range map[string]string{"7": "6", "2": "1", "1": "1", "0": "0", "opaque": "opaque", "": ""} {
		assert.Equal(t, want, beforeDeletion(version), version)
	}
}
