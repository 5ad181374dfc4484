// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// countingStorage forgets what it is given, and counts it.
type countingStorage struct{ bytes, operations int }

func (*countingStorage) Get(context.Context, string) ([]byte, error) { return nil, nil }
func (*countingStorage) Set(context.Context, string, []byte) error   { return nil }
func (*countingStorage) Delete(context.Context, string) error        { return nil }
func (*countingStorage) Close(context.Context) error                 { return nil }

func (s *countingStorage) Batch(_ context.Context, operations ...*storage.Operation) error {
	for _, o := range operations {
		s.bytes += len(o.Value)
		s.operations++
	}
	return nil
}

// BenchmarkSavedLoop measures the whole loop with storage, and what it writes for each event: the
// records, and the checkpoint. The objects of chains are saved with the first event of a pod, and
// not again: "first" is the first event of each pod, and "later" the nine that follow.
func BenchmarkSavedLoop(b *testing.B) {
	frames := benchFrames(b, benchEvents())
	ofFirst := benchPods / benchBatch
	for name, measured := range map[string][][]byte{"first": frames[:ofFirst], "later": frames[ofFirst:]} {
		b.Run(name, func(b *testing.B) {
			p, counting := benchProcess(b), &countingStorage{}
			p.Storage, p.StoredObjects = counting, 100_000
			open := func() *session {
				s := p.openCheckpoints(b.Context(), b.Context())
				s.history = s.newHistory(b.Context())
				s.intake.together = 0 // No more changes come.
				return s
			}
			s := open()
			events, bytes, operations, i := 0, 0, 0, 0
			turn := func(frames []byte) {
				s.put(b, changesIn(b, frames))
				s.turn(b.Context(), b.Context())
			}
			for b.Loop() {
				if i%len(measured) == 0 {
					b.StopTimer()
					s.persist.close()
					s = open()
					if name == "later" {
						for _, f := range frames[:ofFirst] {
							turn(f)
						}
					}
					b.StartTimer()
				}
				before := *counting
				turn(measured[i%len(measured)])
				i++
				events += benchBatch
				bytes += counting.bytes - before.bytes
				operations += counting.operations - before.operations
			}
			require.True(b, s.persist.(*checkpoints).store.IsSettled())
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
			b.ReportMetric(float64(bytes)/float64(events), "written-B/event")
			b.ReportMetric(float64(operations)/float64(i), "operations/write")
			b.ReportMetric(0, "ns/op")
		})
	}
}
