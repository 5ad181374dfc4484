// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// calls is an elector: what was registered with it.
type calls struct {
	started []func(context.Context)
	stopped []func()
}

func (c *calls) SetCallBackFuncs(started func(context.Context), stopped func()) {
	c.started, c.stopped = append(c.started, started), append(c.stopped, stopped)
}

func TestTheReceiversOfAnElectorRegisterOnceAndShareTheirTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elector := &calls{}
		join := func(progress string) (*Leadership, func()) {
			l, leave, ok := Join(elector, types.NamespacedName{Namespace: "ns", Name: progress})
			require.True(t, ok)
			return l, leave
		}
		a, leaveA := join("a")
		b, leaveB := join("b")
		require.Len(t, elector.started, 1)
		elector.started[0](t.Context())
		var terms []Term
		for i, l := range []*Leadership{a, b} {
			term, end, ok := l.Begin(t.Context(), t.Context())
			require.True(t, ok)
			terms = append(terms, term)
			go func() {
				<-term.Drain.Done()
				time.Sleep(time.Duration(i+1) * time.Second)
				end()
			}()
		}
		began := time.Now()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			elector.stopped[0]()
		}()
		synctest.Wait()
		for _, term := range terms {
			assert.Error(t, term.Stop.Err(), "it ends at once")
		}
		<-stopped
		assert.Equal(t, 2*time.Second, time.Since(began), "the elector waits for all")

		leaveA()
		leaveA()
		c, leaveC := join("a")
		assert.Same(t, b, c)
		leaveB()
		leaveC()
		d, leaveD := join("b")
		assert.NotSame(t, b, d, "nothing is kept of an elector that no receiver uses")
		assert.Len(t, elector.started, 2)
		leaveD()
		assert.Empty(t, electors.byElector)
	})
}

func TestTwoReceiversOfAnElectorCannotHaveTheSameProgress(t *testing.T) {
	elector, progress := &calls{}, types.NamespacedName{Namespace: "ns", Name: "progress"}
	_, leave, ok := Join(elector, progress)
	require.True(t, ok)
	_, _, ok = Join(elector, progress)
	assert.False(t, ok)
	_, leaveOther, ok := Join(&calls{}, progress)
	assert.True(t, ok, "replicas have the same, and electors of their own")
	leave()
	leaveOther()
	_, leave, ok = Join(elector, progress)
	assert.True(t, ok, "a receiver that starts again")
	leave()
	assert.Empty(t, electors.byElector)
}

func TestATermEndsWithTheContextOfItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeadership()
		leads, end := context.WithCancel(t.Context())
		l.Started(leads)
		term, ended, ok := l.Begin(t.Context(), t.Context())
		require.True(t, ok)
		end()
		synctest.Wait()
		assert.Error(t, term.Stop.Err())
		assert.False(t, l.Leads())
		l.Started(t.Context())
		time.Sleep(time.Second)
		assert.True(t, l.Leads(), "the next term does not end with it")
		ended()
		l.Stopped()
		assert.False(t, l.Leads())
	})
}
