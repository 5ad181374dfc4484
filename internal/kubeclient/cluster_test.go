// SPDX-License-Identifier: Apache-2.0

package kubeclient_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

func TestTheClusterIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		statuses []int // of the answers, in their order; 0 is success
		want     string
	}{
		"at once":                                 {[]int{0}, "cluster-uid"},
		"after errors that may be over soon":      {[]int{503, 500, 429, 408, 0}, "cluster-uid"},
		"after credentials are accepted":          {[]int{401, 401, 0}, "cluster-uid"},
		"not, where it may not be read":           {[]int{403}, ""},
		"not, where there is no such name":        {[]int{404}, ""},
		"not, through a proxy that rejects it":    {[]int{400}, ""},
		"not, through a proxy without the method": {[]int{405}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.New(t)
			api.RefuseCluster(tt.statuses...)
			client, err := kubeclient.Events(&rest.Config{Host: api.URL})
			require.NoError(t, err)
			for range tt.statuses[1:] {
				_, err := kubeclient.ClusterUID(t.Context(), client, zap.NewNop())
				require.Error(t, err, "another request may get an answer")
			}
			uid, err := kubeclient.ClusterUID(t.Context(), client, zap.NewNop())
			require.NoError(t, err)
			assert.Equal(t, tt.want, uid)
		})
	}
}
