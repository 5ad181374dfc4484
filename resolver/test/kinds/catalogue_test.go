// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/resolver/internal/kinds"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// client is a catalogue of a fake API server, and what it received.
type client struct {
	*kinds.Catalogue
	api *apitest.Objects
	now time.Duration

	mu       sync.Mutex
	statuses []int // of the answers
}

func newClient(t *testing.T, api *apitest.Objects) *client {
	c := &client{api: api}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		api.ServeHTTP(recorder, r)
		c.mu.Lock()
		c.statuses = append(c.statuses, recorder.Code)
		c.mu.Unlock()
		for name, values := range recorder.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(recorder.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	c.Catalogue = kinds.New(kinds.Settings{
		Client: server.Client(),
		URL:    func(path string) string { return server.URL + path },
		Send:   func(request func(context.Context) error) error { return request(t.Context()) },
		Run:    func(work func()) bool { go work(); return true },
		Retry:  func(error) time.Duration { return 5 * time.Second },
		Now:    func() time.Duration { return c.now },
	})
	return c
}

// find returns the groups and versions of the kinds that a reference may mean.
func (c *client) find(apiVersion, name string) (text string, err error) {
	if read := c.Await(apiVersion, name); read != nil {
		<-read
	}
	found, ok, err := c.Find(apiVersion, name)
	if !ok {
		return "", errors.New("it is not known after a read")
	}
	var versions []string
	for _, k := range found {
		versions = append(versions, k.APIVersion+"/"+k.Resource.Resource)
	}
	return strings.Join(versions, " "), err
}

// answers returns the statuses since its last call.
func (c *client) answers() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	statuses := c.statuses
	c.statuses = nil
	return statuses
}

func TestTheKindsThatAReferenceMayMean(t *testing.T) {
	for name, test := range map[string]struct {
		apiVersion, kind, want string
		err                    error
	}{
		"as the reference says":                            {"apps/v1", "Deployment", "apps/v1/deployments", nil},
		"another version than the preferred one":           {"example.com/v1", "Thing", "example.com/v1/things", nil},
		"a version that is not served":                     {"example.com/v1beta1", "Thing", "example.com/v2/things", nil},
		"a group that the kind has left":                   {"extensions/v1beta1", "Deployment", "apps/v1/deployments", nil},
		"without a version: core, Kubernetes' own, others": {"", "Service", "v1/services a.example.com/v1/services b.example.com/v1/services", nil},
		"a kind that is not served":                        {"apps/v1", "Unicorn", "", kinds.ErrNotServed},
		"a group that is not served":                       {"invented.example.com/v1", "Deployment", "", kinds.ErrNotServed},
		"a subresource is no kind of its own":              {"apps/v1", "Scale", "", kinds.ErrNotServed},
	} {
		t.Run(name, func(t *testing.T) {
			api := apitest.NewObjectsInMemory()
			api.Serve("example.com/v2", "Thing", "things", true)
			api.Serve("example.com/v1", "Thing", "things", true)
			api.Serve("b.example.com/v1", "Service", "services", true)
			api.Serve("a.example.com/v1", "Service", "services", true)
			got, err := newClient(t, api).find(test.apiVersion, test.kind)
			require.Equal(t, test.want, got)
			require.ErrorIs(t, err, test.err)
		})
	}
}

func TestDocumentsThatHaveNotChangedAreNotSentAgain(t *testing.T) {
	api := apitest.NewObjectsInMemory()
	c := newClient(t, api)
	_, err := c.find("example.com/v1", "Thing")
	require.ErrorIs(t, err, kinds.ErrNotServed)
	require.Equal(t, []int{200, 200}, c.answers())
	_, err = c.find("example.com/v1", "Thing")
	require.ErrorIs(t, err, kinds.ErrNotServed)
	require.Empty(t, c.answers(), "for a second")

	c.now += time.Second
	_, err = c.find("example.com/v1", "Thing")
	require.ErrorIs(t, err, kinds.ErrNotServed)
	require.Equal(t, []int{304, 304}, c.answers())
	got, err := c.find("apps/v1", "Deployment")
	require.NoError(t, err)
	require.Equal(t, "apps/v1/deployments", got, "they stay known")

	api.Serve("example.com/v1", "Thing", "things", true)
	c.now += time.Second
	got, err = c.find("example.com/v1", "Thing")
	require.NoError(t, err)
	require.Equal(t, "example.com/v1/things", got)
	require.Equal(t, []int{304, 200, 200, 200}, c.answers(), "the other document is read again, too")
}

// After an upgrade of the API server, the first document has changed, and the second cannot be read.
func TestOneDocumentIsReadAndTheOtherFails(t *testing.T) {
	api := apitest.NewObjectsInMemory()
	c := newClient(t, api)
	_, err := c.find("v1", "Pod")
	require.NoError(t, err)
	api.Serve("v1", "Fresh", "freshes", true)
	c.now += time.Second
	api.Fail("/apis", apitest.Fault{Status: http.StatusServiceUnavailable, Times: 1})
	_, err = c.find("v1", "Fresh")
	require.Error(t, err)

	c.now += 5 * time.Second
	got, err := c.find("v1", "Fresh")
	require.NoError(t, err)
	require.Equal(t, "v1/freshes", got)
}

func TestAnAggregatedAPIServerThatIsAway(t *testing.T) {
	api := apitest.NewObjectsInMemory()
	api.Serve("metrics.example.com/v1", "Usage", "usages", true)
	api.SetStale("metrics.example.com/v1", true)
	c := newClient(t, api)
	got, err := c.find("metrics.example.com/v1", "Other")
	require.Empty(t, got)
	require.ErrorIs(t, err, kinds.ErrIncomplete, "it may be served")
	_, err = c.find("apps/v1", "Unicorn")
	require.ErrorIs(t, err, kinds.ErrNotServed, "of another group, this is known")
}

func TestAKindThatTurnsOutNotToBeServed(t *testing.T) {
	api := apitest.NewObjectsInMemory()
	api.Serve("example.com/v1", "Thing", "things", true)
	c := newClient(t, api)
	_, err := c.find("example.com/v1", "Thing")
	require.NoError(t, err)
	found, _, _ := c.Find("example.com/v1", "Thing")
	api.Unserve("example.com/v1", "Thing")
	api.Serve("example.com/v2", "Thing", "things", true)
	c.answers()

	c.Unserved(found[0])
	got, err := c.find("example.com/v1", "Thing")
	require.NoError(t, err)
	require.Equal(t, "example.com/v2/things", got)
	require.Equal(t, []int{200, 200}, c.answers(), "the documents are read as a whole")

	for range 100 { // The documents lag behind.
		found, _, _ := c.Find("example.com/v1", "Thing")
		for _, k := range found {
			c.Unserved(k)
		}
		_, _ = c.find("example.com/v1", "Thing")
	}
	_, err = c.find("example.com/v1", "Thing")
	require.ErrorIs(t, err, kinds.ErrNotServed)
	require.LessOrEqual(t, len(c.answers()), 2*10)
}

func TestAVersionThatTurnsOutNotToBeServed(t *testing.T) {
	api := apitest.NewObjectsInMemory()
	api.Serve("example.com/v1", "Thing", "things", true)
	api.Serve("example.com/v2", "Thing", "things", true)
	c := newClient(t, api)
	_, err := c.find("example.com/v1", "Thing")
	require.NoError(t, err)
	found, _, _ := c.Find("example.com/v1", "Thing")
	api.Fail("/apis", apitest.Fault{Status: http.StatusServiceUnavailable})
	c.Unserved(found[0])
	got, err := c.find("example.com/v1", "Thing")
	require.NoError(t, err)
	require.Equal(t, "example.com/v2/things", got, "the other one stays known")
}

// A read that fails does not make the catalogue forget that it needs the whole documents.
func TestAKindTurnsOutNotToBeServedAndDiscoveryFails(t *testing.T) {
	api := apitest.NewObjectsInMemory()
	api.Serve("example.com/v1", "Thing", "things", true)
	c := newClient(t, api)
	_, err := c.find("example.com/v1", "Thing")
	require.NoError(t, err)
	found, _, _ := c.Find("example.com/v1", "Thing")
	c.Unserved(found[0])
	api.Fail("/apis", apitest.Fault{Status: http.StatusServiceUnavailable, Times: 1})
	_, err = c.find("example.com/v1", "Thing")
	require.Error(t, err)
	c.now += 5 * time.Second
	got, err := c.find("example.com/v1", "Thing")
	require.NoError(t, err)
	require.Equal(t, "example.com/v1/things", got, "the documents have it again")
}

// Some callers have left before the documents were read. This says nothing about later kinds.
func TestDocumentsThatComeLate(t *testing.T) {
	api := apitest.NewObjectsInMemory()
	c := newClient(t, api)
	hang := make(chan struct{})
	api.Fail("/apis", apitest.Fault{Hang: hang, Times: 1})
	read := c.Await("v1", "Pod")
	c.Late(errors.New("late"))
	_, _, err := c.Find("v1", "Pod")
	require.ErrorContains(t, err, "late")
	close(hang)
	<-read
	api.Serve("example.com/v1", "Thing", "things", true)
	c.now += time.Second
	got, err := c.find("example.com/v1", "Thing")
	require.NoError(t, err)
	require.Equal(t, "example.com/v1/things", got)
}

func TestDocumentsThatCannotBeRead(t *testing.T) {
	api := apitest.NewObjectsInMemory()
	c := newClient(t, api)
	api.Fail("/apis", apitest.Fault{Status: http.StatusForbidden})
	_, err := c.find("v1", "Pod")
	require.ErrorContains(t, err, "/apis: 403")
	c.answers()
	_, err = c.find("v1", "Pod")
	require.Error(t, err)
	require.Empty(t, c.answers(), "the failure is remembered")
	api.Heal("/apis")
	c.now += 5 * time.Second
	got, err := c.find("v1", "Pod")
	require.NoError(t, err)
	require.Equal(t, "v1/pods", got)
}

// Neither a proxy's page nor the list of versions of an old server says that nothing is served.
func TestAnswersThatAreNoDocuments(t *testing.T) {
	for name, test := range map[string]struct{ contentType, body, message string }{
		"a page of a proxy":        {"text/html", "<html>Sign in</html>", "the answer is no discovery document, but text/html"},
		"a server older than 1.27": {"application/json", `{"kind":"APIVersions","versions":["v1"]}`, `Kubernetes 1.27 and newer have it), but "APIVersions"`},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				_, _ = w.Write([]byte(test.body))
			}))
			defer server.Close()
			c := &client{Catalogue: kinds.New(kinds.Settings{
				Client: server.Client(),
				URL:    func(path string) string { return server.URL + path },
				Send:   func(request func(context.Context) error) error { return request(t.Context()) },
				Run:    func(work func()) bool { go work(); return true },
				Retry:  func(error) time.Duration { return time.Second },
				Now:    func() time.Duration { return 0 },
			})}
			_, err := c.find("v1", "Pod")
			require.ErrorContains(t, err, test.message)
			require.NotErrorIs(t, err, kinds.ErrNotServed)
		})
	}
}
