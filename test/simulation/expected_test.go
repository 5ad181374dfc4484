// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// age is how long before its creation an event first occurred.
type age time.Duration

// countsOf returns what counts of an event that is created with count 8 and goes on to 9.
func countsOf(t *testing.T, created, changed age, faults ...Fault) (least, most int64) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnvironment(plain(storageAlone, faults...), Scenario{})
		list := listing{version: e.server.Version() + 1}
		e.addProcess(&process{replica: e.replicas[0], number: 1, started: time.Now(), observes: time.Now(),
			lists: map[string]lists{"": {begun: list, complete: list}}})
		name := types.NamespacedName{Namespace: namespace(0), Name: counted}
		time.Sleep(time.Minute)
		first := time.Now()
		state := func(count int32, a age) *corev1.Event {
			return &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
				Count:      count, Type: "Warning", FirstTimestamp: metav1.NewTime(first.Add(-time.Duration(a))),
			}
		}
		other := state(1, 0)
		other.Name = "other"
		_, err := e.server.Create(events, other) // After the list.
		require.NoError(t, err)
		_, err = e.server.Create(events, state(8, created))
		require.NoError(t, err)
		time.Sleep(30 * time.Second)
		_, err = e.server.Update(events, state(9, changed))
		require.NoError(t, err)
		from, _ := e.baselines()
		least, most = e.ideal(from, true)[name].totalOrZero(), e.ideal(from, false)[name].totalOrZero()
	})
	return least, most
}

// The contract: "it counts 1 if firstTimestamp is more than an hour before creationTimestamp". Which
// of an event's states the receiver sees first decides, and each may have another firstTimestamp.
func TestWhatCountsOfAnOldEventDependsOnTheStateThatIsSeenFirst(t *testing.T) {
	const old = age(2 * time.Hour)
	down := fault(APIDown, 55, 80)
	for name, tt := range map[string]struct {
		created, changed age
		faults           []Fault
		least, most      int64
	}{
		"not old":                           {0, 0, nil, 9, 9},
		"not old, and seen late":            {0, 0, []Fault{down}, 9, 9},
		"old":                               {old, old, nil, 2, 2},
		"old, and seen late":                {old, old, []Fault{down}, 1, 2},
		"old when it is created":            {old, 0, nil, 2, 2},
		"old when it is created, seen late": {old, 0, []Fault{down}, 2, 9},
		"old when it is changed, seen late": {0, old, []Fault{down}, 1, 9},
	} {
		t.Run(name, func(t *testing.T) {
			least, most := countsOf(t, tt.created, tt.changed, tt.faults...)
			assert.Equal(t, []int64{tt.least, tt.most}, []int64{least, most})
		})
	}
}

func TestWhatCountsOfAnEventThatWasDeletedWhileNoProcessCoveredIt(t *testing.T) {
	now := time.Now()
	unseen := (&remembered{uid: "former", count: 2}).deletedUnseen(now)
	assert.Equal(t, now, unseen.deleted)
	for name, tt := range map[string]struct {
		count int32
		age   age
		most  int64
	}{
		"as if nothing were remembered":   {5, 0, 5},
		"beyond what is remembered":       {5, age(2 * time.Hour), 3},
		"a new event of the former name":  {1, 0, 1},
		"old, and not beyond what it had": {2, age(2 * time.Hour), 2},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.most, unseen.newIn(&corev1.Event{
				ObjectMeta: metav1.ObjectMeta{UID: "again", CreationTimestamp: metav1.NewTime(now)}, Count: tt.count,
				FirstTimestamp: metav1.NewTime(now.Add(-time.Duration(tt.age))),
			}))
		})
	}
}
