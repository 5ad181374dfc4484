// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/deadwebhook"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/otlpsink"
)

const (
	hangTail    = "healthy records: latency, 99th percentile"
	hangRatio   = "healthy records: latency, 99th percentile, over that without such workloads"
	hangUnowned = "healthy records without all owners"
	hangKnown   = "records of such workloads without the known part of the chain"
	hangLatency = "records of such workloads: latency, 99th percentile"
)

// deadEvery is how often each workload whose chain cannot be read has an event.
const deadEvery = time.Second

// phase is one kind of such workloads, or none.
type phase struct {
	suffix string // of its figures
	group  string // of the kind; empty: there are no such workloads
	url    string // of the webhook
	first  int    // the place of the first pod of such workloads among the cluster's
	pods   int
}

func runHanging(ctx context.Context, b *benchmark) (r result, err error) {
	setups, err := b.setups(direct)
	if err != nil {
		return r, err
	}
	silent, err := deadwebhook.StartSilent()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, silent.Close()) }()
	phases := []phase{
		{suffix: ", without such workloads"},
		{suffix: ", the webhook never answers", group: "silent.example.com", url: silent.URL},
	}
	kube, err := newCluster(ctx, b.controlPlane, b.healthy)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, kube.Stop()) }()
	slices.SortStableFunc(kube.pods, func(a, b corev1.ObjectReference) int { return cmp.Compare(a.Namespace, b.Namespace) })
	var figures []figure
	for i := range phases {
		figures = append(figures, hangingFigures(phases[i])...)
		if err := phases[i].deploy(ctx, kube, b.dead); err != nil {
			return r, err
		}
	}
	m := measurements{}
	for range b.rounds {
		var without float64
		for _, p := range phases {
			err := m.interleave(ctx, b, 1, setups, p.suffix, func(ctx context.Context, c runner) (values, error) {
				v, err := b.hangingOnce(ctx, kube, c, p)
				if p.group == "" {
					without = v[hangTail]
				} else {
					v[hangRatio] = v[hangTail] / without
				}
				return v, err
			})
			if err != nil {
				return r, err
			}
		}
	}
	r.Groups = m.groups(setups, func(string) []figure { return figures })
	r.Text = fmt.Sprintf(`A real API server has %s pods of %d Deployments in %d namespaces, none of which the Collector knows. Each has one
event, %s a second in all, namespace after namespace. In addition, there are %d workloads whose Deployments are owned by a custom
resource. The API server cannot convert it to the version that the owner reference names, because its conversion webhook does
not work. Each of these workloads has an event every %s.`,
		thousands(b.healthy.pods), b.healthy.deployments, b.healthy.namespaces, thousands(b.healthy.perSecond), b.dead, deadEvery)
	r.Notes = []string{
		"*Healthy* records are those about all other pods.",
		"The webhook accepts connections and never answers, so an API server answers after 10 s.",
	}
	return r, nil
}

func hangingFigures(p phase) []figure {
	return suffixed([]figure{
		{Name: hangUnowned, Goal: oursAtMost(0)},
		{Name: hangTail, Unit: "ms"},
		{Name: hangRatio, Goal: oursAtMost(1.2)},
		{Name: hangKnown, Goal: oursAtMost(0)},
		{Name: hangLatency, Unit: "ms"},
	}, p.suffix)
}

// deploy makes Deployments with a pod each, in namespaces of their own. Custom resources of the group
// own them.
func (p *phase) deploy(ctx context.Context, kube *cluster, workloads int) error {
	if p.group == "" {
		return nil
	}
	client, err := dynamic.NewForConfig(kube.RESTConfig())
	if err != nil {
		return err
	}
	kind, err := deadwebhook.Define(ctx, client, p.group, p.url)
	if err != nil {
		return err
	}
	prefix, _, _ := strings.Cut(p.group, ".")
	p.first, p.pods = len(kube.pods), workloads
	kube.pods = append(kube.pods, make([]corev1.ObjectReference, workloads)...)
	return inParallel(workloads, func(i int) error {
		name := fmt.Sprint(prefix, "-", i)
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := kube.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return err
		}
		release, err := kind.Create(ctx, name, "release")
		if err != nil {
			return err
		}
		controller := true
		return kube.deploy(ctx, name, name, 0, kube.pods[p.first+i:p.first+i+1], metav1.OwnerReference{
			APIVersion: release.GetAPIVersion(), Kind: release.GetKind(), Name: release.GetName(), UID: release.GetUID(), Controller: &controller,
		})
	})
}

// hangingOnce measures one Collector.
func (b *benchmark) hangingOnce(ctx context.Context, kube *cluster, c runner, p phase) (values, error) {
	return kube.onRig(c, func(r *rig) (values, error) {
		r.sink.owners = func(resource, log pcommon.Map) bool { return isOwned(resource, log) || hasKnownPart(resource, log) }
		if err := r.settle(ctx); err != nil {
			return nil, err
		}
		changes := steady(b.healthy)
		end := changes[len(changes)-1].at
		for i := 0; p.pods > 0 && time.Duration(i)*deadEvery/time.Duration(p.pods) < end; i++ {
			changes = append(changes, change{at: time.Duration(i) * deadEvery / time.Duration(p.pods), pod: p.first + i%p.pods})
		}
		slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
		if _, err := r.measure(ctx, changes, 0); err != nil {
			return nil, err
		}
		isHealthy := func(event string) bool { return strings.HasPrefix(event, "app-") }
		healthy, dead := r.sink.summaryOf(isHealthy), r.sink.summaryOf(func(event string) bool { return !isHealthy(event) })
		v := values{hangUnowned: float64(healthy.sent - healthy.owned), hangTail: healthy.latency(0.99)}
		if p.group != "" {
			v[hangKnown], v[hangLatency] = float64(dead.sent-dead.owned), dead.latency(0.99)
		}
		return v, nil
	})
}

// hasKnownPart reports whether a record names all owners up to the custom resource that cannot be
// read, and says that this is not all.
func hasKnownPart(resource, log pcommon.Map) bool {
	chain, found := resource.Get("k8s.owner.chain")
	resolution := otlpsink.Text(log, "k8s.owner.resolution")
	return found && chain.Slice().Len() == 3 && strings.Contains(chain.AsString(), "release.") &&
		(resolution == "timeout" || resolution == "unavailable")
}
