// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestTheObjectIsNamedAfterTheLeaseAndTheReceiver(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, tt := range []struct{ lease, id, want string }{
		{"my-lease", "kube_events", "my-lease-kube-events"},
		{"my-lease", "kube_events/prod", "my-lease-kube-events.prod"},
		{"my.lease", "kube_events/prod_eu", "my.lease-kube-events.prod-eu"},
		{"my-lease", "kube_events/Prod", "my-lease-kube-events.prod"},
		{"my-lease", "kube_events/a0z9", "my-lease-kube-events.a0z9"},
		{"lease", "kube_events/a b", "kube-events-324f948acea63a31526c"},
		{"lease", "kube_events/ü", "kube-events-45f7829a16e80ca82c22"},
		{"lease", "kube_events/" + long, "kube-events-1f13a73f2043a8962f76"},
	} {
		name := ObjectName(tt.lease, tt.id)
		assert.Equal(t, tt.want, name)
		assert.Empty(t, validation.IsDNS1123Subdomain(name), name)
	}
}
