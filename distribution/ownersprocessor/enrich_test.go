// SPDX-License-Identifier: Apache-2.0

package ownersprocessor

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"go.yaml.in/yaml/v3"

	"github.com/kubeevents/kubeeventsreceiver/distribution/ownersprocessor/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/distribution/ownersprocessor/internal/metadatatest"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

const wait = 200 * time.Millisecond

type described struct {
	From, About, Signal, Workload string
	Attributes                    map[string]any
}

func resources(t *testing.T) (all []described) {
	t.Helper()
	content, err := os.ReadFile("testdata/resources.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(content, &all))
	return all
}

// enriched sends one resource as data of its signal.
func enriched(t *testing.T, e *enricher, d described) pcommon.Map {
	t.Helper()
	var resource pcommon.Resource
	var err error
	switch d.Signal {
	case "logs":
		data := plog.NewLogs()
		resource = data.ResourceLogs().AppendEmpty().Resource()
		require.NoError(t, resource.Attributes().FromRaw(d.Attributes))
		_, err = e.logs(t.Context(), data)
	case "metrics":
		data := pmetric.NewMetrics()
		resource = data.ResourceMetrics().AppendEmpty().Resource()
		require.NoError(t, resource.Attributes().FromRaw(d.Attributes))
		_, err = e.metrics(t.Context(), data)
	case "traces":
		data := ptrace.NewTraces()
		resource = data.ResourceSpans().AppendEmpty().Resource()
		require.NoError(t, resource.Attributes().FromRaw(d.Attributes))
		_, err = e.traces(t.Context(), data)
	default:
		t.Fatal("no signal: ", d.Signal)
	}
	require.NoError(t, err)
	return resource.Attributes()
}

func TestAWorkloadIsRightOrAbsent(t *testing.T) {
	for _, d := range resources(t) {
		t.Run(d.From+": "+d.About, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnricher(t, newCluster(), nil)
				for range 2 { // the second time from what is known
					attributes := enriched(t, e, d)
					assert.Equal(t, d.Workload, workloadOf(attributes))
					if d.Workload == "" || d.Attributes["k8s.workload.kind"] != nil {
						assert.Len(t, attributes.AsRaw(), len(d.Attributes), "nothing is added")
					}
				}
			})
		})
	}
}

// TestNothingIsEverWrong sends all resources while a part of the API server fails: each has its workload or none, also
// when the fault is over.
func TestNothingIsEverWrong(t *testing.T) {
	for name, test := range map[string]struct {
		part  string
		fault fault
	}{
		"the API server is down":         {"/", fault{isDown: true}},
		"it refuses the credentials":     {"/", fault{status: http.StatusUnauthorized}},
		"it has too much to do":          {"/", fault{status: http.StatusTooManyRequests}},
		"discovery is down":              {"/apis", fault{status: http.StatusServiceUnavailable}},
		"pods may not be read":           {"/pods", fault{status: http.StatusForbidden}},
		"pods are slow":                  {"/pods", fault{delay: 5 * time.Second}},
		"ReplicaSets may not be read":    {"/replicasets", fault{status: http.StatusForbidden}},
		"ReplicaSets hang":               {"/replicasets", fault{delay: time.Hour}},
		"Deployments are slow":           {"/deployments", fault{delay: time.Second}},
		"nothing of the group is served": {"/apis/apps", fault{status: http.StatusNotFound}},
		"everything is slow":             {"/", fault{delay: 150 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &faulty{RoundTripper: newCluster()}
				e := newEnricher(t, api, nil)
				api.fail(test.part, test.fault)
				for range 3 {
					for _, d := range resources(t) {
						begun := time.Now()
						workload := workloadOf(enriched(t, e, d))
						// The owner reference names what may not be read, as in the receiver's records.
						isNamed := test.fault.status == http.StatusForbidden && strings.HasPrefix(workload, "ReplicaSet/")
						assert.True(t, workload == d.Workload || workload == "" || isNamed, "%s is not the workload of %s: %s", workload, d.From, d.About)
						assert.LessOrEqual(t, time.Since(begun), wait)
					}
					time.Sleep(30 * time.Second)
				}
				assert.Positive(t, api.failed())
				api.heal()
				for range 2 { // Discovery and what was refused come back after a minute, and ReplicaSets that were refused after the TTL.
					time.Sleep(11 * time.Minute)
					for _, d := range resources(t) {
						enriched(t, e, d)
					}
				}
				time.Sleep(time.Minute)
				for _, d := range resources(t) {
					assert.Equal(t, d.Workload, workloadOf(enriched(t, e, d)), d.About)
				}
			})
		})
	}
}

func TestOneRequestOfDataIsLookedUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCluster()
		api.SetDelay(10 * time.Millisecond)
		e := newEnricher(t, api, nil)
		all, waited := send(t, e, pod, database, agent, backup, canary)
		assert.Equal(t, []string{"Deployment/fe", "StatefulSet/db", "DaemonSet/agent", "CronJob/backup", "Rollout/canary"}, all)
		assert.Less(t, waited, wait)
		api.Seen()

		all, waited = send(t, e, pod, database)
		assert.Equal(t, []string{"Deployment/fe", "StatefulSet/db"}, all)
		assert.Zero(t, waited)
		assert.Empty(t, api.Seen(), "what is known needs no request")
	})
}

func TestDataGoesOnWhenAnObjectIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCluster()
		e := newEnricher(t, api, nil)
		send(t, e, pod) // the kinds
		api.SetDelay(time.Second)
		all, waited := send(t, e, database, agent, pod)
		assert.Equal(t, []string{"", "", "Deployment/fe"}, all)
		assert.Equal(t, wait, waited, "for all together")

		all, waited = send(t, e, database)
		assert.Equal(t, []string{""}, all)
		assert.Zero(t, waited, "nothing waits twice for one lookup")

		time.Sleep(2 * time.Second)
		all, waited = send(t, e, database, agent)
		assert.Equal(t, []string{"StatefulSet/db", "DaemonSet/agent"}, all, "the lookup goes on")
		assert.Zero(t, waited)
	})
}

func TestWhatIsUnknownIsNotAskedAgainForAMinute(t *testing.T) {
	for name, fault := range map[string]fault{
		"not found":   {status: http.StatusNotFound},
		"forbidden":   {status: http.StatusForbidden},
		"unavailable": {status: http.StatusInternalServerError},
		"no answer":   {isDown: true},
		"timeout":     {delay: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &faulty{RoundTripper: newCluster()}
				e := newEnricher(t, api, nil)
				send(t, e, pod) // the kinds
				api.fail("/pods", fault)
				send(t, e, database)
				time.Sleep(15 * time.Second) // What waits for an answer ends.
				asked := api.failed()
				assert.Positive(t, asked)
				for range 40 {
					all, waited := send(t, e, database)
					assert.Equal(t, []string{""}, all)
					assert.Zero(t, waited)
					time.Sleep(time.Second)
				}
				probes := 0 // The resolver asks every 5 s whether a kind that hangs or fails works again.
				if name == "timeout" {
					probes = 10
				}
				assert.LessOrEqual(t, api.failed(), asked+probes)

				api.heal()
				time.Sleep(time.Minute)
				all, _ := send(t, e, database)
				assert.Equal(t, []string{"StatefulSet/db"}, all)
			})
		})
	}
}

func TestAChainThatIsCutShortGivesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &faulty{RoundTripper: newCluster()}
		e := newEnricher(t, api, func(c *Config) {
			c.Extract.Metadata = []string{"service.namespace"}
			c.ResourceAttributes.K8sOwnerName.Enabled = true
		})
		d := described{Signal: "logs", Attributes: map[string]any{"k8s.pod.name": "fe-1-a", "k8s.namespace.name": "shop"}}
		api.fail("/deployments", fault{status: http.StatusInternalServerError})
		assert.Equal(t, d.Attributes, enriched(t, e, d).AsRaw())
		api.heal()
		time.Sleep(unknownFor)
		assert.Equal(t, "Deployment/fe", workloadOf(enriched(t, e, d)))
	})
}

func TestWhatWasKnownStaysWhileTheAPIServerIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &faulty{RoundTripper: newCluster()}
		e := newEnricher(t, api, nil)
		send(t, e, pod)
		api.fail("/", fault{isDown: true})
		for range 10 {
			time.Sleep(7 * time.Minute)
			all, waited := send(t, e, pod)
			assert.Equal(t, []string{"Deployment/fe"}, all)
			assert.Zero(t, waited)
		}
		all, waited := send(t, e, database)
		assert.Equal(t, []string{""}, all)
		assert.LessOrEqual(t, waited, wait)
	})
}

func TestAnObjectThatIsGoneStaysKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCluster()
		e := newEnricher(t, api, nil)
		send(t, e, pod)
		api.Remove(pod, replicaSet)
		time.Sleep(30 * time.Minute)
		for range 3 {
			all, _ := send(t, e, pod)
			assert.Equal(t, []string{"Deployment/fe"}, all)
			time.Sleep(15 * time.Minute)
		}
	})
}

// The former pod's data still comes when its successor has the name.
func TestAPodWithTheNameOfAnotherOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCluster()
		e := newEnricher(t, api, nil)
		send(t, e, database)
		again := object("v1", "Pod", "db-0", "new-uid", daemonSet)
		api.Put(again)
		all, _ := send(t, e, database, again)
		assert.Equal(t, []string{"StatefulSet/db", "DaemonSet/agent"}, all)
	})
}

func TestAUIDAloneIsAnsweredFromWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCluster()
		e := newEnricher(t, api, nil)
		uid := described{Signal: "traces", Attributes: map[string]any{"k8s.pod.uid": "pod-uid"}}
		assert.Empty(t, workloadOf(enriched(t, e, uid)))
		assert.Empty(t, api.Seen(), "there is no address at which it could be read")
		send(t, e, pod)
		assert.Equal(t, "Deployment/fe", workloadOf(enriched(t, e, uid)))
	})
}

func TestWhatIsThereStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnricher(t, newCluster(), func(c *Config) {
			c.Extract.Labels = []extract.Rule{{TagName: "team", Key: "team", From: "namespace"}}
			c.Extract.Metadata = []string{"service.name", "service.namespace"}
		})
		attributes := enriched(t, e, described{Signal: "traces", Attributes: map[string]any{
			"k8s.pod.name": "fe-1-a", "k8s.namespace.name": "shop", "service.name": "own", "team": 7,
		}})
		assert.Equal(t, map[string]any{
			"k8s.pod.name": "fe-1-a", "k8s.namespace.name": "shop", "service.name": "own", "team": int64(7), "service.namespace": "shop",
			"k8s.workload.api_version": "apps/v1", "k8s.workload.kind": "Deployment", "k8s.workload.name": "fe", "k8s.workload.uid": "deployment-uid",
		}, attributes.AsRaw())
	})
}

func TestTagsOfTheNamespaceTheNodeAndTheContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnricher(t, newCluster(), func(c *Config) {
			c.Extract.Labels = []extract.Rule{{TagName: "team", Key: "team", From: "namespace"}, {TagName: "zone", Key: "zone", From: "node"}}
			c.Extract.Metadata = []string{"service.instance.id"}
		})
		for _, container := range []string{"main", "sidecar"} {
			attributes := enriched(t, e, described{Signal: "logs", Attributes: map[string]any{
				"k8s.pod.name": "fe-1-a", "k8s.namespace.name": "shop", "k8s.container.name": container, "k8s.node.name": "n1",
			}}).AsRaw()
			assert.Equal(t, "red", attributes["team"])
			assert.Equal(t, "a", attributes["zone"])
			assert.Equal(t, "shop.fe-1-a."+container, attributes["service.instance.id"])
		}
	})
}

// A Namespace that could not be read is looked up again after a minute, not after owners.cache_ttl.
func TestATagThatIsMissingComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCluster()
		e := newEnricher(t, api, func(c *Config) {
			c.Extract.Labels = []extract.Rule{{TagName: "team", Key: "team", From: "namespace"}}
		})
		api.Fail("/api/v1/namespaces/shop", apitest.Fault{Status: http.StatusForbidden})
		first := enriched(t, e, described{Signal: "logs", Attributes: map[string]any{"k8s.pod.name": "fe-1-a", "k8s.namespace.name": "shop"}})
		assert.Equal(t, "Deployment/fe", workloadOf(first))
		assert.NotContains(t, first.AsRaw(), "team")
		api.Heal("/api/v1/namespaces/shop")
		for range 2 { // The first one begins the lookup.
			time.Sleep(time.Minute)
			first = enriched(t, e, described{Signal: "logs", Attributes: map[string]any{"k8s.pod.name": "fe-1-a", "k8s.namespace.name": "shop"}})
		}
		assert.Equal(t, "red", first.AsRaw()["team"])
	})
}

func TestTheMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 50
		api := newCluster()
		e := newEnricher(t, api, func(c *Config) { c.Owners.CacheSize = size })
		for i := range 10 * size {
			o := object("v1", "Pod", fmt.Sprint("p-", i), fmt.Sprint("u-", i), stateful)
			api.Put(o)
			all, _ := send(t, e, o)
			require.Equal(t, []string{"StatefulSet/db"}, all)
		}
		assert.Equal(t, size, e.table.entries.Len())
		assert.Len(t, e.table.byUID, size)
	})
}

// Anybody may write many annotations to many objects.
func TestTheMemoryOfManyAnnotationsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCluster()
		e := newEnricher(t, api, func(c *Config) { c.Extract.Annotations = []extract.Rule{{KeyRegex: ".*"}} })
		send(t, e, pod, database)
		for i := range maxLarge + 100 {
			o := object("v1", "Pod", fmt.Sprint("p-", i), fmt.Sprint("u-", i), stateful)
			o.Annotations = map[string]string{}
			for j := range 3 {
				o.Annotations[fmt.Sprint("a-", j)] = strings.Repeat("x", 1000) + o.Name
			}
			api.Put(o)
			all, _ := send(t, e, o)
			require.Equal(t, []string{"StatefulSet/db"}, all)
		}
		assert.Equal(t, maxLarge, e.table.large.Len())
		assert.Equal(t, maxLarge+2, e.table.entries.Len(), "they displace no others")
		assert.Len(t, e.table.byUID, maxLarge+2)
	})
}

// Anybody who may send data can make up names.
func TestNamesThatAreMadeUpDisplaceNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCluster()
		e := newEnricher(t, api, nil)
		send(t, e, pod, database)
		for i := range maxUnknown/100 + 5 {
			var madeUp []apitest.Object
			for j := range 100 {
				madeUp = append(madeUp, object("v1", "Pod", fmt.Sprint("p-", i, "-", j), "u"))
			}
			send(t, e, madeUp...)
			time.Sleep(100 * time.Millisecond)
		}
		assert.Equal(t, maxUnknown+2, e.table.entries.Len())
		assert.Equal(t, maxUnknown, e.table.unknown.Len())
		api.Put(object("v1", "Pod", "p-104-0", "u", stateful))
		time.Sleep(2 * time.Minute)
		all, _ := send(t, e, object("v1", "Pod", "p-104-0", "u"))
		assert.Equal(t, []string{"StatefulSet/db"}, all)
		assert.Equal(t, maxUnknown-1, e.table.unknown.Len())
	})
}

// A tag that was there does not go because the Namespace may not be read any more.
func TestATagStaysWhenItCannotBeReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &faulty{RoundTripper: newCluster()}
		e := newEnricher(t, api, func(c *Config) {
			c.Extract.Labels = []extract.Rule{{TagName: "team", Key: "team", From: "namespace"}}
		})
		d := described{Signal: "logs", Attributes: map[string]any{"k8s.pod.name": "fe-1-a", "k8s.namespace.name": "shop"}}
		assert.Equal(t, "red", enriched(t, e, d).AsRaw()["team"])
		api.fail("/api/v1/namespaces/shop", fault{status: http.StatusForbidden})
		for range 4 {
			time.Sleep(11 * time.Minute)
			assert.Equal(t, "red", enriched(t, e, d).AsRaw()["team"])
		}
	})
}

// running returns how many lookups run.
func running(e *enricher) int {
	e.table.mu.Lock()
	defer e.table.mu.Unlock()
	return e.table.running
}

func TestNoMoreLookupsThanTheLimitRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCluster()
		e := newEnricher(t, api, nil)
		send(t, e, pod)
		api.SetDelay(time.Second)
		var many []apitest.Object
		for i := range 2 * maxLookups {
			many = append(many, object("v1", "Pod", fmt.Sprint("p-", i), fmt.Sprint("u-", i), stateful))
		}
		_, waited := send(t, e, many...)
		assert.Equal(t, wait, waited)
		assert.Equal(t, maxLookups, running(e))
		time.Sleep(time.Minute)
		assert.Zero(t, running(e))
	})
}

func TestEveryResolutionHasAnOutcome(t *testing.T) {
	for _, resolution := range []resolver.Resolution{
		resolver.ResolutionNotFound, resolver.ResolutionForbidden, resolver.ResolutionTimeout, resolver.ResolutionUnavailable,
		resolver.ResolutionCycle, resolver.ResolutionDepth,
	} {
		assert.GreaterOrEqual(t, outcomeOf(resolution), outcomeNotFound, resolution)
	}
}

func TestResourcesAreCountedByWhatBecameOfThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		telemetry := componenttest.NewTelemetry()
		settings := metadatatest.NewSettings(telemetry)
		api := newCluster()
		for _, path := range []string{"/api/v1/namespaces/shop/pods/agent-q", "/api/v1/namespaces/shop/pods?list", "/api/v1/pods?list"} {
			api.Fail(path, apitest.Fault{Status: http.StatusForbidden})
		}
		e := newEnricherWith(t, api, nil, settings)
		send(t, e, pod, agent, apitest.Object{Namespace: "shop", Name: "gone"}, apitest.Object{})
		api.SetDelay(time.Second)
		send(t, e, database)
		point := func(result string, n int64) metricdata.DataPoint[int64] {
			return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(
				attribute.String("processor", settings.ID.String()), attribute.String("result", result))}
		}
		metadatatest.AssertEqualKubeOwnersResources(t, telemetry, []metricdata.DataPoint[int64]{
			point("found", 1), point("forbidden", 1), point("not_found", 1), point("untouched", 1), point("late", 1),
		}, metricdatatest.IgnoreTimestamp())
		require.NoError(t, telemetry.Shutdown(t.Context()))
	})
}

// TestAnOldNameIsLookedUpBeforeItIsUsed: without a UID, another object can have it.
func TestAnOldNameIsLookedUpBeforeItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCluster()
		e := newEnricher(t, api, nil)
		workload := func() string {
			return workloadOf(enriched(t, e, described{Signal: "logs", Attributes: map[string]any{"k8s.namespace.name": "shop", "k8s.pod.name": "db-0"}}))
		}
		assert.Equal(t, "StatefulSet/db", workload())
		api.Remove(database)
		api.Put(object("v1", "Pod", "db-0", "new-uid", daemonSet))
		time.Sleep(24 * time.Hour)
		assert.Equal(t, "DaemonSet/agent", workload(), "the first data after a day")
	})
}

func TestTheUIDOfANodeDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnricher(t, newCluster(), nil)
		got := enriched(t, e, described{Signal: "metrics", Attributes: map[string]any{"k8s.node.name": "n1", "k8s.node.uid": "uid-in-another-cluster"}}).AsRaw()
		assert.NotContains(t, got, "k8s.workload.uid")
	})
}

// TestAnOwnerThatWasForbiddenIsReadAMinuteLater, such as when a role is made a second after the pod.
func TestAnOwnerThatWasForbiddenIsReadAMinuteLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &faulty{RoundTripper: newCluster()}
		e := newEnricher(t, api, nil)
		send(t, e, database) // the kinds
		api.fail("/replicasets", fault{status: http.StatusForbidden})
		send(t, e, pod)
		time.Sleep(time.Second)
		api.heal()
		for range 2 {
			time.Sleep(time.Minute + time.Second)
			send(t, e, pod)
		}
		all, _ := send(t, e, pod)
		assert.Equal(t, []string{"Deployment/fe"}, all)
	})
}

// TestASmallTableHoldsTogether while lookups end after their entries were dropped.
func TestASmallTableHoldsTogether(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			api := newCluster()
			e := newEnricher(t, api, func(c *Config) { c.Owners.CacheSize = 1 })
			var all []apitest.Object
			for i := range 200 {
				all = append(all, object("v1", "Pod", fmt.Sprint("p-", i), fmt.Sprint("u-", i), stateful))
			}
			api.Put(all...)
			send(t, e, pod)
			for i := range 1000 {
				api.SetDelay(time.Duration(random.IntN(200)) * time.Millisecond)
				at := i/10 + random.IntN(4)
				go func() {
					_, err := e.logs(t.Context(), logsOf(all[at]))
					assert.NoError(t, err)
				}()
				time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
			}
			time.Sleep(time.Minute)
			e.table.mu.Lock()
			defer e.table.mu.Unlock()
			assert.LessOrEqual(t, len(e.table.byUID), 1)
			assert.LessOrEqual(t, e.table.entries.Len(), 1)
		})
	}
}

func TestAnOutageIsLoggedOnceUntilItsEnd(t *testing.T) {
	for name, test := range map[string]struct {
		fault fault
		cause string
	}{
		"nothing listens at the address": {fault{isDown: true}, "connection refused"},
		"the token is wrong":             {fault{status: http.StatusUnauthorized}, "credentials"},
		"a permission is missing":        {fault{status: http.StatusForbidden}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core, logged := observer.New(zap.InfoLevel)
				settings := processortest.NewNopSettings(metadata.Type)
				settings.Logger = zap.New(core)
				api := &faulty{RoundTripper: newCluster()}
				e := newEnricherWith(t, api, nil, settings)
				api.fail("/", test.fault)
				for range 5 {
					send(t, e, pod, database)
					time.Sleep(unknownFor)
				}
				api.heal()
				for range 3 {
					time.Sleep(unknownFor)
					send(t, e, pod, database)
				}
				outages := logged.FilterMessageSnippet("Cannot read objects").All()
				if test.cause == "" {
					assert.Empty(t, outages, "the message about permissions is enough")
					return
				}
				require.Len(t, outages, 1)
				assert.Contains(t, outages[0].ContextMap()["error"], test.cause)
				assert.Equal(t, 1, logged.FilterMessage("The API server answers again").Len())
			})
		})
	}
}
