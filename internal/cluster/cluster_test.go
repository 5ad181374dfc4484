// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
)

// asking runs an identity against a server that answers with each of the statuses, and then with
// the last one forever.
func asking(t *testing.T, statuses ...int) *Identity {
	t.Helper()
	var next atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/api/v1/namespaces/kube-system", r.URL.Path)
		status := statuses[min(int(next.Add(1)), len(statuses))-1]
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"uid": "the-uid"}})
	}))
	client, err := kubeclient.Events(&rest.Config{Host: server.URL}, kubeclient.Pacing{})
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
		server.Close()
	})
	return i
}

func TestTheClusterIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		statuses []int
		want     string
	}{
		"at once":                                 {[]int{200}, "the-uid"},
		"after a hiccup":                          {[]int{503, 500, 200}, "the-uid"},
		"not, where it may not be read":           {[]int{403}, ""},
		"not, where there is no such name":        {[]int{404}, ""},
		"not, through a proxy that rejects it":    {[]int{400}, ""},
		"not, through a proxy without the method": {[]int{405}, ""},
		"not, without credentials":                {[]int{503, 401}, ""},
		"after an overload":                       {[]int{429, 408, 200}, "the-uid"},
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
