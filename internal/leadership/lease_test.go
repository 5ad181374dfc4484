// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
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

func (o *observed) ElectionWorks()       { *o = append(*o, "works") }
func (o *observed) ElectionFailed(error) { *o = append(*o, "fails") }

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
				ctx, cancel := context.WithTimeout(t.Context(), 3*(15*time.Second+lateness)+time.Second)
				defer cancel()
				tt.answers.lease(t).Watch(ctx, leadership, &got)
				assert.Equal(t, tt.want, got)
			})
		})
	}
}

func TestGuardProvesThatAnOpenTermGoesOn(t *testing.T) {
	mine := func(version string) answer { return answer{resourceVersion: version, holder: "me"} }
	tests := map[string]struct {
		answers answers // one in 2.5 s
		until   time.Duration
	}{
		"the elector renewed it before the first read":    {answers{mine("1")}, 5 * time.Second},
		"and once more before the third one":              {answers{mine("1"), mine("1"), mine("2")}, 12500 * time.Millisecond},
		"another process holds it":                        {answers{mine("1"), {resourceVersion: "2", holder: "other"}}, 5 * time.Second},
		"nobody holds it":                                 {answers{mine("1"), {resourceVersion: "2"}}, 5 * time.Second},
		"a read that fails shows nothing":                 {answers{mine("1"), {status: 500}}, 5 * time.Second},
		"without permission, the term lasts all the time": {answers{{status: 403}}, time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				leadership := newLeadership(15*time.Second, 10*time.Second)
				leadership.Started(context.Background())
				go leadership.Beat(ctx)
				lease := tt.answers.lease(t)
				go lease.Guard(ctx, leadership, "me")
				time.Sleep(tt.until - time.Millisecond)
				assert.True(t, leadership.CertainlyLeads())
				time.Sleep(time.Second)
				assert.Equal(t, tt.until == time.Hour, leadership.CertainlyLeads())
			})
		})
	}
}

// elector is one that calls what is registered.
type elector struct {
	started func(context.Context)
	stopped func()
}

func (e *elector) SetCallBackFuncs(started func(context.Context), stopped func()) {
	e.started, e.stopped = started, stopped
}

func TestATermBeginsWhenTheLeaseShowsIt(t *testing.T) {
	mine := answer{holder: "me", renewed: time.Second}
	expired, other := answer{holder: "me", renewed: 15 * time.Second}, answer{holder: "other", renewed: time.Second}
	// Another process may not lead yet, but the elector would have given up.
	late := answer{holder: "me", renewed: 12 * time.Second}
	const outlasts = 12500 * time.Millisecond // the deadline, and a margin
	tests := map[string]struct {
		answers answers
		ends    time.Duration // the term of the elector; 0: it goes on
		begins  time.Duration // -1: never
	}{
		"the lease was renewed a moment ago":                {answers{mine}, 0, 0},
		"another elector does not say when it renewed it":   {answers{{holder: "me"}}, 0, 0},
		"the answer came late, and it is renewed then":      {answers{expired, expired, mine}, 0, 2 * time.Second},
		"it was renewed longer ago than the deadline":       {answers{late, mine}, 0, time.Second},
		"the answer came late, and another process leads":   {answers{expired, other}, 10 * time.Second, -1},
		"a read that fails shows nothing":                   {answers{{status: 500}, mine}, 0, time.Second},
		"the lease cannot be read, and the elector goes on": {answers{{status: 403}}, 0, outlasts},
		"the lease cannot be read, and the elector ends":    {answers{{status: 403}}, 10 * time.Second, -1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &elector{}
				config := ElectorConfig{Holder: "me", LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second}
				leadership, leave := Join(e, config, tt.answers.lease(t))
				defer leave()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.ends > 0 {
					time.AfterFunc(tt.ends, func() {
						cancel()
						e.stopped()
					})
				}
				e.started(ctx)
				if tt.begins < 0 {
					time.Sleep(time.Minute)
					assert.False(t, leadership.Leads())
					return
				}
				time.Sleep(tt.begins - 1)
				synctest.Wait()
				assert.Equal(t, tt.begins == 0, leadership.Leads())
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				assert.True(t, leadership.Leads())
			})
		})
	}
}

func TestATermThatEndsBeforeItIsConfirmedDoesNotBegin(t *testing.T) {
	for name, end := range map[string]func(e *elector, leave func()){
		"the elector ends it":         func(e *elector, _ func()) { e.stopped() },
		"the last receiver has ended": func(_ *elector, leave func()) { leave() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &elector{}
				config := ElectorConfig{Holder: "me", LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second}
				answers := answers{{status: 500}, {holder: "me", renewed: time.Second}}
				leadership, leave := Join(e, config, answers.lease(t))
				defer leave()
				e.started(t.Context())
				synctest.Wait()
				end(e, leave)
				time.Sleep(time.Minute)
				assert.False(t, leadership.Leads())
			})
		})
	}
}

func TestLook(t *testing.T) {
	renewed, renewedAgain := answer{resourceVersion: "1"}, answer{resourceVersion: "2"}
	missing, forbidden, broken := answer{status: 404}, answer{status: 403}, answer{status: 500}
	tests := map[string]struct {
		answers []answer
		want    string // the cause after the last request; "?" for an error that shows nothing; empty: no error
	}{
		"one read shows nothing yet":                      {[]answer{renewed}, ""},
		"a leader that renews it":                         {[]answer{renewed, renewedAgain}, ""},
		"a leader that has died, or may not update it":    {[]answer{renewed, renewed}, "expired"},
		"one read that misses it shows nothing yet":       {[]answer{missing}, ""},
		"nobody may make it":                              {[]answer{missing, missing}, "missing"},
		"somebody has made it meanwhile":                  {[]answer{missing, renewed}, ""},
		"somebody leads again":                            {[]answer{renewed, renewed, renewedAgain}, ""},
		"it may not be read":                              {[]answer{forbidden}, "forbidden"},
		"an API server that is away says nothing":         {[]answer{renewed, broken}, "?"},
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
			for ; looks < len(tt.answers); looks++ {
				err = l.look(t.Context())
			}
			var trouble *NoLeaderError
			switch {
			case errors.As(err, &trouble):
				assert.Equal(t, tt.want, trouble.Cause)
				assert.ErrorContains(t, err, "resourceNames: [kube-events], verbs: [get, update]}")
				assert.ErrorContains(t, err, "bind a Role in namespace observability")
			case err != nil:
				assert.Equal(t, "?", tt.want)
			default:
				assert.Empty(t, tt.want)
			}
		})
	}
}

func TestForgetMakesTheNextLookTheFirst(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer{resourceVersion: "1"}.write(w) }))
	defer server.Close()
	l, err := NewLease(&rest.Config{Host: server.URL}, "observability", "kube-events")
	require.NoError(t, err)
	require.NoError(t, l.look(t.Context()))
	l.forget()
	assert.NoError(t, l.look(t.Context()))
}

func TestALeaseNeedsAnAddress(t *testing.T) {
	_, err := NewLease(&rest.Config{Host: "://"}, "observability", "lease")
	assert.Error(t, err)
}
