// SPDX-License-Identifier: Apache-2.0

package election_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

func TestOnlyTheLeaderEmits(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := harness.NewReplicas(t, api, nil, "start_at: beginning")
		a.Elect()
		api.Put(harness.Event("one", 2))
		a.AwaitRecords(t, "one+2")
		a.AwaitSum(t, 2)
		assert.Equal(t, 1, count(api, "list"), "the standby watches nothing")
		assert.Zero(t, b.Logs.Attempted())
		assert.Zero(t, b.Metrics.DataPointCount())
	})
}

func TestWithoutAnElectorEachReplicaEmitsEverything(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.Launch(t, api, harness.Options{Config: "start_at: beginning"})
		b := harness.Launch(t, api, harness.Options{Config: "start_at: beginning"})
		api.Put(harness.Event("one", 2))
		for _, replica := range []*harness.Process{a, b} {
			replica.AwaitRecords(t, "one+2")
			replica.AwaitSum(t, 2)
		}
	})
}

func TestLeadershipIsLostAndRegainedAnyNumberOfTimes(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a, b := harness.NewReplicas(t, api, nil, "start_at: beginning")
		leader, other := a, b
		var want []string
		for round := range 6 {
			leader.Elect()
			name := fmt.Sprint("e", round)
			api.Put(harness.Event(name, 1))
			want = append(want, name+"+1")
			harness.Eventually(t, func() bool { return slices.Contains(leader.Logs.Names(), name+"+1") })
			harness.Settle()
			leader.Depose()
			leader, other = other, leader
		}
		assert.ElementsMatch(t, want, slices.Concat(leader.Logs.Names(), other.Logs.Names()), "each once")
	})
}

func TestAStartOfLeadingWhoseContextHasEndedIsIgnored(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		a := harness.NewReplica(t, api, nil, "start_at: beginning")
		api.Put(harness.Event("one", 1))
		harness.Settle()
		a.Depose()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		a.ElectUntil(ended)
		harness.Settle()
		assert.Empty(t, a.Logs.Names())
		a.Elect()
		a.AwaitRecords(t, "one+1")
	})
}

// The elector calls its users one after the other, and waits for each.
func TestTheEndOfATermEndsTheWorkOfAllReceiversOfTheElectorAtOnce(t *testing.T) {
	const long = 12 * time.Second
	for name, tt := range map[string]struct {
		slow func(v *harness.Elector, first *harness.Process) // makes the first call of the elector take long
	}{
		"a receiver takes long": {slow: func(_ *harness.Elector, first *harness.Process) {
			first.Logs.OnAttempt(func() { time.Sleep(long) })
		}},
		"another user takes long": {slow: func(v *harness.Elector, _ *harness.Process) {
			v.CallFirst(func() { time.Sleep(long) })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				v := harness.NewElector()
				var receivers []*harness.Process
				for _, name := range []string{"first", "second"} {
					o := harness.Options{Config: "start_at: beginning", Name: name, Elector: v}
					receivers = append(receivers, harness.Launch(t, api, o))
				}
				leads, ended := context.WithCancel(t.Context())
				v.ElectUntil(leads)
				api.Put(harness.Event("before", 1))
				receivers[1].AwaitRecords(t, "before+1")
				tt.slow(v, receivers[0])
				api.Put(harness.Event("last", 1))
				harness.Settle()

				ended() // As client-go does before it calls the elector.
				deposed := make(chan struct{})
				go func() {
					defer close(deposed)
					v.Depose()
				}()
				time.Sleep(time.Second)
				for i := range 5 {
					api.Put(harness.Event(fmt.Sprintf("after%d", i), 1))
					time.Sleep(time.Second)
				}
				assert.Equal(t, []string{"before+1", "last+1"}, receivers[1].Logs.Names())
				<-deposed
			})
		})
	}
}

func TestAReceiverThatStartsWhileAnotherOneOfItsElectorLeadsLeadsToo(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		v := harness.NewElector()
		first := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Name: "first", Elector: v})
		v.Elect()
		harness.Settle()
		second := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Name: "second", Elector: v})
		api.Put(harness.Event("one", 1))
		second.AwaitRecords(t, "one+1")
		first.Stop()
		api.Put(harness.Event("two", 1))
		second.AwaitRecords(t, "one+1", "two+1")
		again := harness.Launch(t, api, harness.Options{Config: "start_at: beginning", Name: "first", Elector: v})
		api.Put(harness.Event("three", 1))
		again.AwaitRecords(t, "two+1", "three+1")
		v.Depose()
		api.Put(harness.Event("four", 1))
		harness.Settle()
		assert.Equal(t, []string{"two+1", "three+1"}, again.Logs.Names())
		assert.Equal(t, []string{"one+1", "two+1", "three+1"}, second.Logs.Names())
	})
}

// count counts the requests of a kind.
func count(api *apitest.Server, kind string) (n int) {
	for _, request := range api.Requests() {
		if request == kind {
			n++
		}
	}
	return n
}
