// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		elector, config := &calls{}, ElectorConfig{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second}
		a, leaveA := Join(elector, config)
		b, leaveB := Join(elector, config)
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
		c, leaveC := Join(elector, config)
		assert.Same(t, b, c)
		leaveB()
		leaveC()
		d, leaveD := Join(elector, config)
		assert.NotSame(t, b, d, "nothing is kept of an elector that no receiver uses")
		assert.Len(t, elector.started, 2)
		leaveD()
		assert.Empty(t, electors.byElector)
	})
}

func TestATermEndsWithTheContextOfItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeadership(15*time.Second, 10*time.Second)
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

type authType string

type apiConfig struct {
	AuthType authType
	Context  string
}

type fullConfig struct {
	apiConfig
	LeaseNamespace, LeaseName                 string
	LeaseDuration, RenewDuration, RetryPeriod time.Duration
}

type sharedConfig struct {
	LeaseName     int
	LeaseDuration string
	RenewDuration time.Duration
}

type extension[C any] struct {
	config C
}

func TestTheConfigurationOfTheElectorIsRead(t *testing.T) {
	full := fullConfig{apiConfig{"kubeConfig", "prod"}, "observability", "my-lease", 30 * time.Second, 20 * time.Second, time.Second}
	want := ElectorConfig{"observability", "my-lease", "kubeConfig", "prod", 30 * time.Second, 20 * time.Second}
	unknown := ElectorConfig{}
	for name, tt := range map[string]struct {
		extension any
		want      ElectorConfig
	}{
		"pointers":                       {&extension[*fullConfig]{&full}, want},
		"values":                         {extension[fullConfig]{full}, want},
		"nil":                            {nil, unknown},
		"a nil extension":                {(*extension[*fullConfig])(nil), unknown},
		"a nil configuration":            {&extension[*fullConfig]{}, unknown},
		"no configuration":               {struct{}{}, unknown},
		"no struct":                      {7, unknown},
		"the configuration is no struct": {extension[string]{config: "x"}, unknown},
		"an empty configuration":         {&extension[*fullConfig]{config: &fullConfig{}}, unknown},
		"fields of other kinds":          {&extension[*sharedConfig]{config: &sharedConfig{RenewDuration: 20 * time.Second}}, ElectorConfig{RenewDeadline: 20 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ElectorConfigOf(tt.extension)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.want == want, got.IsKnown())
		})
	}
}
