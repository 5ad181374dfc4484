// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

func unhealthyEach(every time.Duration, times, count int, since string) string {
	var lines []string
	for i := range times {
		lines = append(lines, fmt.Sprintf("%s Pod/web-aaa-1 !Unhealthy{app} node=node-1 event=u new=1 x%d/%s: Readiness probe failed: HTTP probe failed with statuscode: 503",
			time.Duration(i)*every, count+i, since))
	}
	return strings.Join(lines, "\n")
}

// TestAProbeThatFailsForHours is a problem, whenever the connector starts, and whatever its period is.
func TestAProbeThatFailsForHours(t *testing.T) {
	for name, lines := range map[string]string{
		"a kubelet reports one failure in 5 minutes, and the connector starts after 2 days":     unhealthyEach(5*time.Minute, 24, 600, "-48h"),
		"a kubelet reports one failure in 5 minutes, and the connector starts after 2 hours":    unhealthyEach(5*time.Minute+time.Second, 24, 45, "-2h"),
		"a kubelet reports one failure in 5 minutes, and the connector starts after 30 minutes": unhealthyEach(5*time.Minute, 24, 30, "-30m"),
		"a period of 3 minutes": unhealthyEach(3*time.Minute, 40, 1, "0s"),
		"a period of 5 minutes": unhealthyEach(5*time.Minute, 24, 1, "0s"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := startWatching(t, nil, nil)
				w.tell(t, lines)
				w.stop(t)
				assert.NotEmpty(t, w.lines("k8s.problem"))
			})
		})
	}
}

// TestManyPodsThatFailOnce at the same time are a problem.
func TestManyPodsThatFailOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatching(t, nil, nil)
		var lines []string
		for i := range 100 {
			lines = append(lines, fmt.Sprintf("0s Pod/web%d-aaa-%d starts node=node-%d", i/10, i%10, i%10))
		}
		for step := range 2 {
			for workload := range 10 {
				for pod := range 10 {
					lines = append(lines, fmt.Sprintf("%ds Pod/web%d-aaa-%d !Unhealthy{app} node=node-%d new=1 x%d/0s: Readiness probe failed: timeout", 300+step*30, workload, pod, pod, step+1))
				}
			}
		}
		w.tell(t, strings.Join(lines, "\n"))
		time.Sleep(10 * time.Minute)
		w.stop(t)
		assert.NotEmpty(t, w.lines("k8s.problem"))
	})
}

// TestARestartEndsNothingThatGoesOn: what the receiver delivers after a start comes before the first look.
func TestARestartEndsNothingThatGoesOn(t *testing.T) {
	for _, pause := range []time.Duration{3 * time.Minute, 20 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			d := newDisks()
			w := startWatching(t, d, nil)
			epoch := time.Now()
			failure := func(i int) {
				line := fmt.Sprintf("%ds Pod/web-aaa-1 !Unhealthy{app} node=node-1 event=u new=1 x%d/0s: Readiness probe failed: m", i*10, i+1)
				w.consume(t, story.Records(line)[0].Logs(epoch))
			}
			for i := range 12 {
				time.Sleep(time.Until(epoch.Add(time.Duration(i) * 10 * time.Second)))
				failure(i)
			}
			assert.Len(t, w.lines("k8s.problem"), 1)
			w.stop(t)
			time.Sleep(pause)
			w = startWatching(t, d, nil)
			time.Sleep(10 * time.Second) // The receiver begins to watch.
			for i := 12; i < 12+int(pause/(10*time.Second)); i++ {
				failure(i)
			}
			time.Sleep(2 * time.Minute)
			assert.Empty(t, w.lines("k8s.problem"))
			w.stop(t)
		})
	}
}

// TestAPipelineOfLogsThatHangs does not keep back the metric, which has another pipeline, nor what is saved.
func TestAPipelineOfLogsThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisks()
		w := startWatching(t, d, nil)
		w.set(nil, true)
		w.tell(t, "0s Pod/web-aaa-1 !FailedScheduling: no room\n30s Pod/api-aaa-1 !BackOff{app} node=node-1: Back-off restarting failed container")
		time.Sleep(15 * time.Second)
		left, read := d.copied(), ""
		again := startWatching(t, left, nil)
		for one := range again.all[1].(*output).tracker.watch.parts {
			if one.Fact != nil {
				read += one.Fact.Record.Object().Name
			}
		}
		again.stop(t)
		assert.Contains(t, read, "api-aaa-1", "an event is saved, if later than usual")
		time.Sleep(10 * time.Minute)
		assert.Contains(t, w.emitted(), "web schedule=1")
		w.set(nil, false)
		time.Sleep(2 * time.Minute)
		w.stop(t)
	})
}

// TestTheSeriesOfWorkloadsThatShareAProblem: one without a workload takes the place of theirs.
func TestTheSeriesOfWorkloadsThatShareAProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatching(t, nil, nil)
		pull := `!Failed{app} node=node-1 namespace=%s: Failed to pull image "registry.example/app:1": ` + noHost
		w.tell(t, fmt.Sprintf("0s Pod/web-aaa-1 "+pull+"\n90s Pod/api-aaa-1 "+pull, "shop", "other"))
		time.Sleep(90 * time.Second)
		assert.Equal(t, []string{"web image=1", "web image=0", " image=1"}, slices.Compact(w.emitted()))
		w.stop(t)
	})
}

// TestABrokenNamespaceHidesNoFaultOfOthers: its open problems are full, but not those of several namespaces.
func TestABrokenNamespaceHidesNoFaultOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatching(t, nil, nil)
		var lines []string
		for i := range 100 {
			lines = append(lines, fmt.Sprintf("0s Pod/preview%d-aaa-1 !FailedMount node=node-%d namespace=preview event=f%d: m%d", i, i, i, i))
		}
		pull := `Pod/%s-aaa-1 !Failed{app} node=%s namespace=%s event=%s: Failed to pull image "registry.example/app:1": ` + noHost
		lines = append(lines, "60s "+fmt.Sprintf(pull, "evil", "node-1", "preview", "evil"))
		for i := range 10 {
			lines = append(lines, "65s "+fmt.Sprintf(pull, fmt.Sprintf("web%d", i), fmt.Sprintf("node-%d", i), fmt.Sprintf("team-%d", i), fmt.Sprintf("e%d", i)))
		}
		w.tell(t, strings.Join(lines, "\n"))
		time.Sleep(3 * time.Minute)
		isTold := slices.ContainsFunc(w.lines("k8s.problem"), func(line string) bool { return strings.Contains(line, "registry.example") })
		assert.True(t, isTold, "ten namespaces cannot pull")
		assert.True(t, slices.ContainsFunc(w.emitted(), func(p string) bool { return strings.Contains(p, "image=1") }))
		w.stop(t)
	})
}

// TestANameThatSaysMore is on one line.
func TestANameThatSaysMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatching(t, nil, nil)
		r := story.Records("0s Deployment/web !Odd namespace=evil: m")[0]
		r.Name = "checkout in payments: a container ends by itself, again and again; the cause: the registry\nCRITICAL: call +1 555"
		r.Settings["top"] = "Deployment/" + r.Name
		w.consume(t, r.Logs(time.Now()))
		time.Sleep(30 * time.Second)
		for _, r := range w.of("k8s.problem") {
			assert.NotContains(t, r.body, "\n")
		}
		w.stop(t)
	})
}

// limited returns when a kubelet writes what fails in each period: 25 Events about a pod at once, and then one in five
// minutes (client-go, EventSourceObjectSpamFilter). The period has a jitter of some milliseconds.
func limited(period, length time.Duration) (all []time.Duration) {
	tokens, last := 25., time.Duration(0)
	random := rand.New(rand.NewPCG(1, 1))
	for at := time.Duration(0); at < length; at += period {
		now := at + time.Duration(random.IntN(200))*time.Millisecond
		tokens = min(25, tokens+float64(now-last)/float64(5*time.Minute))
		last = now
		if tokens >= 1 {
			tokens--
			all = append(all, now)
		}
	}
	return all
}

// TestAFailureUnderTheLimitOfAKubelet goes on until it ends: each kubelet writes one Event in 5 minutes after the
// first 25, which is one in up to 5 minutes and a period.
func TestAFailureUnderTheLimitOfAKubelet(t *testing.T) {
	for _, tt := range []struct {
		what   string
		period time.Duration
	}{
		{"!Unhealthy{app}: Readiness probe failed: m", 10 * time.Second},
		{"!Unhealthy{app}: Readiness probe failed: m", 30 * time.Second},
		{"!Unhealthy{app}: Readiness probe failed: m", time.Minute},
		{"!Unhealthy{app}: Readiness probe failed: m", 90 * time.Second},
		{"!Unhealthy{app}: Readiness probe failed: m", 2 * time.Minute},
		{`!FailedMount: MountVolume.SetUp failed for volume "c" : configmap "c" not found`, 122 * time.Second},
	} {
		t.Run(tt.what[:8]+" each "+tt.period.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := startWatching(t, nil, nil)
				time.Sleep(450 * time.Millisecond) // The looks are not in step with the kubelet.
				epoch := time.Now()
				for i, at := range limited(tt.period, 6*time.Hour) {
					head, message, _ := strings.Cut(tt.what, ": ")
					line := fmt.Sprintf("%s Pod/web-aaa-1 %s node=node-1 event=u new=1 time=%s x%d/0s: %s", at+300*time.Millisecond, head, (at+450*time.Millisecond).Truncate(time.Second)-450*time.Millisecond, i+1, message)
					r := story.Records(line)[0]
					time.Sleep(time.Until(epoch.Add(r.At)))
					w.consume(t, r.Logs(epoch))
				}
				ended := 0
				for _, r := range w.of("k8s.problem") {
					if r.text("k8s.problem.state") == "ended" {
						ended++
					}
				}
				w.stop(t)
				assert.Zero(t, ended, "no record reports its end")
			})
		})
	}
}
