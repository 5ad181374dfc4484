// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/ledger"
)

// reports collects what an observer is told. Its methods may be called concurrently.
type reports struct {
	mu      sync.Mutex
	failing map[string]error // by part
	causes  []string
}

func (r *reports) Failed(part, cause, _ string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing == nil {
		r.failing = map[string]error{}
	}
	if r.failing[part] == nil {
		r.causes = append(r.causes, cause)
	}
	r.failing[part] = err
}

func (r *reports) Works(part, _ string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failing, part)
}

func (r *reports) Unsaved(time.Time) {}
func (r *reports) Saved()            {}
func (r *reports) NotSaved()         {}

func (r *reports) error() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.failing {
		return err
	}
	return nil
}

func fresh() *ledger.Ledger {
	return ledger.New(ledger.Settings{Coverage: ledger.Coverage{Namespaces: []string{""}}})
}

// leading is a term that has loaded the progress.
type leading struct {
	*ConfigMap
	*ledger.Ledger
	reports    *reports
	superseded chan struct{}
}

func (s *scriptedAPI) lead() *leading { return s.leadOf("the-uid") }

// leadOf begins a term in a cluster; empty: its UID may not be read.
func (s *scriptedAPI) leadOf(cluster string) *leading {
	l := &leading{reports: &reports{}, superseded: make(chan struct{})}
	l.ConfigMap = s.term(l.reports)
	l.Ledger = l.Load(s.t.Context(), cluster, fresh, func() { close(l.superseded) })
	require.NotNil(s.t, l.Ledger)
	return l
}

// reach delivers everything up to a version.
func (l *leading) reach(version uint64) {
	l.BeginList("")
	l.EndList("", time.Now())
	l.Advance("", strconv.FormatUint(version, 10))
	l.Note()
}

func (l *leading) end() { l.End(context.Background()) }

func TestALeaderContinuesWhereTheLastOneGotTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScriptedAPI(t)
		first := api.lead()
		version, _ := first.Resume("")
		assert.Empty(t, version, "nobody has led")
		assert.Equal(t, []string{"get 404"}, api.took(), "there is no progress to note yet")
		first.reach(7)
		time.Sleep(2 * time.Second)
		assert.Equal(t, ledger.Versions{"": 7}, api.stored(), "within two seconds")
		first.reach(9)
		first.end()

		api.took()
		second := api.lead()
		assert.Equal(t, []string{"get", "update"}, api.took(), "it writes that its term has begun")
		version, exactly := second.Resume("")
		assert.Equal(t, "9", version)
		assert.True(t, exactly)
		second.end()
		assert.Equal(t, ledger.Versions{"": 9}, api.stored(), "it stays, as long as the new leader has delivered nothing")
	})
}

func TestWritesAreFewAndEachHasTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScriptedAPI(t)
		l := api.lead()
		api.took()
		for i := range uint64(100) {
			l.reach(10 + i)
			time.Sleep(100 * time.Millisecond)
		}
		l.end()
		assert.LessOrEqual(t, len(api.took()), 8)
		assert.Equal(t, ledger.Versions{"": 109}, api.stored())
	})
}

func TestALeaderThatWasDeposedCannotNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScriptedAPI(t)
		first := api.lead()
		first.reach(7)
		time.Sleep(5 * time.Second)
		second := api.lead()
		first.reach(8)
		<-first.superseded
		first.reach(9) // The pipeline accepts what was being delivered.
		first.end()
		assert.Equal(t, ledger.Versions{"": 7}, api.stored())
		second.reach(10)
		second.end()
		assert.Equal(t, ledger.Versions{"": 10}, api.stored())
	})
}

// Another one than a leader writes the object, or the answer to a write is lost.
func TestALeaderGoesOnIfNoOtherLeaderHasWritten(t *testing.T) {
	for name, change := range map[string]func(*scriptedAPI){
		"somebody labels the object": func(api *scriptedAPI) {
			api.put(map[string]string{"team": "a"}, api.object().Data)
		},
		"somebody deletes the object": (*scriptedAPI).remove,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newScriptedAPI(t)
				l := api.lead()
				l.reach(7)
				time.Sleep(5 * time.Second)
				change(api)
				l.reach(8)
				time.Sleep(5 * time.Second)
				assert.Equal(t, ledger.Versions{"": 8}, api.stored())
				assert.Equal(t, "the-uid", api.object().Data["cluster"])
				l.end()
				select {
				case <-l.superseded:
					assert.Fail(t, "its term ends")
				default:
				}
			})
		})
	}
}

func TestUntilTheProgressCanBeReadNothingIsDroppedOrOverwritten(t *testing.T) {
	for name, tt := range map[string]struct {
		fail func(*scriptedAPI)
		want []string // parts of the error
	}{
		"the permission is missing": {func(api *scriptedAPI) { api.forbid("get") }, []string{
			"bind a Role in namespace observability", "resourceNames: [" + testName + "], verbs: [get, update]"}},
		"requests fail": {func(api *scriptedAPI) {
			api.onRequest(func(string) error { return apierrors.NewInternalError(context.Canceled) })
		}, []string{"cannot get ConfigMap"}},
		"requests hang":  {func(api *scriptedAPI) { api.hang("get") }, []string{"cannot get ConfigMap"}},
		"it is no JSON":  {func(api *scriptedAPI) { api.put(nil, map[string]string{"streams": "x"}) }, []string{"is not a JSON object", "delete the ConfigMap"}},
		"a key is gone":  {func(api *scriptedAPI) { api.put(nil, map[string]string{"cluster": "x"}) }, []string{`the key "streams" is missing`}},
		"no version":     {func(api *scriptedAPI) { api.put(nil, map[string]string{"streams": `{"":"0"}`}) }, []string{"not a resource version"}},
		"null is not {}": {func(api *scriptedAPI) { api.put(nil, map[string]string{"streams": `{"":"-1"}`}) }, []string{"not a resource version"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newScriptedAPI(t)
				first := api.lead()
				first.reach(7)
				first.end()
				data := api.object().Data
				tt.fail(api)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				observer := &reports{}
				api.took()
				assert.Nil(t, api.term(observer).Load(ctx, "the-uid", fresh, nil))
				for _, part := range tt.want {
					assert.ErrorContains(t, observer.error(), part)
				}
				for _, request := range api.took() {
					assert.Contains(t, request, "get", "nothing is overwritten")
				}
				api.onRequest(nil)
				api.hang("")
				api.put(nil, data)
				second := api.lead()
				version, _ := second.Resume("")
				assert.Equal(t, "7", version)
				second.end()
			})
		})
	}
}

func TestProgressThatCannotBeWrittenDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScriptedAPI(t)
		api.forbid("create", "update")
		l := api.lead()
		l.reach(7)
		time.Sleep(time.Minute)
		assert.ErrorContains(t, l.reports.error(), "verbs: [create]")
		assert.Equal(t, []string{"forbidden"}, l.reports.causes)
		assert.Nil(t, api.stored())
		api.onRequest(nil)
		time.Sleep(5 * time.Second)
		assert.Equal(t, ledger.Versions{"": 7}, api.stored())
		assert.NoError(t, l.reports.error())
		l.end()
	})
}

func TestTheLogSaysHowALeaderBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScriptedAPI(t)
		says := func() (messages []string) {
			core, logs := observer.New(zap.InfoLevel)
			term := api.term(&reports{})
			term.logger = zap.New(core)
			l := term.Load(t.Context(), "the-uid", fresh, nil)
			l.BeginList("")
			l.EndList("", time.Now())
			l.Advance("", "7")
			term.Note()
			term.End(t.Context())
			for _, entry := range logs.All() {
				messages = append(messages, entry.Message)
			}
			return messages
		}
		assert.Equal(t, []string{"No progress in the ConfigMap: this is a first start; start_at decides whether existing events are emitted"}, says())
		assert.Equal(t, []string{"Continuing from the progress of the last leader"}, says())
	})
}

// A Role would not help: in such a namespace, the API server forbids to create objects.
func TestANamespaceThatIsBeingDeletedLacksNoRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScriptedAPI(t)
		terminating := apierrors.NewForbidden(configMaps, testName, errors.New("the namespace is being terminated"))
		terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		api.onRequest(func(verb string) error {
			if verb == "create" {
				return terminating
			}
			return nil
		})
		l := api.lead()
		l.reach(7)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"unavailable"}, l.reports.causes)
		assert.ErrorContains(t, l.reports.error(), "cannot create ConfigMap")
		assert.NotContains(t, l.reports.error().Error(), "Role")
		api.onRequest(nil)
		l.end()
	})
}

// A single request may fail when an API server restarts. A missing permission stays, and is reported at once.
func TestWhichFirstReadThatFailsIsReported(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want []string
	}{
		"a server that restarts": {apierrors.NewServiceUnavailable("starting"), nil},
		"a missing permission":   {forbidden("get"), []string{"forbidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newScriptedAPI(t)
				api.onRequest(func(string) error {
					api.onRequest(nil)
					return tt.err
				})
				l := api.lead()
				synctest.Wait()
				assert.Equal(t, tt.want, l.reports.causes)
				l.end()
			})
		})
	}
}

// Without this, the status would be an error until the next event.
func TestABeginningThatCannotBeNotedIsNotedLaterWithoutAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScriptedAPI(t)
		first := api.lead()
		first.reach(7)
		first.end()
		api.forbid("update")
		second := api.lead()
		time.Sleep(time.Minute)
		assert.ErrorContains(t, second.reports.error(), "verbs: [get, update]")
		api.onRequest(nil)
		time.Sleep(5 * time.Second)
		assert.NoError(t, second.reports.error())
		assert.Equal(t, ledger.Versions{"": 7}, api.stored())
		second.end()
	})
}

// The next leader notes the progress. Nothing would take an error of this one out of the status again.
func TestTheEndOfATermThatCannotNoteReportsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScriptedAPI(t)
		l := api.lead()
		api.hang("create")
		l.reach(7)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l.End(ctx)
		synctest.Wait()
		assert.NoError(t, l.reports.error())
	})
}

func TestProgressOfAnotherClusterIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScriptedAPI(t)
		api.put(nil, map[string]string{"cluster": "another", "leader": "x", "streams": `{"":"99"}`})
		l := api.lead()
		version, _ := l.Resume("")
		assert.Empty(t, version)
		assert.Equal(t, "the-uid", api.object().Data["cluster"])
		l.end()
	})
}

func TestWithoutThePermissionToReadTheClusterTheProgressIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScriptedAPI(t)
		api.put(nil, map[string]string{"cluster": "the-uid", "leader": "x", "streams": `{"":"99"}`})
		l := api.leadOf("")
		version, exactly := l.Resume("")
		assert.Equal(t, "99", version)
		assert.True(t, exactly)
		l.end()
	})
}

func TestATermWhoseBeginCannotBeNotedReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScriptedAPI(t)
		api.put(nil, map[string]string{"cluster": "the-uid", "leader": "x", "streams": `{"":"99"}`})
		api.forbid("update")
		l := api.lead()
		assert.Error(t, l.reports.error())
		api.forbid()
		l.reach(100)
		time.Sleep(time.Minute)
		assert.NoError(t, l.reports.error())
		l.end()
	})
}

func TestOfTwoFirstLeadersTheOneThatNotesFirstLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScriptedAPI(t)
		a, b := api.lead(), api.lead()
		a.reach(5)
		time.Sleep(5 * time.Second)
		b.reach(6)
		<-b.superseded
		assert.Equal(t, ledger.Versions{"": 5}, api.stored())
		a.end()
		b.end()
	})
}
