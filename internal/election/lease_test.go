// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// answer is what the API server answers to one request: a resource version, or a status.
type answer struct {
	resourceVersion string
	holder          string
	renewed         time.Duration // how long ago; 0: it does not say
	status          int
}

func (a answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if a.status != 0 {
		w.WriteHeader(a.status)
		reasons := map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 500: metav1.StatusReasonInternalError}
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: int32(a.status), Reason: reasons[a.status],
		})
		return
	}
	lease := coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "observability", Name: "kube-events", ResourceVersion: a.resourceVersion},
	}
	if a.holder != "" {
		lease.Spec.HolderIdentity = &a.holder
	}
	if a.renewed > 0 {
		lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-a.renewed)}
	}
	_ = json.NewEncoder(w).Encode(lease)
}

// answers is an API server that gives one answer after the other, and the last one again and again.
type answers []answer

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	response := httptest.NewRecorder()
	(*a)[0].write(response)
	if len(*a) > 1 {
		*a = (*a)[1:]
	}
	return response.Result(), nil
}

func (a answers) lease(t *testing.T) *Lease {
	config := &rest.Config{Transport: &a, QPS: -1}
	l, err := NewLease(config, "observability", "kube-events")
	require.NoError(t, err)
	require.Empty(t, config.APIPath, "the elector's own client uses it, too")
	return l
}

// observed has what an Observer was called with.
type observed []string

func (o *observed) ElectionWorks()               { *o = append(*o, "works") }
func (o *observed) ElectionFailed(string, error) { *o = append(*o, "fails") }

func TestAStandbyWatchesTheLease(t *testing.T) {
	broken := answer{status: 500}
	tests := map[string]struct {
		answers answers
		leads   bool
		want    observed
	}{
		"one failed read shows nothing":  {answers{broken, {resourceVersion: "1"}, broken, {resourceVersion: "2"}}, false, observed{"works"}},
		"consecutive failed reads":       {answers{broken, broken, {resourceVersion: "1"}, {resourceVersion: "2"}}, false, observed{"fails", "works"}},
		"nobody renews it, and then one": {answers{{resourceVersion: "1"}, {resourceVersion: "1"}, {resourceVersion: "2"}, broken}, false, observed{"fails", "works"}},
		"a leader does not read it":      {answers{broken}, true, observed{"works", "works", "works", "works"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leadership, got := newLeadership(15*time.Second, 10*time.Second), observed(nil)
				if tt.leads {
					leadership.Started(t.Context())
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*2*15*time.Second+time.Second)
				defer cancel()
				tt.answers.lease(t).Watch(ctx, leadership, &got)
				assert.Equal(t, tt.want, got)
			})
		})
	}
}

func TestAProcessThatBeginsToLeadReportsItAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leadership, got := newLeadership(15*time.Second, 10*time.Second), observed(nil)
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() { answers{{status: 403}}.lease(t).Watch(ctx, leadership, &got) })
		synctest.Wait()
		leadership.Started(ctx)
		synctest.Wait()
		assert.Equal(t, observed{"fails", "works"}, got)
		cancel()
		watching.Wait()
	})
}

func TestLook(t *testing.T) {
	renewed, renewedAgain := answer{resourceVersion: "1"}, answer{resourceVersion: "2"}
	missing, forbidden, broken := answer{status: 404}, answer{status: 403}, answer{status: 500}
	tests := map[string]struct {
		answers []answer
		want    string // the cause after the last request; empty: no error
	}{
		"one read shows nothing yet":                      {[]answer{renewed}, ""},
		"a leader that renews it":                         {[]answer{renewed, renewedAgain}, ""},
		"a leader that has died, or may not update it":    {[]answer{renewed, renewed}, "expired"},
		"one read that misses it shows nothing yet":       {[]answer{missing}, ""},
		"nobody may make it":                              {[]answer{missing, missing}, "missing"},
		"somebody has made it meanwhile":                  {[]answer{missing, renewed}, ""},
		"somebody leads again":                            {[]answer{renewed, renewed, renewedAgain}, ""},
		"it may not be read":                              {[]answer{forbidden}, "forbidden"},
		"an API server that is away says nothing":         {[]answer{renewed, broken}, Unavailable},
		"what was seen before it was away is still known": {[]answer{renewed, broken, renewed}, "expired"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			looks := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, "/apis/coordination.k8s.io/v1/namespaces/observability/leases/kube-events", r.URL.Path)
				tt.answers[looks].write(w)
			}))
			defer server.Close()
			l, err := NewLease(&rest.Config{Host: server.URL}, "observability", "kube-events")
			require.NoError(t, err)
			var cause string
			for ; looks < len(tt.answers); looks++ {
				cause, err = l.look(t.Context())
			}
			assert.Equal(t, tt.want, cause)
			if err != nil && cause != Unavailable {
				assert.ErrorContains(t, err, "resourceNames: [kube-events], verbs: [get, update]}")
				assert.ErrorContains(t, err, "bind a Role in namespace observability")
			}
		})
	}
}

func TestALeaseNeedsAnAddress(t *testing.T) {
	_, err := NewLease(&rest.Config{Host: "://"}, "observability", "lease")
	assert.Error(t, err)
}
