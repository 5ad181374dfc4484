// SPDX-License-Identifier: Apache-2.0

package position

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestTheObjectIsNamedAfterTheLeaseAndTheReceiver(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, tt := range []struct{ lease, id, want string }{
		{"my-lease", "kube_events", "my-lease-kube-events"},
		{"my-lease", "kube_events/prod", "my-lease-kube-events.prod"},
		{"my.lease", "kube_events/prod_eu", "my.lease-kube-events.prod-eu"},
		{"my-lease", "kube_events/Prod", "my-lease-kube-events.prod"},
		{"my-lease", "kube_events/a0z9", "my-lease-kube-events.a0z9"},
		{"lease", "kube_events/a b", "lease-kube-events.a-b-324f948ace"},
		{"lease", "kube_events/ü", "lease-kube-events-45f7829a16"},
		{"lease", "kube_events/", "lease-kube-events-7a22ed8d06"},
		{"lease", "kube_events/_x_", "lease-kube-events.x-ad589be719"},
		{"lease", "kube_events/a//b", "lease-kube-events.a.b-5f918f7b36"},
		{"", "_", "68e82eafcc"},
		{"lease", "kube_events/" + long, "lease-kube-events." + long[:224] + "-1f13a73f20"},
		{long, "kube_events/prod", long[:242] + "-d28d5ba4c8"},
	} {
		name := ObjectName(tt.lease, tt.id)
		assert.Equal(t, tt.want, name)
		assert.Empty(t, validation.IsDNS1123Subdomain(name), name)
	}
	assert.NotEqual(t, ObjectName("lease", "kube_events/"+long+"a"), ObjectName("lease", "kube_events/"+long+"b"))
	assert.NotEqual(t, ObjectName("lease", "kube_events/ü"), ObjectName("lease", "kube_events/ö"))
}

// write stores what next returns for the stored position.
func write(t *testing.T, store *Store, next func(stored Position) Position) error {
	_, _, err := store.update(t.Context(), next)
	return err
}

func raisedTo(p Position) func(Position) Position { return p.Merge }

func TestThePositionIsWrittenAndRead(t *testing.T) {
	api := newScriptedAPI(t)
	store := api.store()
	_, p, state, err := store.read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, Missing, state)
	assert.Empty(t, p)

	first := Position{"the-uid", 0, map[string]uint64{"": 10, "a": 20}}
	require.NoError(t, write(t, store, raisedTo(first)))
	_, p, state, err = store.read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, Known, state)
	assert.Equal(t, first, p)
	assert.Equal(t, []string{"get 404", "get 404", "create", "get"}, api.took())

	require.NoError(t, write(t, store, raisedTo(at(map[string]uint64{"": 9, "a": 21, "b": 1}))))
	assert.Equal(t, Position{"the-uid", 0, map[string]uint64{"": 10, "a": 21, "b": 1}}, api.stored())
	assert.Equal(t, []string{"get", "update"}, api.took())

	require.NoError(t, write(t, store, raisedTo(at(map[string]uint64{"a": 20}))))
	assert.Equal(t, []string{"get"}, api.took(), "nothing to write")

	require.NoError(t, write(t, store, func(Position) Position { return Position{"the-uid", 0, map[string]uint64{"": 3}} }))
	assert.Equal(t, Position{"the-uid", 0, map[string]uint64{"": 3}}, api.stored())
}

func TestThePositionOfAnotherClusterIsReplaced(t *testing.T) {
	api := newScriptedAPI(t)
	api.set(Position{"another", 0, map[string]uint64{"": 1000, "a": 1000}})
	mine := Position{"mine", 0, map[string]uint64{"": 10}}
	require.NoError(t, write(t, api.store(), raisedTo(mine)))
	assert.Equal(t, mine, api.stored())
}

func TestAPositionWithTheSameVersionsOfAnotherClusterOrHistoryIsWritten(t *testing.T) {
	want := Position{"mine", 1, map[string]uint64{"": 10}}
	for name, stored := range map[string]Position{
		"another cluster":    {"another", 1, want.Streams},
		"an earlier history": {"mine", 0, want.Streams},
	} {
		t.Run(name, func(t *testing.T) {
			api := newScriptedAPI(t)
			api.set(stored)
			require.NoError(t, write(t, api.store(), func(Position) Position { return want }))
			assert.Equal(t, want, api.stored())
		})
	}
}

func TestAWriteKeepsWhatOthersPutIntoTheObject(t *testing.T) {
	api := newScriptedAPI(t)
	api.put(map[string]string{"team": "x"}, map[string]string{"streams": "{}", "note": "kept"})
	require.NoError(t, write(t, api.store(), raisedTo(at(map[string]uint64{"": 10}))))
	assert.Equal(t, "x", api.object().Labels["team"])
	assert.Equal(t, map[string]string{"cluster": "", "streams": `{"":"10"}`, "note": "kept"}, api.object().Data)
}

func TestAWriteIsRepeatedAfterThatOfAnotherProcess(t *testing.T) {
	other := at(map[string]uint64{"": 5, "a": 50})
	for name, tt := range map[string]struct {
		exists    bool
		meanwhile func(*scriptedAPI)
		want      map[string]uint64
		requests  []string
	}{
		"changed": {true, func(api *scriptedAPI) { api.set(other) },
			map[string]uint64{"": 10, "a": 50}, []string{"get", "update 409", "get", "update"}},
		"created": {false, func(api *scriptedAPI) { api.set(other) },
			map[string]uint64{"": 10, "a": 50}, []string{"get 404", "create 409", "get", "update"}},
		"deleted": {true, func(api *scriptedAPI) { api.remove() },
			map[string]uint64{"": 10}, []string{"get", "update 404", "get 404", "create"}},
		"raised to the same": {true, func(api *scriptedAPI) { api.set(at(map[string]uint64{"": 11})) },
			map[string]uint64{"": 11}, []string{"get", "update 409", "get"}},
	} {
		t.Run(name, func(t *testing.T) {
			api := newScriptedAPI(t)
			if tt.exists {
				api.set(at(map[string]uint64{"": 1}))
			}
			once := sync.OnceFunc(func() { tt.meanwhile(api) })
			api.onRequest(func(verb string) error {
				if verb != "get" {
					once()
				}
				return nil
			})
			require.NoError(t, write(t, api.store(), raisedTo(at(map[string]uint64{"": 10}))))
			assert.Equal(t, tt.want, api.stored().Streams)
			assert.Equal(t, tt.requests, api.took())
		})
	}
}

func TestAWriteGivesUpAfterManyConflicts(t *testing.T) {
	api := newScriptedAPI(t)
	api.set(at(map[string]uint64{"": 1}))
	api.onRequest(func(verb string) error {
		if verb == "update" {
			return apierrors.NewConflict(configMaps, testName, errors.New("always"))
		}
		return nil
	})
	err := write(t, api.store(), raisedTo(at(map[string]uint64{"": 10})))
	assert.ErrorContains(t, err, `cannot update ConfigMap "lease-kube-events" in namespace "observability"`)
	assert.ErrorContains(t, err, "(given up after 10 attempts)")
	assert.Len(t, api.took(), 2*maxAttempts)
}

func TestAMissingPermissionIsNamed(t *testing.T) {
	for _, verb := range []string{"get", "create", "update"} {
		t.Run(verb, func(t *testing.T) {
			api := newScriptedAPI(t)
			if verb == "update" {
				api.set(at(map[string]uint64{"": 1}))
			}
			api.forbid(verb)
			err := write(t, api.store(), raisedTo(at(map[string]uint64{"": 10})))
			var permission *PermissionError
			require.ErrorAs(t, err, &permission)
			assert.Equal(t, verb, permission.Verb)
			assert.True(t, apierrors.IsForbidden(err), "the cause is kept")
			assert.Equal(t, `cannot `+verb+` ConfigMap "lease-kube-events" in namespace "observability" (configmaps "lease-kube-events" is forbidden: `+
				`User "u" cannot `+verb+` resource): bind a Role in namespace observability with the rules `+
				`{apiGroups: [''], resources: [configmaps], verbs: [create]} and `+
				`{apiGroups: [''], resources: [configmaps], resourceNames: [lease-kube-events], verbs: [get, update]}`, err.Error())
		})
	}
}

func TestOtherErrorsAreNoMissingPermission(t *testing.T) {
	terminating := apierrors.NewForbidden(configMaps, testName, errors.New("it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, tt := range map[string]struct {
		verb string
		err  error
		want string
	}{
		"server error":               {"get", errors.New("broken"), `cannot get ConfigMap "lease-kube-events" in namespace "observability"`},
		"not authenticated":          {"get", apierrors.NewUnauthorized("no"), "cannot get ConfigMap"},
		"namespace is being deleted": {"create", terminating, "it is being terminated"},
		"too large":                  {"create", apierrors.NewRequestEntityTooLargeError("limit"), "cannot create ConfigMap"},
	} {
		t.Run(name, func(t *testing.T) {
			api := newScriptedAPI(t)
			api.onRequest(func(verb string) error {
				if verb == tt.verb {
					return tt.err
				}
				return nil
			})
			err := write(t, api.store(), raisedTo(at(map[string]uint64{"": 10})))
			assert.ErrorContains(t, err, tt.want)
			var permission *PermissionError
			assert.NotErrorAs(t, err, &permission)
		})
	}
}

func TestANamespaceThatDoesNotExistHasNoPosition(t *testing.T) {
	api := newScriptedAPI(t)
	store := api.store()
	store.namespace = "absent"
	api.onRequest(func(verb string) error {
		if verb == "create" {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, store.namespace)
		}
		return nil
	})
	_, _, state, err := store.read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, Missing, state)
	api.took()
	assert.ErrorContains(t, write(t, store, raisedTo(at(map[string]uint64{"": 1}))), `namespaces "absent" not found`)
	assert.Equal(t, []string{"get 404", "create 404"}, api.took())
}

func TestAPositionWithoutANameIsNotRead(t *testing.T) {
	api := newScriptedAPI(t)
	store := api.store()
	store.name = ""
	_, _, state, err := store.read(t.Context())
	assert.Equal(t, Unknown, state)
	assert.EqualError(t, err, errUnknownName.Error())
	assert.Empty(t, api.took())
}

func TestAPositionThatCannotBeReadIsNotOverwritten(t *testing.T) {
	api := newScriptedAPI(t)
	api.put(nil, map[string]string{"streams": "x"})
	store := api.store()
	_, _, _, err := store.read(t.Context())
	for _, err := range []error{err, write(t, store, raisedTo(at(map[string]uint64{"": 1})))} {
		var data *DataError
		require.ErrorAs(t, err, &data)
		assert.ErrorContains(t, err, `cannot read the position in ConfigMap "lease-kube-events" in namespace "observability": the key "streams" is not`)
		assert.ErrorContains(t, err, "delete the ConfigMap")
	}
	assert.Equal(t, "x", api.object().Data["streams"])
}

func TestEachRequestHasATimeout(t *testing.T) {
	for _, verb := range []string{"get", "create"} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newScriptedAPI(t)
				store := api.store()
				api.hang(verb)
				start := time.Now()
				err := write(t, store, raisedTo(at(map[string]uint64{"": 1})))
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.ErrorContains(t, err, "cannot "+verb+" ConfigMap")
				assert.Equal(t, requestTimeout, time.Since(start))
			})
		})
	}
}

func TestWritersNeverLowerAVersion(t *testing.T) {
	api := newScriptedAPI(t)
	const rounds = 60
	var writers sync.WaitGroup
	for writer := range 3 {
		store := api.store()
		writers.Go(func() {
			for round := uint64(1); round <= rounds; round++ {
				p := at(map[string]uint64{"": 100 * round, fmt.Sprintf("own-%d", writer): round, "shared": 7*round + uint64(writer)})
				for write(t, store, raisedTo(p)) != nil {
					if t.Context().Err() != nil {
						return
					}
				}
			}
		})
	}
	writers.Wait()
	assert.Empty(t, api.fell)
	assert.Equal(t, map[string]uint64{"": 100 * rounds, "own-0": rounds, "own-1": rounds, "own-2": rounds, "shared": 7*rounds + 2}, api.stored().Streams)
}
