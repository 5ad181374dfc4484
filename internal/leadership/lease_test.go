// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// answer is what the API server answers to one request: a resource version, or a status.
type answer struct {
	resourceVersion string
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
	_ = json.NewEncoder(w).Encode(coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "observability", Name: "kube-events", ResourceVersion: a.resourceVersion},
	})
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
