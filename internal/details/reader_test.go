// SPDX-License-Identifier: Apache-2.0

package details

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// silent is an API server that answers nothing while it hangs, and then with a pod.
type silent struct {
	answering
	hangs   bool
	waiting atomic.Int64 // how many requests have hung
}

func (s *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.hangs {
		s.waiting.Add(1)
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return s.answering.RoundTrip(r)
}

// newSilent returns Details of an API server that hangs. It must be in a bubble.
func newSilent(t *testing.T) (*silent, *Details, *server) {
	api, observer := &silent{answering: answering(`{"metadata": {"uid": "web-uid"}}`), hangs: true}, &server{}
	d, err := New(&rest.Config{Host: "http://api", Transport: api}, Settings{ContainerStatus: true, Timeout: 5 * time.Second, Observer: observer})
	require.NoError(t, err)
	return api, d, observer
}

// restartsOf returns observations of as many pods.
func restartsOf(pods int) (all []observation.Observation) {
	for i := range pods {
		ev := restart("BackOff", 21, 1)
		ev.InvolvedObject.Name = fmt.Sprint("web-", i)
		all = append(all, observation.Observation{Event: ev})
	}
	return all
}

// TestMoreReadsThanMayRunAtOnce: those that get no turn have timed out, and no read runs for them.
func TestMoreReadsThanMayRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, d, observer := newSilent(t)
		defer d.Close()
		all := restartsOf(3 * questionsAtOnce)
		began := time.Now()
		d.Add(t.Context(), all)
		assert.Equal(t, d.settings.Timeout, time.Since(began))
		for _, one := range all {
			assert.Equal(t, resolver.ResolutionTimeout, one.Details.Resolution)
		}
		assert.EqualValues(t, questionsAtOnce, api.waiting.Load())
		assert.Len(t, observer.counted, questionsAtOnce)
	})
}

// TestReadsThatATermEndsShowNothing: the next term reads at once.
func TestReadsThatATermEndsShowNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, d, observer := newSilent(t)
		defer d.Close()
		for range failuresInARow + 1 {
			term, end := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, end)
			all := restartsOf(1)
			d.Add(term, all)
			assert.Equal(t, resolver.ResolutionUnavailable, all[0].Details.Resolution)
		}
		assert.Empty(t, observer.counted, "nothing of the API server has failed")
		api.hangs = false
		next := restartsOf(1)
		d.Add(t.Context(), next)
		assert.Empty(t, next[0].Details.Resolution)
	})
}

// TestAReadInTheBackgroundComesRarely: while an API server does not answer, only this one is sent, each few seconds.
func TestAReadInTheBackgroundComesRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, d, _ := newSilent(t)
		defer d.Close()
		d.Add(t.Context(), restartsOf(1))
		require.EqualValues(t, 1, api.waiting.Load())
		const seconds = 60
		for range seconds {
			began := time.Now()
			all := restartsOf(2)
			d.Add(t.Context(), all)
			assert.Equal(t, began, time.Now(), "nobody waits for it")
			assert.Equal(t, resolver.ResolutionTimeout, all[1].Details.Resolution)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		assert.Greater(t, api.waiting.Load(), int64(2))
		assert.LessOrEqual(t, api.waiting.Load(), 2+seconds/int64(retryAfter.Seconds()))
		api.hangs = false
		time.Sleep(3 * retryAfter)
		d.Add(t.Context(), restartsOf(1))
		synctest.Wait()
		all := restartsOf(1)
		d.Add(t.Context(), all)
		assert.Empty(t, all[0].Details.Resolution, "it works again")
	})
}
