// SPDX-License-Identifier: Apache-2.0

package details

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// slow is an API server that takes a time for each read. Each ReplicaSet is the second revision of a Deployment.
type slow time.Duration

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(time.Duration(s)):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	var found any = metav1.PartialObjectMetadata{}
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if name == "replicasets" {
		name = strings.TrimPrefix(r.URL.Query().Get("labelSelector"), "app=")
		found = appsv1.ReplicaSetList{Items: []appsv1.ReplicaSet{replicaSet("a", 1, 0, 1), replicaSet(name, 2, 100, 1)}}
	} else if strings.Contains(r.URL.Path, "/replicasets/") {
		set := replicaSet(name, 2, 100, 1)
		set.Spec.Selector.MatchLabels["app"] = name
		found = set
	}
	body, err := json.Marshal(found)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body))}, err
}

// TestManyRolloutsOnASlowServer: what does not come in time hides nothing of what can.
func TestManyRolloutsOnASlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := New(&rest.Config{Host: "http://api", Transport: slow(200 * time.Millisecond)}, Settings{TemplateChanges: true, Timeout: 2 * time.Second, Observer: &server{}})
		require.NoError(t, err)
		defer d.Close()
		ask := func(rollouts int, namespace string) (changed int) {
			var batch []observation.Observation
			for i := range rollouts {
				ev := scaled(fmt.Sprint("b", i), 100)
				ev.Namespace, ev.InvolvedObject.Namespace = namespace, namespace
				batch = append(batch, observation.Observation{Event: ev})
			}
			d.Add(t.Context(), batch)
			for _, o := range batch {
				if o.Details != nil && len(o.Details.Changes) > 0 {
					assert.NotEqual(t, resolver.ResolutionTimeout, o.Details.Resolution)
					changed++
				}
			}
			return changed
		}
		assert.Equal(t, 3*questionsAtOnce, ask(160, "shop"), "all those that there is time for")
		assert.Equal(t, 1, ask(1, "other"), "the server only takes its time")
	})
}
