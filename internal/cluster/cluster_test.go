// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// asking runs an identity against a server that answers with each of the statuses, and then with
// the last one forever; 0 is success.
func asking(t *testing.T, statuses ...int) *Identity {
	t.Helper()
	api := apitest.New(t)
	api.RefuseCluster(statuses...)
	client, err := kubeclient.Events(&rest.Config{Host: api.URL}, kubeclient.Pacing{})
	require.NoError(t, err)
	i := New(client, zap.NewNop())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return i
}

func TestTheClusterIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		statuses []int
		want     string
	}{
		"at once":                                 {[]int{0}, "cluster-uid"},
		"after a hiccup":                          {[]int{503, 500, 0}, "cluster-uid"},
		"not, where it may not be read":           {[]int{403}, ""},
		"not, where there is no such name":        {[]int{404}, ""},
		"not, through a proxy that rejects it":    {[]int{400}, ""},
		"not, through a proxy without the method": {[]int{405}, ""},
		"not, without credentials":                {[]int{503, 401}, ""},
		"after an overload":                       {[]int{429, 408, 0}, "cluster-uid"},
	} {
		t.Run(name, func(t *testing.T) {
			i := asking(t, tt.statuses...)
			select {
			case <-i.Answered():
			case <-time.After(20 * time.Second):
				require.Fail(t, "no final answer")
			}
			assert.Equal(t, tt.want, i.UID())
		})
	}
}
