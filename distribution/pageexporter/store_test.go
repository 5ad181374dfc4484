// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/quick"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clock is a store's clock. A test sets it.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func storeAt(now time.Time) (*store, *clock) {
	c := &clock{now}
	return newStore(c.now), c
}

// podEvent returns an entry of an event about a pod of a Deployment.
func podEvent(deployment, pod, reason string, change ...func(*entry)) entry {
	e := entry{
		id: pod + reason + "-1", event: pod + reason, at: noon.Add(-time.Minute),
		of: traits{"Normal", reason, "demo", ""}, occurrences: 1, count: 1, message: "m", resolution: "complete",
		chain: []object{{"deployment", "apps", deployment}, {"replicaset", "apps", deployment + "-1"}, {"pod", "", pod}},
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

func warning(e *entry) { e.of[traitType] = "Warning" }

func TestRecordsOfEventsAreRead(t *testing.T) {
	logs := plog.NewLogs()
	resource := logs.ResourceLogs().AppendEmpty()
	require.NoError(t, resource.Resource().Attributes().FromRaw(map[string]any{
		"k8s.cluster.uid": "c", "k8s.namespace.name": "demo", "tilt.manifest": "stuck", "k8s.container.name": "web",
		"k8s.object.api_version": "v1", "k8s.object.kind": "Pod", "k8s.object.name": "stuck-5d9f-abc",
		"k8s.owner.chain": []any{"replicaset.apps/stuck-5d9f", "rollout.argoproj.io/stuck"},
	}))
	records := resource.ScopeLogs().AppendEmpty().LogRecords()
	record := records.AppendEmpty()
	record.SetEventName("k8s.event")
	record.SetTimestamp(pcommon.NewTimestampFromTime(noon))
	record.SetSeverityText("Warning")
	record.Body().SetStr(strings.Repeat("é", maxMessage))
	require.NoError(t, record.Attributes().FromRaw(map[string]any{
		"log.record.uid": "u-3", "k8s.event.uid": "u", "k8s.event.reason": "BackOff", "k8s.event.occurrences": 2, "k8s.event.count": 3,
		"k8s.owner.resolution": "complete",
	}))
	records.AppendEmpty().Body().SetStr("a line of some log, which is not an event")

	assert.Equal(t, []entry{{
		id: "u-3", event: "u", at: noon, of: traits{"Warning", "BackOff", "demo", "stuck"}, occurrences: 2, count: 3,
		message: strings.Repeat("é", maxMessage/2) + "…", container: "web", resolution: "complete", cluster: "c",
		chain: []object{{"rollout", "argoproj.io", "stuck"}, {"replicaset", "apps", "stuck-5d9f"}, {"pod", "", "stuck-5d9f-abc"}},
	}}, entriesIn(logs))
}

func TestWhatARecordMayNotSay(t *testing.T) {
	for name, occurrences := range map[string]int64{"that it is none": 0, "that it is fewer than none": -5} {
		t.Run(name, func(t *testing.T) {
			logs := eventLog(t, "Killing", "m")
			event := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes()
			event.PutInt("k8s.event.occurrences", occurrences)
			assert.EqualValues(t, 1, entriesIn(logs)[0].occurrences)
		})
	}
}

func TestOfLongNamesTheBeginningIsKept(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	logs := eventLog(t, long, long)
	require.NoError(t, logs.ResourceLogs().At(0).Resource().Attributes().FromRaw(map[string]any{
		"k8s.namespace.name": long, "tilt.manifest": long, "k8s.container.name": long, "k8s.owner.chain": []any{"deployment.apps/" + long},
		"k8s.object.api_version": long, "k8s.object.kind": long, "k8s.object.name": long, "k8s.cluster.uid": long,
	}))
	assert.Less(t, len(fmt.Sprint(entriesIn(logs))), 10*1024)
}

func TestAnEventWithNothingInItHasAPlace(t *testing.T) {
	logs := plog.NewLogs()
	logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetEventName("k8s.event")
	s, _ := storeAt(time.Unix(60, 0))
	s.add(entriesIn(logs))
	assert.Len(t, s.see(filterFrom(nil)).Cards, 1)
}

func TestWhatIsCounted(t *testing.T) {
	tests := map[string]struct {
		entries []entry
		want    int64
	}{
		"occurrences, not records": {[]entry{podEvent("fe", "a", "Killing", func(e *entry) { e.occurrences, e.count = 7, 9 })}, 7},
		"what a failing neighbour makes the receiver deliver again, once": {
			[]entry{podEvent("fe", "a", "Killing"), podEvent("fe", "a", "Killing")}, 1},
		"records that do not say who they are, each": {
			[]entry{podEvent("fe", "a", "Killing", func(e *entry) { e.id = "" }), podEvent("fe", "a", "Killing", func(e *entry) { e.id = "" })}, 2},
		"what came to be before time did, not": {[]entry{podEvent("fe", "a", "Killing", func(e *entry) { e.at = time.Unix(-1<<40, 0) })}, 0},
		"by a clock that is ahead, now":        {[]entry{podEvent("fe", "a", "Killing", func(e *entry) { e.at = noon.Add(time.Hour) })}, 1},
		"what is older than an hour, not":      {[]entry{podEvent("fe", "a", "Killing", func(e *entry) { e.at = noon.Add(-61 * time.Minute) })}, 0},
		"what is older than the span, later":   {[]entry{podEvent("fe", "a", "Killing", func(e *entry) { e.at = noon.Add(-11 * time.Minute) })}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, _ := storeAt(noon)
			s.add(tt.entries)
			assert.Equal(t, tt.want, s.see(filterFrom(map[string][]string{"minutes": {"10"}})).All)
		})
	}
}

func TestAnEventIsShownInItsNewestState(t *testing.T) {
	s, _ := storeAt(noon)
	s.add([]entry{podEvent("fe", "a", "BackOff", func(e *entry) { e.id, e.count, e.occurrences, e.message = "3", 3, 3, "old" })})
	s.add([]entry{podEvent("fe", "b", "Killing", func(e *entry) { e.at = noon.Add(-30 * time.Second) })})
	s.add([]entry{podEvent("fe", "a", "BackOff", func(e *entry) { e.id, e.count, e.message, e.at = "4", 4, "new", noon })})

	rows := s.see(filterFrom(nil)).Cards[0].Events
	require.Len(t, rows, 2)
	assert.Equal(t, "new", rows[0].Message)
	assert.EqualValues(t, 4, rows[0].Count)
	assert.EqualValues(t, 4, rows[0].Taken)
	assert.Equal(t, "pod/b", rows[1].Object)

	s.add([]entry{podEvent("fe", "a", "BackOff", func(e *entry) { e.id, e.count, e.message = "2", 2, "late" })})
	rows = s.see(filterFrom(nil)).Cards[0].Events
	require.Len(t, rows, 2)
	assert.Equal(t, "new", rows[0].Message)
	assert.EqualValues(t, 5, rows[0].Taken)
}

func TestTheTreeOfOwners(t *testing.T) {
	s, _ := storeAt(noon)
	s.add([]entry{
		podEvent("fe", "b", "Killing"), podEvent("fe", "a", "BackOff", warning),
		podEvent("fe", "", "ScalingReplicaSet", func(e *entry) { e.chain = e.chain[:1] }),
		podEvent("", "lost", "Killing", func(e *entry) { e.chain, e.resolution = e.chain[2:], "forbidden" }),
	})
	cards := s.see(filterFrom(nil)).Cards
	require.Len(t, cards, 2)
	assert.Equal(t, &branch{
		Object: object{"deployment", "apps", "fe"}, All: 1,
		Owned: []*branch{{Object: object{"replicaset", "apps", "fe-1"}, Owned: []*branch{
			{Object: object{"pod", "", "a"}, All: 1, Warnings: 1},
			{Object: object{"pod", "", "b"}, All: 1},
		}}},
	}, cards[0].Tree, "a workload with warnings comes first")
	assert.Equal(t, &branch{Object: object{"pod", "", "lost"}, All: 1, Resolution: "forbidden"}, cards[1].Tree)
}

func TestCardsKeepTheirPlaces(t *testing.T) {
	s, _ := storeAt(noon)
	order := func() (names []string) {
		for _, c := range s.see(filterFrom(nil)).Cards {
			names = append(names, c.Top.Name)
		}
		return names
	}
	s.add([]entry{podEvent("one", "a", "Killing"), podEvent("two", "b", "Killing")})
	assert.Equal(t, []string{"two", "one"}, order())
	s.add([]entry{podEvent("one", "a", "Started")})
	assert.Equal(t, []string{"two", "one"}, order(), "where something happens again, nothing moves")
	s.add([]entry{podEvent("three", "c", "Killing"), podEvent("one", "a", "BackOff", warning)})
	assert.Equal(t, []string{"one", "three", "two"}, order())
	v := s.see(filterFrom(nil))
	assert.Equal(t, []int{1, 2}, []int{v.Troubled, v.Others})
}

func TestFilters(t *testing.T) {
	s, _ := storeAt(noon)
	s.add([]entry{
		podEvent("fe", "fe-1-a", "Killing"), podEvent("fe", "fe-1-b", "BackOff", warning),
		podEvent("shop", "shop-1-c", "BackOff", warning, func(e *entry) { e.of[traitNamespace], e.message = "other", "Back-off pulling IMAGE shop:2" }),
		podEvent("oven", "oven-1-d", "Pulled", func(e *entry) { e.of[traitManifest], e.of[traitType] = "bakery", "Odd" }),
		podEvent("old", "old-1-e", "Pulled", func(e *entry) { e.at = noon.Add(-20 * time.Minute) }),
		podEvent("", "node-1", "NodeNotReady", func(e *entry) { e.chain, e.of[traitNamespace] = []object{{"node", "", "node-1"}}, clusterScoped }),
	})
	ago := func(minutes time.Duration) string { return noon.Add(-minutes * time.Minute).Format(time.RFC3339) }
	tests := map[string]struct {
		query map[string][]string
		want  map[string]int64 // occurrences by workload
	}{
		"none":                             {nil, map[string]int64{"fe": 2, "shop": 1, "oven": 1, "old": 1, "node-1": 1}},
		"ten minutes":                      {map[string][]string{"minutes": {"10"}}, map[string]int64{"fe": 2, "shop": 1, "oven": 1, "node-1": 1}},
		"only warnings":                    {map[string][]string{"warnings": {"only"}}, map[string]int64{"fe": 1, "shop": 1, "oven": 1}},
		"a reason":                         {map[string][]string{"reason": {"BackOff"}}, map[string]int64{"fe": 1, "shop": 1}},
		"a namespace":                      {map[string][]string{"namespace": {"other"}}, map[string]int64{"shop": 1}},
		"cluster-scoped objects":           {map[string][]string{"namespace": {"(cluster-scoped)"}}, map[string]int64{"node-1": 1}},
		"a manifest":                       {map[string][]string{"manifest": {"bakery"}}, map[string]int64{"oven": 1}},
		"two":                              {map[string][]string{"warnings": {"only"}, "namespace": {"demo"}}, map[string]int64{"fe": 1, "oven": 1}},
		"an hour":                          {map[string][]string{"minutes": {"60"}}, map[string]int64{"fe": 2, "shop": 1, "oven": 1, "old": 1, "node-1": 1}},
		"a span that there is not":         {map[string][]string{"minutes": {"99999"}}, map[string]int64{"fe": 2, "shop": 1, "oven": 1, "old": 1, "node-1": 1}},
		"a value that nothing has":         {map[string][]string{"reason": {"'\"<b>"}}, map[string]int64{}},
		"a workload that is there":         {map[string][]string{"workload": {idOf(workloadKey{"", "demo", object{"deployment", "apps", "fe"}})}}, map[string]int64{"fe": 2}},
		"a workload that is not (or gone)": {map[string][]string{"workload": {"w0"}}, map[string]int64{}},
		"the name of a workload":           {map[string][]string{"name": {"fe"}}, map[string]int64{"fe": 2}},
		"the name of a pod":                {map[string][]string{"name": {"fe-1-b"}}, map[string]int64{"fe": 1}},
		"the name of a replica set":        {map[string][]string{"name": {"fe-1"}}, map[string]int64{"fe": 2}},
		"a part of several names":          {map[string][]string{"name": {"o"}}, map[string]int64{"shop": 1, "oven": 1, "old": 1, "node-1": 1}},
		"a name as somebody types it":      {map[string][]string{"name": {" Shop "}}, map[string]int64{"shop": 1}},
		"a name that nothing has":          {map[string][]string{"name": {"apps/fe"}}, map[string]int64{}},
		"a name and only warnings":         {map[string][]string{"name": {"fe-1-a"}, "warnings": {"only"}}, map[string]int64{}},
		"a kind":                           {map[string][]string{"kind": {"node"}}, map[string]int64{"node-1": 1}},
		"a kind of owners":                 {map[string][]string{"kind": {"deployment.apps"}}, map[string]int64{"fe": 2, "shop": 1, "oven": 1, "old": 1}},
		"a kind without its group":         {map[string][]string{"kind": {"deployment"}}, map[string]int64{}},
		"a kind and a name":                {map[string][]string{"kind": {"pod"}, "name": {"fe-1"}}, map[string]int64{"fe": 2}},
		"a kind, and a name of others":     {map[string][]string{"kind": {"replicaset.apps"}, "name": {"fe-1-a"}}, map[string]int64{}},
		"a text of a message":              {map[string][]string{"text": {" pulling image"}}, map[string]int64{"shop": 1}},
		"a text and a reason":              {map[string][]string{"text": {"M"}, "reason": {"BackOff"}}, map[string]int64{"fe": 1, "shop": 1}},
		"a text and a name":                {map[string][]string{"text": {"m"}, "name": {"fe-1-b"}}, map[string]int64{"fe": 1}},
		"a text that no message has":       {map[string][]string{"text": {"shop-1-c"}}, map[string]int64{}},
		"a zoom":                           {map[string][]string{"from": {ago(21)}, "until": {ago(19)}}, map[string]int64{"old": 1}},
		"a zoom that ends too early":       {map[string][]string{"from": {ago(21)}, "until": {ago(20)}}, map[string]int64{}},
		"a zoom and a text":                {map[string][]string{"from": {ago(2)}, "until": {ago(0)}, "text": {"image"}}, map[string]int64{"shop": 1}},
		"a zoom and a span":                {map[string][]string{"from": {ago(21)}, "until": {ago(19)}, "minutes": {"10"}}, map[string]int64{"old": 1}},
		"half a zoom":                      {map[string][]string{"from": {ago(21)}, "minutes": {"10"}, "name": {"old"}}, map[string]int64{}},
		"a zoom that ends before it began": {map[string][]string{"from": {ago(19)}, "until": {ago(21)}, "name": {"old"}}, map[string]int64{"old": 1}},
		"a zoom of a month":                {map[string][]string{"from": {ago(21 * 60 * 24)}, "until": {ago(19)}, "name": {"oven"}}, map[string]int64{"oven": 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := s.see(filterFrom(tt.query))
			got := map[string]int64{}
			for _, c := range v.Cards {
				got[c.Top.Name] = c.All
			}
			assert.Equal(t, tt.want, got)
			assert.True(t, consistent(t, v))
			for _, c := range choices {
				if wanted := v.Filter.traits[c.trait]; wanted != "" {
					assert.True(t, slices.ContainsFunc(facetNamed(v, c.name).Options, func(o option) bool { return o.Selected && o.Value == wanted }), "what was chosen can be seen")
				}
			}
			address, err := url.Parse(v.Filter.Address())
			require.NoError(t, err)
			assert.Equal(t, v.Filter, filterFrom(address.Query()), "the address of the page says it all")
		})
	}
}

func TestANameSelectsTheEventsOfItsObjects(t *testing.T) {
	s, _ := storeAt(noon)
	s.add([]entry{podEvent("fe", "fe-1-a", "Killing"), podEvent("fe", "fe-1-b", "BackOff", warning)})
	card := s.see(filterFrom(map[string][]string{"name": {"fe-1-a"}})).Cards[0]
	require.Len(t, card.Events, 1)
	assert.Equal(t, "pod/fe-1-a", card.Events[0].Object)
	assert.Equal(t, []reason{{"Killing", false, 1}}, card.Reasons)
	assert.Len(t, card.Tree.Owned[0].Owned, 1)
}

func TestNewerEventsDoNotHideWarnings(t *testing.T) {
	s, _ := storeAt(noon)
	s.add([]entry{podEvent("fe", "broken", "FailedScheduling", warning, func(e *entry) { e.at = noon.Add(-8 * time.Minute) })})
	for i := range 3 * eventsShown {
		s.add([]entry{podEvent("fe", fmt.Sprint("fine", i), "Started", func(e *entry) { e.occurrences, e.at = 2, noon.Add(time.Duration(i-60)*time.Second) })})
	}
	card := s.see(filterFrom(nil)).Cards[0]
	require.Len(t, card.Events, eventsShown)
	assert.Equal(t, "FailedScheduling", card.Events[eventsShown-1].Reason, "the oldest")
	assert.Equal(t, fmt.Sprint("pod/fine", 3*eventsShown-1), card.Events[0].Object, "the newest")
	assert.Equal(t, 2*eventsShown+1, card.HiddenEvents)
	assert.Equal(t, noon.Add(-8*time.Minute), card.LastWarning)
	assert.Equal(t, []reason{{"FailedScheduling", true, 1}, {"Started", false, 6 * eventsShown}}, card.Reasons)
	assert.True(t, slices.ContainsFunc(card.Tree.Owned[0].Owned, func(b *branch) bool { return b.Object.Name == "broken" }), "its pod")
	assert.Equal(t, 2*eventsShown+1, card.HiddenObjects)
}

func TestAFacetCountsWhatTheOtherChoicesLeave(t *testing.T) {
	s, _ := storeAt(noon)
	s.add([]entry{podEvent("fe", "a", "Killing"), podEvent("fe", "b", "BackOff", warning), podEvent("fe", "c", "BackOff", warning)})
	v := s.see(filterFrom(map[string][]string{"reason": {"BackOff"}}))
	assert.Equal(t, []option{{"demo", 2, false}}, facetNamed(v, "namespace").Options)
	assert.Equal(t, []option{{"BackOff", 2, true}, {"Killing", 1, false}}, facetNamed(v, "reason").Options)
	assert.Empty(t, facetNamed(v, "manifest").Options)
}

func facetNamed(v view, name string) facet {
	return v.Facets[slices.IndexFunc(v.Facets, func(f facet) bool { return f.Name == name })]
}

func TestAnHourLaterNothingIsLeft(t *testing.T) {
	s, c := storeAt(noon)
	s.add([]entry{podEvent("fe", "a", "Killing"), podEvent("shop", "b", "Killing", func(e *entry) { e.at = noon.Add(-50 * time.Minute) })})
	hour := filterFrom(map[string][]string{"minutes": {"60"}})
	assert.EqualValues(t, 2, s.see(hour).All)
	c.Time = noon.Add(15 * time.Minute)
	assert.EqualValues(t, 1, s.see(hour).All)
	c.Time = noon.Add(61 * time.Minute)
	assert.Zero(t, s.see(hour).All)
	assert.Empty(t, s.workloads)
	assert.Empty(t, s.overall.slots)
}

func TestBounds(t *testing.T) {
	s, c := storeAt(noon)
	for i := range 3 * maxWorkloads {
		c.Time = c.Add(time.Millisecond)
		s.add([]entry{podEvent(fmt.Sprint("fe", i), fmt.Sprint("pod", i), "Killing", func(e *entry) { e.at = c.Time })})
	}
	for i := range 3 * maxObjects {
		c.Time = c.Add(time.Millisecond)
		s.add([]entry{podEvent("many", fmt.Sprint("of-many", i), "Killing", func(e *entry) { e.at = c.Time })})
	}
	v := s.see(filterFrom(nil))
	assert.EqualValues(t, 3*maxWorkloads+3*maxObjects, v.All, "all is counted")
	assert.Len(t, s.workloads, maxWorkloads)
	assert.Len(t, v.Cards, cardsShown)
	assert.Equal(t, maxWorkloads-cardsShown, v.Hidden)
	many := v.Cards[0]
	assert.Equal(t, "many", many.Top.Name)
	assert.EqualValues(t, 3*maxObjects, many.All)
	assert.Len(t, many.Events, eventsShown)
	assert.Equal(t, maxEvents-eventsShown, many.HiddenEvents)
	assert.Equal(t, maxObjects-objectsShown, many.HiddenObjects)
	assert.Equal(t, fmt.Sprint("pod/of-many", 3*maxObjects-1), many.Events[0].Object)

	alone := s.see(filterFrom(map[string][]string{"workload": {many.ID}})).Cards[0]
	assert.Len(t, alone.Events, maxEvents)
	assert.Zero(t, alone.HiddenEvents+alone.HiddenObjects)
}

func TestTraitsAreBounded(t *testing.T) {
	s, _ := storeAt(noon)
	for i := range 3 * maxTraits {
		s.add([]entry{podEvent("fe", "a", fmt.Sprint("Reason", i), warning), podEvent("fe", "a", fmt.Sprint("Reason", i), func(e *entry) { e.id = "" })})
	}
	kinds := 2 // those of what is not listed
	assert.LessOrEqual(t, s.overall.size(), maxTraits+kinds)
	for _, w := range s.workloads {
		assert.LessOrEqual(t, w.timeline.size(), maxOwnTraits+kinds)
		assert.LessOrEqual(t, w.objects[pathOf(podEvent("fe", "a", "").chain)].timeline.size(), maxOwnTraits+kinds)
	}
	v := s.see(filterFrom(map[string][]string{"warnings": {"only"}, "reason": {""}}))
	assert.EqualValues(t, 3*maxTraits, v.All, "all is counted")
	assert.True(t, consistent(t, v))
	assert.Len(t, facetNamed(v, "reason").Options, valuesShown)
	assert.Equal(t, maxTraits/2-valuesShown, facetNamed(v, "reason").Hidden)

	rare := fmt.Sprint("Reason", maxTraits/2-1)
	chosen := facetNamed(s.see(filterFrom(map[string][]string{"reason": {rare}})), "reason")
	assert.Equal(t, option{rare, 2, true}, chosen.Options[valuesShown], "what was chosen can be seen")
}

func TestAWorkloadOfManyBusyObjectsDropsTheQuietest(t *testing.T) {
	s, c := storeAt(noon)
	for i := range 2 * maxCounts / maxObjects {
		c.Time = c.Add(slotLength)
		for pod := range maxObjects {
			s.add([]entry{podEvent("fe", fmt.Sprint("pod", pod), "Killing", func(e *entry) { e.id, e.at = "", c.Add(time.Duration(pod-maxObjects)) })})
		}
		assert.EqualValues(t, (i+1)*maxObjects, s.see(filterFrom(map[string][]string{"minutes": {"60"}})).Cards[0].All, "all is counted")
	}
	counts := 0
	for _, w := range s.workloads {
		for _, m := range w.objects {
			counts += m.timeline.size()
		}
		assert.Contains(t, w.objects, pathOf(podEvent("fe", fmt.Sprint("pod", maxObjects-1), "").chain), "the newest is there")
	}
	assert.LessOrEqual(t, counts, maxCounts+maxObjects)
}

// TestAllPartsTellTheSame checks that the total, the chart, each facet and the cards count the same
// occurrences, in whatever order events arrive.
func TestAllPartsTellTheSame(t *testing.T) {
	check := func(seed uint64) bool {
		random := rand.New(rand.NewPCG(seed, 0))
		pick := func(values ...string) string { return values[random.IntN(len(values))] }
		s, c := storeAt(noon)
		for range 200 {
			c.Time = c.Add(time.Duration(random.IntN(60)) * time.Second)
			at := c.Add(-time.Duration(random.IntN(5000)) * time.Second)
			s.add([]entry{podEvent(pick("fe", "shop", "oven"), pick("a", "b", "c"), pick("Killing", "BackOff"), func(e *entry) {
				e.id, e.at, e.occurrences, e.message = "", at, int64(random.IntN(5)), pick("one", "two")
				e.of = traits{pick("Normal", "Warning", ""), e.of[traitReason], pick("demo", "other"), pick("", "m")}
			})})
		}
		from := c.Add(-time.Duration(random.IntN(5000)) * time.Second)
		until := from.Add(time.Duration(random.IntN(3600)) * time.Second)
		return consistent(t, s.see(filterFrom(map[string][]string{
			"warnings": {pick("", "only")}, "manifest": {pick("", "m")}, "minutes": {pick("10", "60")}, "name": {pick("", "fe", "shop-1", "a")},
			"text": {pick("", "o", "two")}, "kind": {pick("", "pod")}, "from": {pick("", from.Format(time.RFC3339))}, "until": {until.Format(time.RFC3339)},
		})))
	}
	require.NoError(t, quick.Check(check, nil))
}

func consistent(t *testing.T, v view) bool {
	var cards, warnings, reasons, charted, tree int64
	for _, c := range v.Cards {
		cards, warnings = cards+c.All, warnings+c.Warnings
		for _, r := range c.Reasons {
			reasons += r.Count
		}
		tree += occurrencesIn(c.Tree)
	}
	for _, bar := range v.Chart.Bars {
		charted += bar.All
	}
	return assert.Equal(t, v.All, cards) && assert.Equal(t, v.Warnings, warnings) && assert.Equal(t, v.All, reasons) &&
		assert.Equal(t, v.All, charted) && assert.Equal(t, v.All, tree)
}

func occurrencesIn(b *branch) int64 {
	sum := b.All
	for _, owned := range b.Owned {
		sum += occurrencesIn(owned)
	}
	return sum
}

func TestWorkloadsAreToldApartAsPeopleDo(t *testing.T) {
	s, _ := storeAt(noon)
	s.add([]entry{
		podEvent("fe", "a", "Killing"),
		podEvent("fe", "b", "Killing", func(e *entry) { e.of[traitNamespace] = "other" }),
		podEvent("fe", "c", "Killing", func(e *entry) { e.cluster = "east" }),
		podEvent("fe", "d", "Killing", func(e *entry) { e.chain[0].Group = "example.com" }),
	})
	assert.Len(t, s.see(filterFrom(nil)).Cards, 4)
	ids := map[string]bool{}
	for w := range maps.Values(s.workloads) {
		ids[w.id] = true
	}
	assert.Len(t, ids, 4)
}

func TestTheTypesOfEventsAreBounded(t *testing.T) {
	s, _ := storeAt(noon)
	for i := range 1000 {
		s.add([]entry{podEvent("fe", "fe-1", fmt.Sprint("Reason", i%3), func(e *entry) {
			e.id, e.of[traitType] = fmt.Sprint(i), fmt.Sprint("Type", i)
		})})
	}
	types, total := map[string]bool{}, int64(0)
	for _, c := range s.overall.since(noon.Add(-horizon), filter{}) {
		types[c.of.Value()[traitType]] = true
		total += c.n
	}
	assert.Len(t, types, maxTypes+1)
	assert.True(t, types[otherType])
	assert.Equal(t, int64(1000), total)
}

func TestEveryTextIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	resource := pcommon.NewMap()
	owners := resource.PutEmptySlice("k8s.owner.chain")
	for range 1000 {
		owners.AppendEmpty().SetStr(long)
	}
	owners.AppendEmpty().SetStr("deployment.apps/fe")
	record := plog.NewLogRecord()
	record.SetSeverityText(long)
	record.Body().SetStr(long)
	for _, name := range []string{"log.record.uid", "k8s.event.uid", "k8s.event.reason", "k8s.owner.resolution"} {
		record.Attributes().PutStr(name, long)
	}
	for _, name := range []string{"k8s.namespace.name", "tilt.manifest", "k8s.container.name", "k8s.cluster.uid", "k8s.object.api_version", "k8s.object.kind", "k8s.object.name"} {
		resource.PutStr(name, long)
	}
	e := entryOf(resource, record)
	assert.Less(t, len(fmt.Sprint(e)), 64<<10)
	assert.Equal(t, object{"deployment", "apps", "fe"}, e.chain[0])
}

func TestRecordsDoNotWaitForTheReadersThatWait(t *testing.T) {
	s, _ := storeAt(noon)
	s.add([]entry{podEvent("web", "web-1-a", "BackOff", warning)})
	s.reading.Lock() // A reader has its turn.
	var readers sync.WaitGroup
	for range 20 {
		readers.Go(func() { s.see(filterFrom(nil)) })
		readers.Go(func() { s.list(filterFrom(nil)) })
		readers.Go(func() { s.detail("none", filterFrom(nil)) })
	}
	for i := range 100 {
		s.add([]entry{podEvent("web", fmt.Sprint("web-1-", i), "BackOff", warning)})
	}
	s.reading.Unlock()
	readers.Wait()
	assert.EqualValues(t, 101, s.list(filterFrom(nil)).Workloads[0].Occurrences)
}
