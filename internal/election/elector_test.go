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
		a, leaveA := Join(elector)
		b, leaveB := Join(elector)
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
		c, leaveC := Join(elector)
		assert.Same(t, b, c)
		leaveB()
		leaveC()
		d, leaveD := Join(elector)
		assert.NotSame(t, b, d, "nothing is kept of an elector that no receiver uses")
		assert.Len(t, elector.started, 2)
		leaveD()
		assert.Empty(t, electors.byElector)
	})
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

type leaseConfig struct {
	LeaseNamespace, LeaseName string
	LeaseDuration             time.Duration
}

type otherConfig struct {
	LeaseNamespace string
	LeaseName      int
}

type extension[C any] struct {
	config C
}

func TestTheLeaseOfTheElectorIsRead(t *testing.T) {
	config := leaseConfig{"observability", "my-lease", 30 * time.Second}
	want, unknown := types.NamespacedName{Namespace: "observability", Name: "my-lease"}, types.NamespacedName{}
	for name, tt := range map[string]struct {
		extension any
		want      types.NamespacedName
	}{
		"pointers":                       {&extension[*leaseConfig]{&config}, want},
		"values":                         {extension[leaseConfig]{config}, want},
		"nil":                            {nil, unknown},
		"a nil extension":                {(*extension[*leaseConfig])(nil), unknown},
		"a nil configuration":            {&extension[*leaseConfig]{}, unknown},
		"no configuration":               {struct{}{}, unknown},
		"no struct":                      {7, unknown},
		"the configuration is no struct": {extension[string]{config: "x"}, unknown},
		"an empty configuration":         {&extension[*leaseConfig]{config: &leaseConfig{}}, unknown},
		"a field is missing":             {&extension[struct{ LeaseName string }]{}, unknown},
		"a field of another kind":        {&extension[otherConfig]{config: otherConfig{"observability", 7}}, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, LeaseOf(tt.extension))
		})
	}
}
