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
		{"lease", "kube_events/a b", "lease-kube-events.a-b-324f948ace"},
		{"lease", "kube_events/ü", "lease-kube-events-45f7829a16"},
		{"lease", "kube_events/", "lease-kube-events-7a22ed8d06"},
		{"lease", "kube_events/_x_", "lease-kube-events.x-ad589be719"},
		{"lease", "kube_events/a//b", "lease-kube-events.a.b-5f918f7b36"},
		{"", "_", "68e82eafcc"},
		{"lease", "kube_events/" + long, "lease-kube-events." + long[:224] + "-1f13a73f20"},
		{long, "kube_events/prod", long[:242] + "-d28d5ba4c8"},
	} {
		name := ObjectName(tt.lease, tt.id)
		assert.Equal(t, tt.want, name)
		assert.Empty(t, validation.IsDNS1123Subdomain(name), name)
	}
	assert.NotEqual(t, ObjectName("lease", "kube_events/"+long+"a"), ObjectName("lease", "kube_events/"+long+"b"))
	assert.NotEqual(t, ObjectName("lease", "kube_events/ü"), ObjectName("lease", "kube_events/ö"))
}
