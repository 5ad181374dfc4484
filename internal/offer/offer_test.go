// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

// state is the state of an event with a count, which its resource version follows.
func state(uid string, count int32) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e", UID: types.UID(uid), ResourceVersion: strconv.Itoa(100 + int(count))},
		Count:      count,
	}
}

func observed(uid string, count int32, occurrences int64) observation.Observation {
	return observation.Observation{Event: state(uid, count), Occurrences: occurrences}
}

// offering makes the offers that a process left which was killed while it offered the records.
func offering(t *testing.T, records ...observation.Observation) *Offers {
	t.Helper()
	left := &Offers{}
	require.NoError(t, left.Restore((&Offers{}).Encode(records)))
	return left
}

// told is what a record tells: whose occurrences, up to which count, how many.
type told struct {
	uid                types.UID
	count, occurrences int64
	again              bool
}

func TestSplit(t *testing.T) {
	tests := []struct {
		name    string
		offered []observation.Observation
		seen    observation.Observation
		want    []told
		left    int
	}{
		{"nothing was offered", nil, observed("a", 5, 2), []told{{"a", 5, 2, false}}, 0},
		{"the state that was offered", []observation.Observation{observed("a", 5, 2)}, observed("a", 5, 2), []told{{"a", 5, 2, true}}, 0},
		{
			"the event has moved on",
			[]observation.Observation{observed("a", 5, 2)},
			observed("a", 9, 6),
			[]told{{"a", 5, 2, true}, {"a", 9, 4, false}}, 0,
		},
		{
			"two states were offered, and neither can be read any more",
			[]observation.Observation{observed("a", 7, 2), observed("a", 5, 2)},
			observed("a", 9, 6),
			[]told{{"a", 5, 2, true}, {"a", 7, 2, true}, {"a", 9, 2, false}}, 0,
		},
		{
			"the first of two states",
			[]observation.Observation{observed("a", 5, 2), observed("a", 7, 2)},
			observed("a", 5, 2),
			[]told{{"a", 5, 2, true}}, 1,
		},
		{
			"its recorder created it again, with the count that it went on with",
			[]observation.Observation{observed("a", 5, 2)},
			observed("b", 6, 3),
			[]told{{"a", 5, 2, true}, {"b", 6, 1, false}}, 0,
		},
		{
			"another object under the name that happens to have its count",
			[]observation.Observation{observed("a", 5, 2)},
			observed("b", 5, 5),
			[]told{{"b", 5, 5, false}}, 0,
		},
		{
			"what was offered is in the checkpoint",
			[]observation.Observation{observed("a", 5, 2)},
			observed("a", 9, 4),
			[]told{{"a", 9, 4, false}}, 0,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			offers := offering(t, tt.offered...)
			var got []told
			for _, o := range offers.Split(nil, tt.seen) {
				got = append(got, told{o.Event.UID, event.Count(o.Event), o.Occurrences, o.Again})
			}
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.left, offers.Len())
		})
	}
}

func TestAStateThatIsOfferedAgainKeepsTheNewOneAsItIs(t *testing.T) {
	now := observed("a", 9, 6)
	now.Event.Count = 0
	now.Event.Series = &corev1.EventSeries{Count: 9}
	parts := offering(t, observed("a", 5, 2)).Split(nil, now)
	require.Len(t, parts, 2)
	assert.Equal(t, int32(5), parts[0].Event.Series.Count)
	assert.Equal(t, int32(9), parts[1].Event.Series.Count)
}

func TestPrecedes(t *testing.T) {
	offers := offering(t, observed("a", 5, 2))
	assert.True(t, offers.Precedes(state("a", 4)), "its occurrences belong to the record that was offered")
	assert.False(t, offers.Precedes(state("a", 5)))
	assert.True(t, offers.Precedes(state("b", 4)), "an earlier object of the name")
	offers.Withdraw(state("b", 4))
	assert.True(t, offers.Precedes(state("a", 4)), "the deletion of an earlier object says nothing")
	offers.Withdraw(state("a", 6))
	assert.False(t, offers.Precedes(state("a", 4)), "what is deleted does not come any more")
}

func TestWithdrawAll(t *testing.T) {
	elsewhere := observed("a", 5, 2)
	elsewhere.Event.Namespace = "elsewhere"
	offers := offering(t, observed("a", 5, 2), elsewhere)
	offers.WithdrawAll("ns")
	assert.Equal(t, 1, offers.Len())
	offers.WithdrawAll("")
	assert.Zero(t, offers.Len())
}

func TestRedeem(t *testing.T) {
	offers := offering(t, observed("a", 5, 2))
	assert.False(t, offers.Redeem(state("a", 4)))
	assert.True(t, offers.Redeem(state("a", 5)))
	assert.False(t, offers.Redeem(state("a", 5)))
}

func TestOffersThatAreLeftAreEncodedWithTheNewOnes(t *testing.T) {
	older := offering(t, observed("a", 5, 2))
	both := &Offers{}
	require.NoError(t, both.Restore(older.Encode([]observation.Observation{observed("a", 7, 2)})))
	assert.Equal(t, 2, both.Len())
	assert.Nil(t, (&Offers{}).Encode(nil))
}

func FuzzRestore(f *testing.F) {
	f.Add((&Offers{}).Encode([]observation.Observation{observed("a", 5, 2), observed("b", 1, 1)}))
	f.Add([]byte{1, 'n', 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		offers := &Offers{}
		if err := offers.Restore(b); err != nil {
			return
		}
		again := &Offers{}
		require.NoError(t, again.Restore(offers.Encode(nil)))
		assert.Equal(t, offers, again)
	})
}
