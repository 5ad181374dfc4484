// SPDX-License-Identifier: Apache-2.0

package incident_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	records "github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// usual has 10,000 facts of 1,000 workloads, each with an update whose pod fails. Times are spread
// over half an hour.
func usual(add func(string)) {
	for i := range 1000 {
		web, at := fmt.Sprintf("web%d", i), time.Duration(i)*time.Second
		line := func(after time.Duration, format string, args ...any) {
			add(fmt.Sprintf("%s ", at+after) + fmt.Sprintf(format, args...))
		}
		set := fmt.Sprintf(" namespace=ns-%d node=node-%d", i%20, i%50)
		line(0, "Deployment/%s ScalingReplicaSet%s: Scaled up replica set %s-aaa from 0 to 1", web, set, web)
		line(0, "Pod/%s-aaa-1 Scheduled%s: Successfully assigned shop/%s-aaa-1 to node-1", web, set, web)
		line(2*time.Second, "Pod/%s-aaa-1 Pulled{app}%s: Container image \"app:1\" already present on machine", web, set)
		line(3*time.Second, "Pod/%s-aaa-1 Started{app}%s: Started container app", web, set)
		line(10*time.Minute, "Deployment/%s ScalingReplicaSet%s: Scaled up replica set %s-bbb from 0 to 1", web, set, web)
		line(10*time.Minute, "Pod/%s-bbb-1 Scheduled%s: Successfully assigned shop/%s-bbb-1 to node-1", web, set, web)
		line(10*time.Minute+2*time.Second, "Pod/%s-bbb-1 Pulled{app}%s: Container image \"app:2\" already present on machine", web, set)
		line(10*time.Minute+3*time.Second, "Pod/%s-bbb-1 Started{app}%s: Started container app", web, set)
		line(10*time.Minute+9*time.Second, "Pod/%s-bbb-1 !BackOff{app}%s: Back-off restarting failed container app in pod", web, set)
		line(10*time.Minute+30*time.Second, "Pod/%s-bbb-1 !Unhealthy{app}%s: Readiness probe failed", web, set)
	}
}

// attacks are what one namespace can write to make looks expensive.
var attacks = map[string]func(add func(string)){
	"none": func(func(string)) {},
	"probes and starts": func(add func(string)) {
		for moment := range 32 {
			for i := range 990 {
				at := time.Duration(moment)*time.Minute + time.Duration(i)*50*time.Millisecond
				add(fmt.Sprintf("%s Pod/evil-aaa-1 !Unhealthy{app} x%d namespace=evil event=u%d: failed", at, moment+1, i))
				add(fmt.Sprintf("%s Pod/evil-aaa-1 Started{app} x%d namespace=evil event=s%d: started", at, moment+1, i))
			}
		}
	},
	"deployments that name others": func(add func(string)) {
		for i := range 5000 {
			for k := range 8 {
				name := fmt.Sprintf("%s Kustomization/k%d Progressing namespace=evil event=k%d-%d: ", time.Duration(k)*time.Minute+10*time.Minute, i, i, k)
				add(name + "Deployment/ns-1/web1 configured")
			}
		}
	},
	"pull failures that recover": func(add func(string)) {
		for moment := range 32 {
			for i := range 990 {
				at := time.Duration(moment)*time.Minute + time.Duration(i)*50*time.Millisecond
				add(fmt.Sprintf("%s Pod/evil-aaa-1 !Failed{app} x%d namespace=evil event=u%d: Failed to pull image \"x\": no such host", at, moment+1, i))
				add(fmt.Sprintf("%s Pod/evil-aaa-1 Pulled{app} x%d namespace=evil event=s%d: pulled", at, moment+1, i))
			}
		}
	},
	"reasons": func(add func(string)) {
		for w := range 26 {
			for i := range 1900 {
				add(fmt.Sprintf("10m Widget/w%d !R%d namespace=evil: failed", w, i))
			}
		}
	},
	"rollouts": func(add func(string)) {
		for i := range 250 {
			at := time.Duration(i) * 5 * time.Second
			add(fmt.Sprintf("%s Deployment/evil ScalingReplicaSet namespace=evil event=r%d: Scaled up replica set evil-r%d from 0 to 60", at, i, i))
			for pod := range 60 {
				add(fmt.Sprintf("%s Pod/evil-r%d-%d Started{app} namespace=evil: started", at+time.Second, i, pod))
			}
		}
	},
	"revisions": func(add func(string)) {
		for i := range 4000 {
			add(fmt.Sprintf("10m Deployment/evil ScalingReplicaSet namespace=evil event=r%[1]d: Scaled up replica set evil-r%[1]d from 0 to 3", i))
		}
	},
	"workloads of one name": func(add func(string)) {
		for i := range 4000 {
			add(fmt.Sprintf("10m Widget/evil !Odd namespace=evil uid=u%[1]d topuid=u%[1]d event=%[1]d: failed", i))
		}
	},
	"a large workload": func(add func(string)) {
		for i := range 1900 {
			at := time.Duration(i) * time.Second / 2
			set := fmt.Sprintf(" namespace=evil node=node-%d", i)
			add(fmt.Sprintf("%s Pod/evil-aaa-%d Scheduled%s: Successfully assigned evil/evil-aaa-%d to node-%d", at, i, set, i, i))
			add(fmt.Sprintf("%s Pod/evil-aaa-%d Started{c%d}%s: started", at, i, i, set))
			add(fmt.Sprintf("%s Pod/evil-aaa-%d !BackOff{c%d}%s: Back-off restarting failed container", at+time.Second, i, i, set))
			add(fmt.Sprintf("%s Pod/evil-aaa-%d !Unhealthy{c%d}%s: failed", at+2*time.Minute, i, i, set))
			add(fmt.Sprintf("%s Pod/evil-aaa-%d !Evicted%s: no room", at+3*time.Minute, i, set))
		}
	},
	"evictions": func(add func(string)) {
		for i := range 1900 {
			add(fmt.Sprintf("%s Pod/evil-aaa-%d !Evicted namespace=evil node=node-%d: no room", time.Duration(i)*time.Second, i, i))
			add(fmt.Sprintf("%s Pod/evil-bbb-%d !FailedScheduling namespace=evil: no room", time.Duration(i)*time.Second, i))
		}
	},
	"scalings": func(add func(string)) {
		for moment := range 32 {
			for i := range 1900 {
				at := time.Duration(moment)*time.Minute + time.Duration(i)*30*time.Millisecond
				add(fmt.Sprintf("%s Deployment/evil ScalingReplicaSet x%d namespace=evil event=r%d: Scaled up replica set evil-r%d from 1 to 3", at, moment+1, i, i%200))
			}
		}
	},
}

func benchmarkModel(attack string) *incident.Model {
	m, all := incident.NewModel(began.Add(-incident.Horizon)), plog.NewLogs()
	add := func(line string) {
		for _, r := range records.Records(line) {
			r.Logs(began).ResourceLogs().MoveAndAppendTo(all.ResourceLogs())
		}
	}
	usual(add)
	attacks[attack](add)
	now := began.Add(35 * time.Minute)
	m.AddFacts(incident.FactsOf(record.Read(all), now, false), now)
	return m
}

// cpuTime is that of the process. Other processes make a look take longer, and cost nothing.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkLook is what an answer costs with nothing that an earlier one has computed.
func BenchmarkLook(b *testing.B) {
	for attack := range attacks {
		m := benchmarkModel(attack)
		b.Run(attack, func(b *testing.B) {
			before := cpuTime()
			for i := range b.N {
				now := began.Add(35*time.Minute + time.Duration(i))
				at := m.At(context.Background(), now, incident.Query{})
				at.Problems()
				at.Changes()
			}
			b.ReportMetric(float64((cpuTime()-before).Milliseconds())/float64(b.N), "ms-cpu/op")
		})
	}
}
