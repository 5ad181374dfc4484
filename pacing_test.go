// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

func TestEventsThatComeAllTheTimeShareRequests(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.Launch(t, api, harness.Options{})
		harness.Settle()
		for n := range 500 {
			api.Put(harness.Event(fmt.Sprint("e", n), 1))
			time.Sleep(10 * time.Millisecond)
		}
		harness.Settle()
		assert.Len(t, p.Logs.Names(), 500)
		assert.Less(t, p.Logs.Attempted(), 50)
	})
}

func TestAnEventAfterAQuietTimeLeavesAtOnce(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.Launch(t, api, harness.Options{})
		harness.Settle()
		for n := range 3 {
			api.Put(harness.Event(fmt.Sprint("e", n), 1))
			time.Sleep(5 * time.Millisecond)
			synctest.Wait()
			assert.Len(t, p.Logs.Names(), n+1)
			time.Sleep(time.Second)
		}
	})
}
