// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hostile are environments with content that no well-behaved program writes. The first producer's
// events are ordinary: all promises hold for them.
var hostile = []requirement{
	{
		name: "events about objects without UID, and the process ends",
		plan: plain(storageAlone, restart(60, 70), killReplica(0, 100, 110)).with(odd(OddObjects, "without UID")).
			with(odd(OddObjects, "component status")),
	}, {
		name: "a window holds an event of the year 10000, and the process is killed",
		plan: plain(storageAlone, killReplica(0, 60, 70), restart(100, 110)).with(dedup).with(odd(OddTimes, "bare")),
	}, {
		name: "500 events about an object with an owner of 200 KiB",
		plan: plain(storageAlone, restart(60, 70)).with(odd(OddObjects, "long owner")).with(often),
	}, {
		name: "500 events about an object with many annotations",
		plan: plain(storageAlone, restart(60, 70)).with(odd(OddObjects, manyAnnotations)).with(often),
	}, {
		name: "long texts in windows, and the process is killed",
		plan: plain(storageAlone, killReplica(0, 60, 70)).with(dedup).with(odd(LongTexts, "deployment")),
	}, {
		name: "series with long reasons, types and kinds",
		plan: plain(storageAlone, restart(100, 110)),
		scenario: Scenario{Act: func(e *environment) {
			time.Sleep(20 * time.Second)
			for i := range 60 {
				long := fmt.Sprint(i, strings.Repeat("é", 10<<10))
				e.writeByHand(fmt.Sprint("long-", i), func(ev *corev1.Event) {
					ev.Reason, ev.Type, ev.InvolvedObject.Kind = long, long, long
				})
			}
		}},
	}, {
		name: "3,000 series with texts of 1 KiB",
		plan: plain(neither),
		scenario: Scenario{Act: func(e *environment) {
			time.Sleep(20 * time.Second)
			for i := range 3000 {
				e.writeByHand(fmt.Sprint("series-", i), func(ev *corev1.Event) {
					ev.Reason = fmt.Sprint(i, strings.Repeat("x", 1000))
				})
			}
		}},
	}, {
		name: "two reasons, types and kinds that are the same in valid UTF-8",
		plan: plain(storageAlone, restart(100, 110)),
		scenario: Scenario{Act: func(e *environment) {
			for i, text := range []string{"x\xff", "x\xfe", "x\xff\xff", "x\uFFFD"} {
				time.Sleep(10 * time.Second)
				e.writeByHand(fmt.Sprint("invalid-", i), func(ev *corev1.Event) {
					ev.Reason, ev.Type, ev.InvolvedObject.Kind = text, text, text
					ev.LastTimestamp = metav1.Now()
				})
			}
		}},
	},
}

// odd adds a producer of events with the oddity, about a pod of an app of the kind.
func odd(oddity Oddity, kind string) func(*Plan) {
	return func(p *Plan) {
		p.addOdd(oddity, kind, 0)
		last := &p.Producers[len(p.Producers)-1]
		last.Style, last.Start, last.Gap, last.Writes = OldRecorder, 20*time.Second, 4*time.Second, 35
		last.Deleted, last.Pod, last.Size = false, 0, 20
	}
}

// often lets the odd producer write 500 events within a few seconds.
func often(p *Plan) {
	last := &p.Producers[len(p.Producers)-1]
	last.Style, last.Start, last.Gap, last.Writes = HandMade, 40*time.Second, 5*time.Millisecond, 500
}
