// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAfterAPauseNobodyKnowsWhoLeads(t *testing.T) {
	l := newLeadership(15*time.Second, 10*time.Second)
	l.Started(t.Context())
	now := l.lastBeat
	later := now.Add
	assert.Zero(t, l.uncertainFor(later(time.Second)))
	assert.Zero(t, l.uncertainFor(later(2*time.Second)))
	assert.Equal(t, 13*time.Second, l.uncertainFor(later(60*time.Second)), "as long as the elector may take to notice, and a little")
	l.NoteBeat(later(61 * time.Second))
	l.NoteBeat(later(62 * time.Second))
	assert.Equal(t, 11*time.Second, l.uncertainFor(later(62*time.Second)))
	for second := 63; second <= 73; second++ {
		l.NoteBeat(later(time.Duration(second) * time.Second))
	}
	assert.Zero(t, l.uncertainFor(later(73*time.Second)))

	l.NoteBeat(later(75 * time.Second))
	l.NoteBeat(later(74 * time.Second))
	assert.Zero(t, l.uncertainFor(later(77500*time.Millisecond)), "a beat that is noted late is no pause")

	l.NoteBeat(later(200 * time.Second))
	l.Stopped()
	l.Started(t.Context())
	assert.Zero(t, l.uncertainFor(later(201*time.Second)), "an election settles it")
}

func TestAnOpenTermIsCertainWhileItIsProven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeadership(15*time.Second, 10*time.Second)
		go l.Beat(t.Context())
		l.Started(context.Background())
		time.Sleep(time.Minute)
		assert.True(t, l.CertainlyLeads(), "nobody proves it")
		l.prove(time.Now().Add(10 * time.Second))
		l.prove(time.Now().Add(time.Second))
		time.Sleep(9 * time.Second)
		assert.True(t, l.CertainlyLeads(), "an earlier proof does not replace a later one")
		time.Sleep(2 * time.Second)
		assert.True(t, l.Leads())
		assert.False(t, l.CertainlyLeads(), "the elector may be waiting for another user")

		go func() {
			time.Sleep(5 * time.Second)
			l.prove(time.Now().Add(10 * time.Second))
		}()
		assert.True(t, l.WaitUntilCertain(t.Context()), "its connection was slow")
		time.Sleep(11 * time.Second)
		l.Stopped()
		assert.False(t, l.NobodyElseLeads(time.Now()), "another process may lead since the last proof")

		l.Started(t.Context())
		assert.True(t, l.CertainlyLeads(), "this term ends with a context")
	})
}

func TestOnlyAnOpenTermMustBeProven(t *testing.T) {
	for name, tt := range map[string]struct {
		begin  func(t *testing.T, l *Leadership)
		isOpen bool
	}{
		"no term":                     {begin: func(*testing.T, *Leadership) {}},
		"a term that ends by context": {begin: func(t *testing.T, l *Leadership) { l.Started(t.Context()) }},
		"an open term":                {begin: func(_ *testing.T, l *Leadership) { l.Started(context.Background()) }, isOpen: true},
		"an open term that has ended": {begin: func(_ *testing.T, l *Leadership) {
			l.Started(context.Background())
			l.Stopped()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLeadership(15*time.Second, 10*time.Second)
				tt.begin(t, l)
				assert.Equal(t, tt.isOpen, l.isOpen())
				l.prove(time.Now().Add(time.Second))
				time.Sleep(2 * time.Second)
				assert.Equal(t, tt.isOpen, l.uncertainFor(time.Now()) > 0)
			})
		})
	}
}

func TestNobodyWaitsForCertaintyAfterTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeadership(15*time.Second, 10*time.Second)
		l.Started(t.Context())
		time.Sleep(time.Minute) // The process was paused.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		assert.False(t, l.WaitUntilCertain(ctx))
		assert.Equal(t, time.Second, time.Since(began))
	})
}

func TestTheEndOfATermWaitsForItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeadership(15*time.Second, 10*time.Second)
		l.Started(t.Context())
		term, ended, ok := l.Begin(t.Context(), t.Context())
		require.True(t, ok)
		go func() {
			<-term.Stop.Done()
			time.Sleep(time.Second)
			ended()
		}()
		began := time.Now()
		l.Stopped()
		assert.Equal(t, time.Second, time.Since(began))
		assert.False(t, l.Leads())
		_, _, ok = l.Begin(t.Context(), t.Context())
		assert.False(t, ok)
	})
}

func TestLastSumsAreEmittedOnlyWhileNoOtherProcessCanLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeadership(15*time.Second, 10*time.Second)
		l.Started(t.Context())
		l.Stopped()
		assert.False(t, l.CertainlyLeads())
		assert.True(t, l.NobodyElseLeads(time.Now()))
		time.Sleep(2 * time.Second)
		assert.True(t, l.NobodyElseLeads(time.Now()))
		time.Sleep(time.Second)
		assert.False(t, l.NobodyElseLeads(time.Now()), "the lease may expire now")

		ctx, cancel := context.WithCancel(t.Context())
		l.Started(ctx)
		time.Sleep(time.Second)
		assert.Equal(t, 5*time.Second, l.NobodyElseLeadsFor(time.Now()))
		cancel()
		time.Sleep(2600 * time.Millisecond)
		l.Stopped()
		assert.False(t, l.NobodyElseLeads(time.Now()), "the term has ended with its context")

		l.Started(t.Context())
		l.NoteBeat(time.Now().Add(time.Minute))
		l.Stopped()
		assert.False(t, l.NobodyElseLeads(time.Now().Add(time.Minute)), "the process was paused")
	})
}

func TestAProcessWithoutAnElectorAlwaysLeads(t *testing.T) {
	l := AlwaysLeads()
	assert.False(t, l.IsElected())
	l.NoteBeat(time.Now().Add(time.Hour))
	assert.True(t, l.CertainlyLeads(), "also after a pause")
	assert.True(t, l.WaitUntilCertain(t.Context()))
	assert.True(t, l.NobodyElseLeads(time.Now()))
	assert.Nil(t, l.Changed())
	term, end, ok := l.Begin(t.Context(), t.Context())
	assert.True(t, ok)
	end()
	assert.NoError(t, term.Stop.Err(), "its term is its life")
}

func TestChangedEndsAtTheBeginningAndAtTheEndOfATerm(t *testing.T) {
	l := newLeadership(15*time.Second, 10*time.Second)
	for _, change := range []func(){func() { l.Started(t.Context()) }, l.Stopped} {
		changed := l.Changed()
		change()
		select {
		case <-changed:
		default:
			assert.Fail(t, "nobody learns of it")
		}
	}
}

func TestAStartWithoutANewTermIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeadership(15*time.Second, 10*time.Second)
		l.Stopped() // The elector stops although this process never led.
		ended, end := context.WithCancel(t.Context())
		end()
		l.Started(ended)
		assert.False(t, l.Leads(), "its context has ended")

		first, endFirst := context.WithCancel(t.Context())
		defer endFirst()
		second, endSecond := context.WithCancel(t.Context())
		l.Started(first)
		l.Started(second)
		endSecond()
		synctest.Wait()
		assert.True(t, l.Leads(), "the first term goes on")
		endFirst()
		synctest.Wait()
		assert.False(t, l.Leads())
	})
}
