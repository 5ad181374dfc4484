// SPDX-License-Identifier: Apache-2.0

package incident_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

// BenchmarkProblems looks at a full model: 300 workloads with 20 pods each, all of which crash.
func BenchmarkProblems(b *testing.B) {
	s := &story{t: &testing.T{}, model: incident.NewModel(began), namespace: "shop", counts: map[string]int64{}, firsts: map[string]time.Time{}}
	for w := range 300 {
		s.namespace = fmt.Sprint("team-", w%10)
		s.record(began, fmt.Sprintf("deployment/web%d ScalingReplicaSet Scaled up replica set web%d-aaa from 0 to 20", w, w))
		for p := range 20 {
			pod := fmt.Sprintf("pod/web%d-aaa-%d", w, p)
			s.record(began.Add(time.Second), pod+" Scheduled Successfully assigned shop/x to node-0")
			for _, e := range []string{"Pulled Container image \"app:1.0\" already present", "Created Created container app", "Started Started container app", "!BackOff Back-off restarting failed container"} {
				s.record(began.Add(5*time.Second), pod+"{app}@node-0 "+e)
			}
		}
	}
	for b.Loop() {
		if n := len(s.model.Problems(incident.Query{}, began.Add(time.Minute))); n < 100 {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(s.model.Size()), "bytes")
}
