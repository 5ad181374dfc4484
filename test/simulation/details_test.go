// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// detailedPlan is a plan in which only what calls for details happens.
func detailedPlan(seed uint64, kind string, faults ...Fault) Plan {
	p := plain(neither, faults...)
	p.Seed, p.Producers, p.Active = seed, nil, 6*time.Minute
	p.Detailed = []DetailedPlan{{Kind: kind, Start: firstWrite}}
	return p
}

// runDetailed runs a plan that must keep all promises.
func runDetailed(t *testing.T, p Plan) *Outcome {
	outcome := run(t, job{Plan: p, Tells: true})
	if len(outcome.Violations) > 0 {
		outcome.Print(os.Stdout)
		t.Fatalf("seed %d breaks %q", p.Seed, outcome.Violations[0].Promise.Name)
	}
	return outcome
}

// TestRecordsHaveDetails shows that the promises about details are not kept by saying nothing.
func TestRecordsHaveDetails(t *testing.T) {
	for kind, key := range map[string]string{crashLoop: endReason, "Deployment": changesKey, "StatefulSet": changesKey, "DaemonSet": changesKey} {
		t.Run(kind, func(t *testing.T) {
			said := map[string]int{}
			for seed := range uint64(10) {
				for key, n := range runDetailed(t, detailedPlan(seed+1, kind)).Said {
					said[key] += n
				}
			}
			t.Log(said)
			assert.Greater(t, said[key], 10, "of %d records that may: %v", said[mayHaveEnd]+said[mayHaveChanges], said)
			assert.Greater(t, 3*said[endReason], said[mayHaveEnd]-1, "most ends are reported: %v", said)
		})
	}
}

// TestForbiddenDetailsLeaveRecordsAsTheyAre compares records with those of a receiver that reads no details.
func TestForbiddenDetailsLeaveRecordsAsTheyAre(t *testing.T) {
	for _, kind := range slices.Compact(slices.Clone(detailedKinds)) {
		t.Run(kind, func(t *testing.T) {
			for seed := range uint64(3) {
				forbidden := detailedPlan(seed+1, kind, Fault{Kind: DetailsFail, To: forever, Status: http.StatusForbidden, Replica: everyone})
				without := detailedPlan(seed+1, kind)
				without.NoDetails = true
				got, want := runDetailed(t, forbidden), runDetailed(t, without)
				require.NotEmpty(t, want.Attributes)
				assert.Equal(t, want.Attributes, got.Attributes)
			}
		})
	}
}
