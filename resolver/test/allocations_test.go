// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"testing"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/memorytest"
)

// One slice for each chain, and two for the batch: its chains, and the climb from object to object.
func TestAllocationsOfAWarmChain(t *testing.T) {
	api := apitest.NewObjects(t)
	pods := crowd(api, "ns", 100)
	r := newResolver(t, api, resolver.Settings{})
	requireComplete(t, r.Resolve(t.Context(), pods))
	const chains, ofBatch = 100, 4
	memorytest.Allocations(t, chains+ofBatch, func() { r.Resolve(t.Context(), pods) })
}
