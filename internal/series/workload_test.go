// SPDX-License-Identifier: Apache-2.0

package series

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// of returns an object of a custom resource in a namespace.
func of(kind, namespace, name string) *resolver.Object {
	return &resolver.Object{APIVersion: "example.com/v1", Kind: kind, Namespace: namespace, Name: name}
}

// workloads are the values of the points, by namespace/kind/name of their workload.
func workloads(t *Series) map[string]int64 {
	found := map[string]int64{}
	for attributes, value := range sums(t, at(1)) {
		fields := map[string]string{}
		for _, field := range strings.Fields(strings.Trim(strings.TrimPrefix(attributes, "map"), "[]")) {
			key, value, _ := strings.Cut(field, ":")
			fields[key] = value
		}
		found[fields["k8s.namespace.name"]+"/"+fields["k8s.workload.kind"]+"/"+fields["k8s.workload.name"]] += value
	}
	return found
}

func TestRunsWithGeneratedNamesAreOneSeries(t *testing.T) {
	counted := New(Settings{Max: 100, TTL: time.Hour}, start)
	for i := range 1000 {
		run := of("PipelineRun", "ci", fmt.Sprint("build-shop-", i))
		run.GenerateName = "build-shop-"
		run.UID = "differs"
		add(counted, at(0), seen("Started", 1, resolver.ResolutionComplete, run), seen("BackOff", 1, resolver.ResolutionComplete, pod("p"), run))
	}
	named := of("PipelineRun", "ci", "nightly-x7k2p")
	add(counted, at(0), seen("Started", 1, resolver.ResolutionComplete, named), seen("Scaled", 1, resolver.ResolutionComplete, deployment("fe")))
	assert.Equal(t, map[string]int64{
		"ci/PipelineRun/build-shop": 1000, "ns/PipelineRun/build-shop": 1000,
		"ci/PipelineRun/nightly-x7k2p": 1, "ns/Deployment/fe": 1,
	}, workloads(counted))
	assert.Equal(t, Usage{Series: 4}, counted.TakeUsage())
}

func TestAForeignEventCountsWhereItIsStored(t *testing.T) {
	counted := New(Settings{Max: 100, TTL: time.Hour}, start)
	o := seen("NodeNotReady", 1, observation.Foreign, &resolver.Object{Namespace: "tenant-b"})
	o.Event.InvolvedObject.Kind = "Node"
	add(counted, at(0), o)
	assert.Equal(t, map[string]int64{"tenant-b//": 1}, workloads(counted))
}

func TestAGeneratedNameHasNoUIDInTheMetric(t *testing.T) {
	run := of("PipelineRun", "ci", "build-a")
	run.GenerateName, run.UID = "build-", "u"
	o := seen("Started", 1, resolver.ResolutionComplete, run)
	assert.Equal(t, workload{apiVersion: "example.com/v1", kind: "PipelineRun", name: "build"}, workloadOf(&o, "ci", at(0)))
}

func TestHundredNamesOfAKindInANamespaceAreKnownByReferenceOnly(t *testing.T) {
	forbidden := func(namespace, kind, name string) observation.Observation {
		return seen("Failed", 1, resolver.ResolutionForbidden, of(kind, namespace, name))
	}
	counted := New(Settings{Max: 1000, TTL: time.Hour}, start)
	for i := range 150 {
		add(counted, at(0), forbidden("ci", "PipelineRun", fmt.Sprint("run-", i)))
	}
	add(counted, at(0), forbidden("ci", "PipelineRun", "run-7"), forbidden("ci", "TaskRun", "t"), forbidden("shop", "PipelineRun", "run-149"))
	got := workloads(counted)
	assert.Len(t, got, 100+1+2)
	assert.Equal(t, int64(50), got["ci/PipelineRun/"], "further ones count under their kind")
	assert.Equal(t, int64(2), got["ci/PipelineRun/run-7"], "a name that is there goes on")
	assert.Equal(t, int64(1), got["ci/TaskRun/t"])
	assert.Equal(t, int64(1), got["shop/PipelineRun/run-149"], "each namespace has its own")
	usage := counted.TakeUsage()
	assert.Equal(t, Usage{Series: usage.Series, Unnamed: 50, UnnamedKind: "PipelineRun", UnnamedNamespace: "ci"}, usage)
	assert.Zero(t, counted.TakeUsage().Unnamed)

	add(counted, at(0), seen("Failed", 1, resolver.ResolutionComplete, of("PipelineRun", "ci", "run-120")))
	assert.Equal(t, int64(1), workloads(counted)["ci/PipelineRun/run-120"], "an object that may be read has its name")
}

// Their names never come back, whether the receiver may read them or not.
func TestRunsWithoutGeneratedNamesHaveHundredNames(t *testing.T) {
	object := func(apiVersion, kind, name string, age time.Duration) *resolver.Object {
		return &resolver.Object{APIVersion: apiVersion, Kind: kind, Namespace: "ci", Name: name, Created: at(0).Add(-age).Unix()}
	}
	for name, test := range map[string]struct {
		apiVersion, kind string
		age              time.Duration
		named            int
	}{
		"Jobs":                                  {"batch/v1", "Job", time.Minute, 100},
		"Jobs that have run for hours":          {"batch/v1", "Job", 24*time.Hour - time.Second, 100},
		"custom resources":                      {"example.com/v1", "Run", 0, 100},
		"custom resources that have stayed":     {"example.com/v1", "Application", 24 * time.Hour, 150},
		"a kind that has the name of one":       {"example.com/v1", "Deployment", 0, 100},
		"Deployments":                           {"apps/v1", "Deployment", 0, 150},
		"CronJobs":                              {"batch/v1", "CronJob", 0, 150},
		"Nodes: an alert on one has to name it": {"v1", "Node", 0, 150},
	} {
		t.Run(name, func(t *testing.T) {
			counted := New(Settings{Max: 1000, TTL: time.Hour}, start)
			for i := range 150 {
				run := object(test.apiVersion, test.kind, fmt.Sprint("run-", i), test.age)
				add(counted, at(0), seen("Started", 1, resolver.ResolutionComplete, pod("p"), run), seen("Completed", 1, resolver.ResolutionComplete, run))
			}
			got, further := workloads(counted), 2*int64(150-test.named)
			assert.Equal(t, further, got["ns/"+test.kind+"/"]+got["ci/"+test.kind+"/"])
			delete(got, "ns/"+test.kind+"/")
			delete(got, "ci/"+test.kind+"/")
			assert.Len(t, got, 2*test.named)
			assert.Equal(t, int(further), counted.TakeUsage().Unnamed)
		})
	}
}

// What a name begins with may be that of a run, too.
func TestPrefixesOfGeneratedNamesAreBounded(t *testing.T) {
	counted := New(Settings{Max: 1000, TTL: time.Hour}, start)
	for i := range 150 {
		run := of("Run", "ci", fmt.Sprint("run-", i, "-x7k2p"))
		run.GenerateName, run.Created = fmt.Sprint("run-", i, "-"), at(0).Unix()
		add(counted, at(0), seen("Started", 1, resolver.ResolutionComplete, run))
	}
	got := workloads(counted)
	assert.Equal(t, int64(50), got["ci/Run/"])
	assert.Equal(t, int64(1), got["ci/Run/run-99"])
	assert.Len(t, got, 101)
}

func TestANameThatIsKnownByReferenceOnlyIsFreeWhenItsSeriesEnd(t *testing.T) {
	counted := New(Settings{Max: 1000, TTL: time.Hour}, start)
	for i := range maxWorkloadNames {
		name := of("Run", "ci", fmt.Sprint("run-", i))
		add(counted, at(0), seen("Started", 1, resolver.ResolutionForbidden, name), seen("Failed", 1, resolver.ResolutionForbidden, name))
	}
	add(counted, at(50), seen("Started", 1, resolver.ResolutionForbidden, of("Run", "ci", "run-0")))
	sums(counted, at(51))
	counted.Accepted()
	counted.Expire(at(61))
	for i := range maxWorkloadNames {
		add(counted, at(62), seen("Started", 1, resolver.ResolutionForbidden, of("Run", "ci", fmt.Sprint("next-", i))))
	}
	got := workloads(counted)
	assert.Contains(t, got, "ci/Run/run-0", "it has not ended")
	assert.Contains(t, got, "ci/Run/next-98")
	assert.NotContains(t, got, "ci/Run/next-99")
	assert.Equal(t, 1, counted.TakeUsage().Unnamed)
	sums(counted, at(63))
	counted.Accepted()
	counted.Expire(at(200))
	assert.Empty(t, counted.workloadNames, "a kind without series takes no memory")
}

func TestTheOverflowSeriesTakesNoName(t *testing.T) {
	counted := New(Settings{Max: 1, TTL: time.Hour}, start)
	add(counted, at(0), seen("Scaled", 1, resolver.ResolutionComplete, deployment("fe")))
	for i := range 3 * maxWorkloadNames {
		add(counted, at(0), seen("Failed", 1, resolver.ResolutionForbidden, of("Run", "ci", fmt.Sprint("run-", i))))
	}
	assert.Equal(t, Usage{Series: 1, Overflowed: 3 * maxWorkloadNames, OverflowedNamespace: "run-299"}, counted.TakeUsage())
	assert.Empty(t, counted.workloadNames)
}

func TestANameThatWasNotGeneratedIsKept(t *testing.T) {
	copied := deployment("shop")
	copied.GenerateName = "tmp-"
	o := seen("Scaled", 1, resolver.ResolutionComplete, copied)
	assert.Equal(t, "shop", workloadOf(&o, "ns", at(0)).name)
}
