// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"testing"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// BenchmarkRead measures what a record costs.
func BenchmarkRead(b *testing.B) {
	s := join(firstRollout("0s"), secondRollout())
	b.ReportAllocs()
	m := &rollout.Model{}
	for i := range b.N {
		read, _ := rollout.Read(s[i%len(s)])
		m.Join(read)
	}
}

// BenchmarkSpans measures what a rollout of 1,000 pods costs when it is delivered.
func BenchmarkSpans(b *testing.B) {
	m := &rollout.Model{}
	for i := range 1000 {
		for _, o := range startOf("0s", pod(fmt.Sprintf("shop-aaa-%d", i))) {
			read, _ := rollout.Read(o.logs())
			m.Join(read)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, w := range m.Workloads {
			w.Spans("replicaset.apps/shop-aaa", late)
		}
	}
}
