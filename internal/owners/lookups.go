// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// lookups are the distinct objects that a batch needs, and their chains once they are resolved.
type lookups struct {
	uses       extract.Uses
	references []resolver.Reference
	chains     []resolver.Chain
	named      []resolver.Reference // Namespaces and Nodes, whose owners are not needed
	objects    []*resolver.Object
	needs      []needs // one for each observation

	index, indexOfNamed map[resolver.Reference]int
}

// needs are the objects that one observation needs, as indexes of references and of named, or none.
type needs struct {
	involved, namespace, node int
	container                 string // empty if tags do not depend on it
}

const none = -1

// newLookups names each object once. It names Namespaces and Nodes only if rules use them.
func newLookups(observations []observation.Observation, uses extract.Uses) *lookups {
	l := &lookups{
		uses:       uses,
		references: make([]resolver.Reference, 0, len(observations)),
		needs:      make([]needs, len(observations)),
		index:      make(map[resolver.Reference]int, len(observations)),

		indexOfNamed: map[resolver.Reference]int{},
	}
	for i := range observations {
		ev := observations[i].Event
		involved := event.Involved(ev)
		n := needs{involved: add(l.index, &l.references, involved), namespace: none, node: none}
		if uses.Namespace {
			n.namespace = l.addNamed("Namespace", ev.Namespace)
		}
		if uses.Node {
			n.node = l.addNamed("Node", nodeOf(ev, involved))
		}
		if uses.Container {
			n.container = event.ContainerName(ev)
		}
		l.needs[i] = n
	}
	return l
}

// resolve looks everything up. The resolver requests together what two calls at the same time need.
func (l *lookups) resolve(ctx context.Context, r *resolver.Resolver) {
	var named sync.WaitGroup
	if len(l.named) > 0 {
		named.Go(func() { l.objects = r.Objects(ctx, l.named) })
	}
	l.chains = r.Resolve(ctx, l.references)
	named.Wait()
}

// add returns where a reference is in a list that names each object once.
func add(index map[resolver.Reference]int, references *[]resolver.Reference, ref resolver.Reference) int {
	n, ok := index[ref]
	if !ok {
		n = len(*references)
		index[ref] = n
		*references = append(*references, ref)
	}
	return n
}

// addNamed adds an object of a kind of Kubernetes itself, unless the name is empty.
func (l *lookups) addNamed(kind, name string) int {
	if name == "" {
		return none
	}
	return add(l.indexOfNamed, &l.named, resolver.Reference{APIVersion: "v1", Kind: kind, Name: name})
}

// nodeOf returns the name of the event's Node, unless this is the involved object itself.
func nodeOf(ev *corev1.Event, involved resolver.Reference) string {
	name, isInvolved := event.Node(ev, []*resolver.Object{involved.Object()})
	if isInvolved != nil {
		return ""
	}
	return name
}

// chain returns the chain of an observation's involved object, and what its tags depend on. Of the
// object of a foreign event, nothing is used: the event counts in the namespace where it is stored.
func (l *lookups) chain(n needs, ev *corev1.Event) (resolver.Chain, needs) {
	chain := l.chains[n.involved]
	if !event.IsForeign(ev, chain.Objects[0]) {
		return chain, n
	}
	stored := &resolver.Object{Namespace: ev.Namespace}
	return resolver.Chain{Objects: []*resolver.Object{stored}, Resolution: observation.Foreign},
		needs{involved: none, namespace: n.namespace, node: none}
}

// sources returns the objects that an observation's tags are taken from.
func (l *lookups) sources(n needs, chain []*resolver.Object, ev *corev1.Event) extract.Sources {
	from := extract.Sources{Chain: chain, Known: chain[0].Found(), Container: n.container}
	if l.uses.Namespace {
		from.Namespace = l.namespace(n, chain[0])
	}
	if l.uses.Node {
		from.Node = l.node(n, chain, ev)
	}
	if l.uses.Event {
		from.Event = &resolver.Object{APIVersion: "v1", Kind: "Event", Labels: ev.Labels, Annotations: ev.Annotations}
	}
	return from
}

// namespace returns the Namespace of the involved object. A Namespace is its own.
func (l *lookups) namespace(n needs, involved *resolver.Object) *resolver.Object {
	if involved.GroupKind() == semconv.Namespace {
		return involved
	}
	if found := l.found(n.namespace); found != nil && found.Name == involved.Namespace {
		return found
	}
	return nil
}

// node returns the Node that k8s.node.name names.
func (l *lookups) node(n needs, chain []*resolver.Object, ev *corev1.Event) *resolver.Object {
	if _, onChain := event.Node(ev, chain); onChain != nil {
		return onChain
	}
	return l.found(n.node)
}

// found returns what was looked up. An object that was not found has neither labels nor
// annotations.
func (l *lookups) found(named int) *resolver.Object {
	if named == none {
		return nil
	}
	return l.objects[named]
}
