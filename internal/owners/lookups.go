// SPDX-License-Identifier: Apache-2.0

package owners

import (
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
	needs      []needs // one for each observation

	index map[resolver.Reference]int
}

// needs are the objects that one observation needs, as indexes of references, or none.
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
	}
	for i := range observations {
		ev := observations[i].Event
		involved := event.Involved(ev)
		n := needs{involved: l.add(involved), namespace: none, node: none}
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

func (l *lookups) add(ref resolver.Reference) int {
	n, ok := l.index[ref]
	if !ok {
		n = len(l.references)
		l.index[ref] = n
		l.references = append(l.references, ref)
	}
	return n
}

// addNamed adds an object of a kind of Kubernetes itself, unless the name is empty.
func (l *lookups) addNamed(kind, name string) int {
	if name == "" {
		return none
	}
	return l.add(resolver.Reference{APIVersion: "v1", Kind: kind, Name: name, ObjectOnly: true})
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
	name, onChain := event.Node(ev, chain)
	if onChain != nil {
		return onChain
	}
	if found := l.found(n.node); found != nil && found.Name == name {
		return found
	}
	return nil
}

// found returns what was looked up. An object that was not found has neither labels nor
// annotations.
func (l *lookups) found(reference int) *resolver.Object {
	if reference == none {
		return nil
	}
	return l.chains[reference].Objects[0]
}
