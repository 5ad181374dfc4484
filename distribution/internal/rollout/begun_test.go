// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// TestBegun: of the scale-ups from zero, some begin a rollout.
func TestBegun(t *testing.T) {
	t.Parallel()
	const first, second = "replicaset.apps/shop-aaa", "replicaset.apps/shop-bbb"
	for name, c := range map[string]struct {
		story story
		want  []string
	}{
		"a first rollout":                   {firstRollout("0s"), []string{first}},
		"an update":                         {join(firstRollout("0s"), secondRollout()), []string{first, second}},
		"a rollback":                        {join(firstRollout("0s"), secondRollout(), rollback()), []string{first, first, second}},
		"a rollback in a combined Event":    {join(firstRollout("0s"), secondRollout(), combinedRollback()), []string{first, first, second}},
		"a repeated scale-up alone":         {rollback(), nil},
		"from zero again":                   {join(firstRollout("0s"), fromZero()), []string{first}},
		"a scale-up":                        {join(firstRollout("0s"), scaleUp()), []string{first}},
		"records without a scale-up at all": {dropped(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, w := range modelOf(c.story).Workloads {
				assert.Equal(t, c.want, slices.Sorted(maps.Values(w.Begun())))
			}
		})
	}
}

// TestIntroduced: a revision of a StatefulSet is new if another one is older, and its first pod was created.
func TestIntroduced(t *testing.T) {
	t.Parallel()
	whole := statefulRollout()
	created := rollout.Creation{Pod: "db-0", At: after("10m30s").UnixNano()}
	for name, c := range map[string]struct {
		story story
		want  map[rollout.Creation]rollout.Introduction
	}{
		"a new revision":                                           {whole, map[rollout.Creation]rollout.Introduction{created: {Revision: "hash-2"}}},
		"with a record of the old one's end":                       {join(whole[7:8], whole[8:]), map[rollout.Creation]rollout.Introduction{created: {Revision: "hash-2", Replaced: "hash-1"}}},
		"without a record of the old one":                          {whole[8:], map[rollout.Creation]rollout.Introduction{}},
		"without a record of the creation":                         {join(whole[:8], whole[9:]), map[rollout.Creation]rollout.Introduction{}},
		"another StatefulSet of the same custom resource is older": {drained("es-masters-1", "es-data-0"), map[rollout.Creation]rollout.Introduction{}},
		"an old revision, of which a pod ended before":             {drained("db-1", "db-0"), map[rollout.Creation]rollout.Introduction{}},
		"revisions that are names, not hashes":                     {join(firstRollout("0s"), secondRollout()), map[rollout.Creation]rollout.Introduction{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, w := range modelOf(c.story).Workloads {
				assert.Equal(t, c.want, w.Introduced())
			}
		})
	}
}

// TestIntroducedAgain: a StatefulSet uses the hash of an old revision again. That a pod takes the place of one of a
// newer revision shows it. The pods after it show nothing new.
func TestIntroducedAgain(t *testing.T) {
	t.Parallel()
	var s story
	s.add(occurrence{at: "0s", about: member("db-0", "uid-0", "hash-1"), reason: "Unhealthy", container: "app", message: "Readiness probe failed"})
	s.add(replaceMember("10m0s", "0s", "db-2", "hash-1", "hash-2")...)
	s.add(replaceMember("11m0s", "0s", "db-1", "hash-1", "hash-2")...)
	s.add(replaceMember("20m0s", "10m0s", "db-2", "hash-2", "hash-1")...)
	s.add(replaceMember("21m0s", "11m0s", "db-1", "hash-2", "hash-1")...)
	s.add(replaceMember("30m0s", "20m0s", "db-2", "hash-1", "hash-2")...)
	want := map[rollout.Creation]rollout.Introduction{
		{Pod: "db-2", At: after("10m0s").UnixNano()}: {Revision: "hash-2"},
		{Pod: "db-2", At: after("20m0s").UnixNano()}: {Revision: "hash-1", Replaced: "hash-2"},
		{Pod: "db-2", At: after("30m0s").UnixNano()}: {Revision: "hash-2", Replaced: "hash-1"},
	}
	for _, w := range modelOf(s).Workloads {
		assert.Equal(t, want, w.Introduced())
	}
}

// replaceMember ends a pod of one revision, which was created at the time since, and starts one of another revision in its place.
func replaceMember(at, since, name, former, next string) []occurrence {
	created := occurrence{at: at, about: statefulSet("db"), reason: "SuccessfulCreate", message: "create Pod " + name + " in StatefulSet db successful"}
	created.event = "created-" + name + at
	return append([]occurrence{stop(at, member(name, since+name, former)), created}, startOf(at, member(name, at+name, next))...)
}

// drained has a warning of one pod, and another pod of another old revision that a drain of its node moved. A custom
// resource owns their StatefulSets.
func drained(warned, moved string) (s story) {
	part := func(o object) object {
		o.chain, o.workload = append(o.chain, "elasticsearch.k8s.elastic.co/es"), "Elasticsearch/es"
		return o
	}
	before, since := part(member(moved, "uid-1", "hash-1")), part(member(moved, "uid-2", "hash-1"))
	s.add(
		occurrence{at: "0s", about: part(member(warned, "uid-0", "hash-0")), reason: "Unhealthy", container: "app", message: "Readiness probe failed"},
		stop("9m50s", before),
		occurrence{at: "10m0s", about: part(statefulSet(moved[:len(moved)-2])), reason: "SuccessfulCreate", message: "create Pod " + moved + " in StatefulSet " + moved[:len(moved)-2] + " successful"},
	)
	s.add(startOf("10m0s", since)...)
	return s
}

// TestForgottenRevision: the pods of another revision can have the same names, and still need the times at
// which they were created.
func TestForgottenRevision(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"hash-1", "hash-2"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			m := modelOf(statefulRollout())
			for key, w := range m.Workloads {
				before := w.Spans("hash-2", late)
				m.Forget(rollout.Key{Workload: key, Revision: of})
				if of == "hash-1" {
					assert.Equal(t, before[1:], w.Spans("hash-2", late)[1:], "the pod and its phases")
				} else {
					assert.NotEmpty(t, w.Names.Created, "those of the other revision")
					m.Forget(rollout.Key{Workload: key, Revision: "hash-1"})
					assert.Empty(t, m.Workloads)
				}
			}
		})
	}
}

// TestForgottenNames: names that no other revision uses are forgotten, too.
func TestForgottenNames(t *testing.T) {
	t.Parallel()
	set := statefulSet("db")
	s := statefulRollout()
	s.add(occurrence{at: "20m0s", about: set, reason: "SuccessfulCreate", message: "create Pod db-1 in StatefulSet db successful"})
	s.add(startOf("20m0s", member("db-1", "uid-3", "hash-3"))...)
	m := modelOf(s)
	for key, w := range m.Workloads {
		m.Forget(rollout.Key{Workload: key, Revision: "hash-3"})
		assert.Contains(t, w.Names.Created, "db-0")
		assert.NotContains(t, w.Names.Created, "db-1")
	}
}

// TestRollbackIsNews: the first record of a rollback can be an Event that is known, and that occurs again.
func TestRollbackIsNews(t *testing.T) {
	t.Parallel()
	const first = "replicaset.apps/shop-aaa"
	m := modelOf(join(firstRollout("0s"), secondRollout()))
	for _, w := range m.Workloads {
		w.Revisions[first].Closed = true
	}
	again, _ := rollout.Read(rollback()[0])
	for _, key := range m.Join(again) {
		assert.Equal(t, first, key.Revision)
	}
	for _, w := range m.Workloads {
		assert.False(t, w.Revisions[first].Closed)
	}
}
