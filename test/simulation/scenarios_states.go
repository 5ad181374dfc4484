// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ofStates are environments for rare states of the receiver that random ones do not reach.
var ofStates = []requirement{
	{
		name:    "history is compacted between two pages of a list",
		reaches: "a list expires between two pages",
		plan: plain(storageAlone, ofResource(fault(APISlow, 60, 140), "events", 0).slowBy(14*time.Second), killReplica(0, 62, 64)).
			with(func(p *Plan) { p.Existing, p.OldServer, p.CompactAfter = 4200, true, 5*time.Second }),
	}, {
		name: "the pipeline rejects while a list has more bytes than the queue",
		plan: plain(storageAlone, killReplica(0, 50, 100), fault(PipelineRejects, 95, 160)).with(compacted).
			with(lasting(5 * time.Minute)),
		scenario: Scenario{Act: func(e *environment) {
			time.Sleep(30 * time.Second)
			for i := range 120 {
				e.writeByHand(fmt.Sprint("large-", i), func(ev *corev1.Event) { ev.Message = strings.Repeat("x", 60<<10) })
			}
		}},
	}, {
		name: "one namespace is forbidden and then another one, each when all connections are cut",
		plan: plain(storageAlone, forbidden(namespace(0), 60, 70), forbidden(namespace(1), 110, 120)).with(twoNamespaces),
		scenario: Scenario{Act: func(e *environment) {
			time.Sleep(61 * time.Second)
			e.server.BreakConnections("")
			time.Sleep(50 * time.Second)
			e.server.BreakConnections("")
		}},
	}, {
		name: "etcd is restored from a backup, with two namespaces",
		plan: plain(storageAlone, backup(60, 30*time.Second)).with(long).with(twoNamespaces),
	}, {
		name: "the elector leads before the receiver starts, and later ends the term of another component for long",
		plan: plain(electorAlone, mayNotRenew(60, 100).of(0)).with(func(p *Plan) {
			p.SlowStart, p.SlowStop = 2*time.Second, 25*time.Second
		}),
	},
}

// ofResource lets a fault concern requests for one resource.
func ofResource(f Fault, resource string, status int) Fault {
	f.Resource, f.Status = resource, status
	return f
}

func mayNotRenew(from, to int) Fault {
	f := fault(LeaseForbidden, from, to)
	f.Verb = "update"
	return f
}

// forbidden lets the API server refuse the events of a namespace.
func forbidden(namespace string, from, to int) Fault {
	f := ofResource(fault(APIRefuses, from, to), "events", http.StatusForbidden)
	f.Namespace = namespace
	return f
}
