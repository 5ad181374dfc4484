// SPDX-License-Identifier: Apache-2.0

package election

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

func TestAfterAPauseAnotherProcessMayLead(t *testing.T) {
	l := newLeadership()
	l.Started(t.Context())
	now := l.lastBeat
	later := now.Add
	assert.True(t, l.NobodyElseLeads(later(time.Second)))
	assert.True(t, l.NobodyElseLeads(later(2*time.Second)))
	assert.False(t, l.NobodyElseLeads(later(60*time.Second)))
	for second := 61; second < 73; second++ {
		assert.False(t, l.NobodyElseLeads(later(time.Duration(second)*time.Second)), "as long as the elector may take to notice, and a little")
	}
	assert.True(t, l.NobodyElseLeads(later(73*time.Second)))

	l.NoteBeat(later(75 * time.Second))
	l.NoteBeat(later(74 * time.Second))
	assert.True(t, l.NobodyElseLeads(later(77500*time.Millisecond)), "a beat that is noted late is no pause")

	l.NoteBeat(later(200 * time.Second))
	l.Stopped()
	l.Started(t.Context())
	assert.True(t, l.NobodyElseLeads(later(201*time.Second)), "an election settles it")
}

func TestAfterATermAnotherProcessCanLeadBeforeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeadership()
		go l.Beat(t.Context())
		l.Started(t.Context())
		l.Stopped()
		assert.True(t, l.NobodyElseLeads(time.Now()))
		time.Sleep(2 * time.Second)
		assert.True(t, l.NobodyElseLeads(time.Now()))
		time.Sleep(time.Second)
		assert.False(t, l.NobodyElseLeads(time.Now()), "the lease may expire now")
	})
}

func TestTheEndOfATermWaitsForItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeadership()
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

func TestAProcessWithoutAnElectorAlwaysLeads(t *testing.T) {
	l := AlwaysLeads()
	assert.False(t, l.IsElected())
	assert.True(t, l.Leads())
	assert.True(t, l.NobodyElseLeads(time.Now().Add(time.Hour)), "nobody else leads after a pause")
	assert.Nil(t, l.Changed())
	term, end, ok := l.Begin(t.Context(), t.Context())
	assert.True(t, ok)
	end()
	assert.NoError(t, term.Stop.Err(), "its term is its life")
}

func TestChangedEndsAtTheBeginningAndAtTheEndOfATerm(t *testing.T) {
	l := newLeadership()
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
		l := newLeadership()
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
