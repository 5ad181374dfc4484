// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// TestWhoDeployedIt: the record of the revision says it, or, of a StatefulSet, the one about its controller. It is the one
// next to the begin of the rollout, not before it, and not much later.
func TestWhoDeployedIt(t *testing.T) {
	t.Parallel()
	const (
		web   = "10m0s Deployment/web ScalingReplicaSet%s: Scaled up replica set web-bbb from 0 to 1\n10m0s Pod/web-bbb-1 starts\n"
		other = "10m0s Deployment/web ScalingReplicaSet tool=helm: Scaled up replica set web-ccc from 0 to 1\n"
		db    = "10m0s Pod/db-0<statefulset.apps/db starts hash=new\n"
	)
	create := func(at, settings string) string {
		return at + " StatefulSet/db SuccessfulCreate event=" + at + settings + ": create Pod db-0 in StatefulSet db successful\n"
	}
	for name, tt := range map[string]struct {
		records, revision, want string
	}{
		"nothing says it":              {fmt.Sprintf(web, ""), "web-bbb", ""},
		"the tool":                     {fmt.Sprintf(web, " tool=helm"), "web-bbb", "helm"},
		"only who changed it":          {fmt.Sprintf(web, " by=kubectl-edit"), "web-bbb", " by kubectl-edit"},
		"only what changed":            {fmt.Sprintf(web, " changes=cpu_limit_app:_1_added"), "web-bbb", " cpu limit app: 1 added"},
		"all of them":                  {fmt.Sprintf(web, " tool=helm by=h changes=a;b"), "web-bbb", "helm by h a, b"},
		"of another revision":          {fmt.Sprintf(web, "") + other, "web-bbb", ""},
		"of the controller":            {create("10m0s", " tool=flux") + db, "new", "flux"},
		"of the controller, too early": {create("9m57s", " tool=flux") + db, "new", ""},
		"of the controller, too late":  {create("15m0s", " tool=flux") + db, "new", ""},
		"a moment early":               {create("9m58s", " tool=flux") + db, "new", "flux"},
		"the next one":                 {create("10m0s", " tool=flux") + create("10m30s", " tool=argo") + db, "new", "flux"},
		"the next one, in disorder":    {create("11m0s", " tool=argo") + create("10m10s", " tool=flux") + db, "new", "flux"},
		"of another controller":        {strings.ReplaceAll(create("10m0s", " tool=flux"), "StatefulSet/db", "StatefulSet/cache") + db, "new", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, found := "", false
			for _, w := range modelOf(storyOf(tt.records)).Workloads {
				rollouts, _ := w.States(late)
				for _, r := range rollouts {
					if nameOf(r.Revision) != tt.revision {
						continue
					}
					found = true
					if got = r.Template.Tool; r.Template.ChangedBy != "" {
						got += " by " + r.Template.ChangedBy
					}
					if len(r.Template.Changes) > 0 {
						got += " " + strings.Join(r.Template.Changes, ", ")
					}
				}
			}
			assert.True(t, found)
			assert.Equal(t, tt.want, got)
		})
	}
}

// TestManyTemplates: the newest 64 of a workload are kept, in whatever order their records come.
func TestManyTemplates(t *testing.T) {
	t.Parallel()
	var s story
	for i := range 70 {
		s = append(s, storyOf(fmt.Sprintf("%dm0s Deployment/web ScalingReplicaSet event=%d tool=helm: Scaled up replica set web-r%d from 0 to 1", i, i, i))...)
	}
	for _, records := range []story{s, append(s[35:len(s):len(s)], s[:35]...)} {
		w, _ := modelOf(records).Revision(rollout.Key{Workload: "cluster/shop/uid-web"})
		require.Len(t, w.Templates, 64)
		for _, template := range w.Templates {
			assert.NotContains(t, []string{"r0", "r1", "r2", "r3", "r4", "r5"}, strings.TrimPrefix(nameOf(template.Revision), "web-"))
		}
	}
}

// TestManyEvents: of a pod, the earliest 64 are kept, in whatever order they come.
func TestManyEvents(t *testing.T) {
	t.Parallel()
	var s story
	for i := range 70 {
		s = append(s, storyOf(fmt.Sprintf("%dm0s Pod/web-aaa-1 !Odd event=%02d x2/%ds: odd %d", i, 70-i, i, i))...)
	}
	for _, records := range []story{s, append(s[35:len(s):len(s)], s[:35]...)} {
		_, r := modelOf(records).Revision(rollout.Key{Workload: "cluster/shop/uid-web", Revision: "replicaset.apps/web-aaa"})
		events := r.Pods["uid-web-aaa-1"].Events
		require.Len(t, events, 64)
		for i := range 64 {
			assert.Contains(t, events, fmt.Sprintf("%02d", 70-i))
		}
	}
}

// TestSizeIsThatOfAllTexts: what a model counts while records come is what it counts when it is read, and each text counts.
func TestSizeIsThatOfAllTexts(t *testing.T) {
	t.Parallel()
	for name, s := range allStories(t) {
		m, again := modelOf(s.records), &rollout.Model{}
		again.Join(restored(t, saved(t, m)))
		assert.Equal(t, again.Size(), m.Size(), name)
		m.Join(modelOf(s.records))
		assert.Equal(t, again.Size(), m.Size(), "%s: with all records again", name)
		count := 0
		for _, w := range m.Workloads {
			count += len(w.Revisions)
		}
		assert.Equal(t, count, m.Revisions(), name)
		for key, w := range m.Workloads {
			for _, revision := range slices.Sorted(maps.Keys(w.Revisions)) {
				m.Forget(rollout.Key{Workload: key, Revision: revision})
				again = &rollout.Model{}
				again.Join(restored(t, saved(t, m)))
				assert.Equal(t, again.Size(), m.Size(), "%s: without %s", name, revision)
			}
		}
	}
	long := strings.Repeat("x", 200)
	const usual = "0s Deployment/web ScalingReplicaSet event=e%s: Scaled up replica set web-aaa from 0 to 1\n1s Pod/web-aaa-1 !Odd{app} uid=u event=f%s: %s"
	sizeOf := func(step, event, message string) int {
		return modelOf(storyOf(fmt.Sprintf(usual, step, event, message))).Size()
	}
	before := sizeOf(" tool=t by=b changes=c", "", "m")
	for name, after := range map[string]int{
		"the tool": sizeOf(" tool="+long+" by=b changes=c", "", "m"), "the manager": sizeOf(" tool=t by="+long+" changes=c", "", "m"),
		"a change": sizeOf(" tool=t by=b changes="+long, "", "m"), "a message": sizeOf(" tool=t by=b changes=c", "", long),
		"an id": sizeOf(" tool=t by=b changes=c", long, "m"), "the end of a container": sizeOf(" tool=t by=b changes=c", " ended=Error/1/0/1s", "m") + 100,
	} {
		assert.InDelta(t, before+200, after, 5, name)
	}
	assert.Greater(t, before, sizeOf("", "", "m")+300, "a template")
}

// TestRecordsOfOneEvent: the newest one has the message, in whatever order they come. Of two with the same count, the later
// one is newer.
func TestRecordsOfOneEvent(t *testing.T) {
	t.Parallel()
	first := storyOf("0s Pod/web-aaa-1 starts\n10s Pod/web-aaa-1 !Odd event=e x2/5s: z")
	for later, want := range map[string]string{
		"20s Pod/web-aaa-1 !Odd event=e x2/5s: a": "a", "20s Pod/web-aaa-1 !Odd event=e x3/5s: a": "a", "8s Pod/web-aaa-1 !Odd event=e x3/5s: a": "a",
		"20s Pod/web-aaa-1 !Odd event=e x1: a": "z", "10s Pod/web-aaa-1 !Odd event=e x2/5s: a": "z", "9s Pod/web-aaa-1 !Odd event=e x2/5s: a": "z",
	} {
		m, reversed := modelOf(append(first[:len(first):len(first)], storyOf(later)...)), modelOf(append(storyOf(later), first...))
		assert.Equal(t, bytesOf(t, m), bytesOf(t, reversed), later)
		_, r := m.Revision(rollout.Key{Workload: "cluster/shop/uid-web", Revision: "replicaset.apps/web-aaa"})
		assert.Equal(t, want, r.Pods["uid-web-aaa-1"].Events["e"].Message, later)
	}
}

// TestTheEndOfAContainer: the newest one counts, in whatever order the records come.
func TestTheEndOfAContainer(t *testing.T) {
	t.Parallel()
	line := "%s Pod/web-aaa-1 !BackOff{app} event=e x%d/5s%s: Back-off restarting failed container"
	s := storyOf("0s Pod/web-aaa-1 starts\n" + strings.Join([]string{
		fmt.Sprintf(line, "10s", 2, ""), fmt.Sprintf(line, "20s", 3, " ended=Error/1/0/19s"), fmt.Sprintf(line, "30s", 4, " ended=OOMKilled/137/1024/29s"), fmt.Sprintf(line, "40s", 5, ""),
	}, "\n"))
	for i := range s {
		order := append(append(story{}, s[i:]...), s[:i]...)
		for _, span := range spansOf(modelOf(order), late) {
			if strings.HasPrefix(span.Name, "restart") {
				assert.Equal(t, "OOMKilled", span.Attributes["k8s.container.status.last_terminated_reason"], i)
				assert.EqualValues(t, 137, span.Attributes["process.exit.code"], i)
				assert.Equal(t, "OOMKilled at 1 KiB, exit 137: Back-off restarting failed container", span.Error, i)
			}
		}
	}
}

// TestAttributesOfARollout are those that all of its pods have, and that are texts.
func TestAttributesOfARollout(t *testing.T) {
	t.Parallel()
	s := storyOf("0s Pod/web-aaa-1 starts node=node-0").changed(func(resource, _ pcommon.Map) {
		resource.PutStr("team", "shop")
		resource.PutInt("replicas", 3)
	})
	_, r := modelOf(s).Revision(rollout.Key{Workload: "cluster/shop/uid-web", Revision: "replicaset.apps/web-aaa"})
	assert.Equal(t, map[string]string{
		"k8s.cluster.uid": "cluster", "k8s.namespace.name": "shop", "k8s.workload.api_version": "apps/v1", "k8s.workload.kind": "Deployment",
		"k8s.workload.name": "web", "k8s.workload.uid": "uid-web", "team": "shop",
	}, r.Attributes)
}

// TestNews: an Event of another kind, or of another container, is news of a pod. One that only repeats is none.
func TestNews(t *testing.T) {
	t.Parallel()
	const pod = "0s Pod/web-aaa-1 starts"
	key := rollout.Key{Workload: "cluster/shop/uid-web", Revision: "replicaset.apps/web-aaa"}
	for line, isNews := range map[string]bool{
		"4s Pod/web-aaa-1 Started{app}: Container started":                          false,
		"9s Pod/web-aaa-1 Started{app} x2/4s: Container started":                    false,
		"9s Pod/web-aaa-1 Pulled{app}: Successfully pulled image \"shop:2\" in 5ms": false,
		"9s Pod/web-aaa-1 Started{side}: Container started":                         true,
		"9s Pod/web-aaa-1 !BackOff{app}: Back-off restarting failed container":      true,
		"9s Pod/web-aaa-2 Scheduled: Successfully assigned shop/POD to NODE":        true,
		"9s ReplicaSet/web-aaa SuccessfulDelete: Deleted pod: web-aaa-1":            true,
		"9s ReplicaSet/web-aaa !FailedCreate: no quota":                             true,
		"9s Deployment/web ScalingReplicaSet: Scaled up replica set web-aaa to 3":   true,
	} {
		m := modelOf(storyOf(pod))
		m.ReceivedAt(1)
		later := modelOf(storyOf(line))
		later.ReceivedAt(int64(time.Minute))
		news := m.Join(later)
		_, r := m.Revision(key)
		assert.Equal(t, isNews, len(news) > 0, line)
		assert.Equal(t, map[bool]int64{true: int64(time.Minute), false: 1}[isNews], r.News, line)
		assert.Empty(t, m.Join(later), "%s: again", line)
	}
}
