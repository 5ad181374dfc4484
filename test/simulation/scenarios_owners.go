// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ofOwners are environments that make owners hard to find.
var ofOwners = []requirement{
	{
		name:     "400 namespaces, cold, 50 ms away",
		plan:     manyApps("deployment", 400, 400).with(farAway),
		scenario: Scenario{Check: checkCheap},
	}, {
		name:     "1,000 namespaces, 50 ms away",
		plan:     manyApps("deployment", 1000, 1000).with(farAway),
		scenario: Scenario{Check: checkCheap},
	}, {
		name: "a few events in a cluster with 1,000 namespaces",
		plan: manyApps("deployment", 1000, 1000).with(farAway).with(func(p *Plan) {
			p.Producers = p.Producers[:5]
		}),
		scenario: Scenario{Act: createPods, Check: checkCheap},
	}, {
		name: "requests of one kind hang",
		plan: manyApps("rollout", 40, 40).with(func(p *Plan) {
			hang := fault(APIHangs, 20, 150)
			hang.Resource = rollouts.Resource
			p.Faults = []Fault{hang}
			for i := range p.Producers {
				p.Producers[i].Gap, p.Producers[i].Writes = 25*time.Second, 5
			}
			p.Producers[0].Style, p.Producers[0].Start = Kubelet, 32*time.Second
		}),
		scenario: Scenario{Check: checkFewHang},
	}, {
		name: "events refer to objects of invented API groups",
		plan: manyApps("invented", 300, 3).with(near).with(func(p *Plan) {
			p.Producers[0].Start = 31 * time.Second
		}),
		scenario: Scenario{Check: checkCheap},
	}, {
		name: "a kubelet's event of a static pod",
		plan: manyApps("static", 1, 1),
	}, {
		name:     "events of a Node that was created again",
		plan:     manyApps("node", 1, 1).with(noProducers),
		scenario: Scenario{Act: createNodeAgain, Check: checkNodeAgain},
	}, {
		name: "the watch cache still has the pod that bore the name before",
		plan: manyApps("replaced", 1, 1).with(func(p *Plan) {
			p.CacheLag = 2 * time.Second
			before := p.Producers[1]
			after, another := before, before
			after.Start, after.Pod = 40*time.Second, 1
			// With two that are unknown, pods are listed.
			another.Start, another.App, another.Pod = 40*time.Second, 0, 1
			p.Producers = []ProducerPlan{before, after, another}
		}),
	},
}

func near(p *Plan) { p.Latency = 2 * time.Millisecond }

func farAway(p *Plan) { p.Latency = 50 * time.Millisecond }

// manyApps is a plan with n apps of the kind in that many namespaces, each with one event at once.
func manyApps(kind string, n, namespaces int) Plan {
	p := plain(neither)
	p.Namespaces = namespaces
	for i := range n {
		p.Apps = append(p.Apps, AppPlan{Kind: kind, Namespace: i % namespaces, LabelAt: 1})
		one := writes(Kubelet, "Failed", 30*time.Second, time.Second, 1)
		one.App = i + 1
		p.Producers = append(p.Producers, one)
	}
	return p
}

// createPods creates a few more pods of each app, which have no events.
func createPods(e *environment) {
	for _, a := range e.apps {
		for i := range 3 {
			a.subject(i).create(e.server)
		}
	}
}

// checkCheap checks the price of a cold start: three requests for each namespace and 20, and five
// objects for each that is needed.
func checkCheap(e *environment) {
	namespaces, needed := map[string]bool{}, map[*object]bool{}
	for _, p := range e.producers {
		namespaces[p.subject.namespace] = true
		chain, _ := p.subject.chain(e.plan.MaxDepth)
		for _, o := range chain {
			needed[o] = true
		}
	}
	for _, p := range e.allProcesses() {
		p.mu.Lock()
		requests, read := p.lookups(), p.read
		p.mu.Unlock()
		if most := 3*len(namespaces) + 20; requests > most {
			e.violate(boundedRequests, "", "%s made %d requests for owners in %d namespaces, more "+
				"than %d", p.name, requests, len(namespaces), most)
		}
		if most := 5 * len(needed); read > most {
			e.violate(boundedRequests, "", "%s read %d objects, more than %d", p.name, read, most)
		}
	}
}

// checkFewHang checks that a kind that hangs is not requested again and again. Each of its objects
// may be requested before this is known, and after that one in five seconds: so in the second
// minute, which the fault covers.
func checkFewHang(e *environment) {
	kind, most := e.plan.Faults[0].Resource, int(time.Minute/(5*time.Second))+1
	for _, p := range e.allProcesses() {
		p.mu.Lock()
		n := p.requests[1].objects[kind]
		p.mu.Unlock()
		if n > most {
			e.violate(boundedRequests, "", "%s requested %s %d times in a minute in which they hung, more than %d",
				p.name, kind, n, most)
		}
	}
}

const secondNode = "uid-of-the-second-node"

// createNodeAgain writes events of a Node under every UID that producers use: kubelets up to
// Kubernetes 1.36 write the name, later ones the UID, and an event may be older than the Node.
func createNodeAgain(e *environment) {
	node := e.apps[1].owner
	node.create(e.server)
	report := func(name string, uid types.UID) {
		e.writeAbout(node, name, func(ev *corev1.Event) {
			ev.Namespace, ev.InvolvedObject.UID = metav1.NamespaceDefault, uid
			ev.Source = corev1.EventSource{Component: "kubelet", Host: node.name}
		})
	}
	time.Sleep(30 * time.Second)
	report("before", node.uid)
	time.Sleep(30 * time.Second)
	node.delete(e.server)
	second := e.apps[1].newObject(node.kind, node.name)
	second.uid = secondNode
	second.create(e.server)
	e.apps[1].objects = nil      // checkNodeAgain knows which of them a record has to name.
	time.Sleep(15 * time.Minute) // longer than cache_ttl
	for i, uid := range []types.UID{types.UID(node.name), second.uid, node.uid} {
		report(fmt.Sprint("after-", i), uid)
	}
}

// checkNodeAgain checks that each record names the Node that existed.
func checkNodeAgain(e *environment) {
	all := records(e.exporters[0].all())
	for _, r := range all {
		want := string(e.apps[1].owner.uid)
		if text(r.log.Attributes(), "k8s.event.name") != "before" {
			want = secondNode
		}
		if got := text(r.resource, "k8s.node.uid"); got != want || r.resolution() != "complete" {
			e.violate(ownersRight, "", "%s names the Node %q, not %q, with resolution %s",
				r.uid, got, want, r.resolution())
		}
	}
	if len(all) != 4 {
		e.violate(nothingLost, "", "there are %d records of 4", len(all))
	}
}
