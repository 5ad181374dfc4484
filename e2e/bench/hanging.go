// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/deadwebhook"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/otlpsink"
)

var hangingScenario = scenario{name: "hanging", title: "Next to a kind that hangs", run: runHanging}

const (
	hangComplete = "healthy records with all owners"
	hangHalf     = "healthy records: latency, median"
	hangTail     = "healthy records: latency, 99th percentile"
	hangRatio    = "healthy records: latency, 99th percentile, over that without such workloads"
	hangKnown    = "records of such workloads with the known part of the chain"
	hangLatency  = "records of such workloads: latency, 99th percentile"
	hangCPU      = "processor time for a healthy record"
)

// hanging is how much the scenario hanging does.
type hanging struct {
	healthy   size
	workloads int // whose chains end in an object that cannot be read
	every     time.Duration
}

// In fullHanging, a namespace that the Collector has not heard of has its turn every 100 ms.
var fullHanging = hanging{
	healthy: size{
		namespaces: 100, deployments: 800, pods: 10_000 - 10_000%800, retired: 1,
		observations: 10_000 - 10_000%800, perSecond: 1000,
	},
	workloads: 30, every: time.Second,
}

// phase is one kind of such workloads, or none.
type phase struct {
	suffix string // of its figures
	group  string // of the kind; empty: there are no such workloads
	url    string // of the webhook
}

func runHanging(ctx context.Context, b *benchmark) (r result, err error) {
	silent, err := deadwebhook.StartSilent()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, silent.Close()) }()
	phases := []phase{
		{suffix: ", without such workloads"},
		{suffix: ", the webhook refuses connections", group: "refusing.example.com", url: deadwebhook.Refusing},
		{suffix: ", the webhook never answers", group: "silent.example.com", url: silent.URL},
	}
	kube, err := newCluster(ctx, b.controlPlane, b.hanging.healthy)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, kube.Stop()) }()
	h, err := b.deployHanging(ctx, kube, phases)
	if err != nil {
		return r, err
	}
	r.Figures, err = b.hangingRounds(ctx, h, phases)
	r.Text = fmt.Sprintf(`A real API server with %d pods of %d Deployments in %d namespaces, none of which the Collector knows. Each has one event,
%d a second in all, namespace after namespace. In addition, there are %d workloads whose Deployments are owned by a custom resource.
The API server cannot convert it to the version that the owner reference names, because its conversion webhook does not work. Each
of these workloads has an event every %s. The Collector has the default settings, `+"`file_storage`"+`, no batch processor and no exporter queue.`,
		len(h.kube.pods), b.hanging.healthy.deployments, b.hanging.healthy.namespaces, b.hanging.healthy.perSecond, b.hanging.workloads, b.hanging.every)
	r.Notes = []string{
		"*Healthy* records are those about all other pods.",
		"An API server answers at once when a webhook refuses connections, and after 10 s when it never answers.",
	}
	return r, err
}

// hangingCluster has healthy workloads, and others of each phase.
type hangingCluster struct {
	kube *cluster
	dead map[string][]corev1.ObjectReference // pods, by group
}

func (b *benchmark) deployHanging(ctx context.Context, kube *cluster, phases []phase) (h *hangingCluster, err error) {
	slices.SortStableFunc(kube.pods, func(a, b corev1.ObjectReference) int { return cmp.Compare(a.Namespace, b.Namespace) })
	h = &hangingCluster{kube: kube, dead: map[string][]corev1.ObjectReference{}}
	for _, p := range phases {
		if p.group == "" {
			continue
		}
		if h.dead[p.group], err = kube.deployDead(ctx, p.group, p.url, b.hanging.workloads); err != nil {
			return nil, fmt.Errorf("make the workloads of %s: %w", p.group, err)
		}
	}
	return h, nil
}

// deployDead makes Deployments with a pod each, in namespaces of their own. Custom resources of the
// group own them.
func (c *cluster) deployDead(ctx context.Context, group, url string, workloads int) ([]corev1.ObjectReference, error) {
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, err
	}
	kind, err := deadwebhook.Define(ctx, client, group, url)
	if err != nil {
		return nil, err
	}
	prefix, _, _ := strings.Cut(group, ".")
	pods := make([]corev1.ObjectReference, workloads)
	return pods, inParallel(workloads, func(i int) error {
		ns := fmt.Sprint(prefix, "-", i)
		if _, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
			return err
		}
		release, err := kind.Create(ctx, ns, "release", nil)
		if err != nil {
			return err
		}
		controller := true
		return c.deploy(ctx, ns, fmt.Sprint(prefix, "-", i), 0, pods[i:i+1], metav1.OwnerReference{
			APIVersion: release.GetAPIVersion(), Kind: release.GetKind(), Name: release.GetName(), UID: release.GetUID(), Controller: &controller,
		})
	})
}

func hangingFigures(phases []phase) (figures []figure) {
	for _, p := range phases {
		for _, f := range []figure{
			{Name: hangComplete, Unit: "%", Goal: oursAtLeast(100)},
			{Name: hangHalf, Unit: "ms"},
			{Name: hangTail, Unit: "ms"},
			{Name: hangRatio, Goal: oursAtMost(1.2)},
			{Name: hangKnown, Unit: "%", Goal: oursAtLeast(100)},
			{Name: hangLatency, Unit: "ms"},
			{Name: hangCPU, Unit: "µs"},
			{Name: peakRSS, Unit: "MiB"},
		} {
			f.Name += p.suffix
			figures = append(figures, f)
		}
	}
	return figures
}

// hangingRounds measures the phases in turn, round after round.
func (b *benchmark) hangingRounds(ctx context.Context, h *hangingCluster, phases []phase) ([]figure, error) {
	figures := hangingFigures(phases)
	for round := range b.rounds {
		var without float64
		for _, p := range phases {
			v, err := b.hangingOnce(ctx, h, p)
			if err != nil {
				return nil, fmt.Errorf("round %d%s: %w", round+1, p.suffix, err)
			}
			if p.group == "" {
				without = v[hangTail]
			} else if without > 0 {
				v[hangRatio] = v[hangTail] / without
			}
			b.logf("round %d%s: %v", round+1, p.suffix, v)
			add(figures, v.suffixed(p.suffix), true)
		}
	}
	return measured(figures), nil
}

// hangingOnce measures one Collector.
func (b *benchmark) hangingOnce(ctx context.Context, h *hangingCluster, p phase) (v values, err error) {
	s, err := newSink()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.owners = func(resource, log pcommon.Map) bool {
		if isDead(resource) {
			return hasKnownPart(resource, log)
		}
		return belongsToDeployment(resource, log)
	}
	col, stop, err := b.startRecommended(ctx, h.kube, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	before, errBefore := col.usage()
	asked, errAsked := h.kube.ownerRequests(ctx)
	if err := errors.Join(errBefore, errAsked); err != nil {
		return nil, err
	}
	if err := b.writeBoth(ctx, h, p, s); err != nil {
		return nil, err
	}
	total, errAsked := h.kube.ownerRequests(ctx)
	after, errAfter := col.usage()
	b.logf("requests%s: %v", p.suffix, total.since(asked))
	healthy, dead := s.summaryOf(func(event string) bool { return !isDeadEvent(event) }), s.summaryOf(isDeadEvent)
	v = values{
		hangComplete: percent(healthy.owned, healthy.sent), hangHalf: healthy.latency(0.5), hangTail: healthy.latency(0.99),
		hangCPU: float64((after.cpu - before.cpu).Microseconds()) / float64(max(1, healthy.delivered)),
		peakRSS: mebibytes(after.peakRSS),
	}
	if p.group != "" {
		v[hangKnown], v[hangLatency] = percent(dead.owned, dead.sent), dead.latency(0.99)
	}
	return v, errors.Join(errAsked, errAfter)
}

// writeBoth writes the events of all workloads, and waits for their records.
func (b *benchmark) writeBoth(ctx context.Context, h *hangingCluster, p phase, s *sink) error {
	writing, stop := context.WithCancel(ctx)
	defer stop()
	var dead sync.WaitGroup
	written, errDead := 0, error(nil)
	dead.Go(func() { written, errDead = h.writeDead(writing, p, s, b.hanging.every) })
	load := &traffic{cluster: h.kube, sink: s, size: b.hanging.healthy}
	_, err := load.run(ctx)
	stop()
	dead.Wait()
	if err := errors.Join(err, errDead); err != nil {
		return err
	}
	return s.wait(ctx, b.hanging.healthy.observations+written, 10*time.Second)
}

// deadEvent begins the names of events about pods of workloads whose chain has no known end.
const deadEvent = "dead."

func isDeadEvent(name string) bool { return strings.HasPrefix(name, deadEvent) }

// writeDead writes an event about each of these pods in each interval, until the context ends.
func (h *hangingCluster) writeDead(ctx context.Context, p phase, s *sink, every time.Duration) (written int, err error) {
	pods := h.dead[p.group]
	if len(pods) == 0 {
		return 0, nil
	}
	next := time.NewTicker(every / time.Duration(len(pods)))
	defer next.Stop()
	for ; ; written++ {
		select {
		case <-ctx.Done():
			return written, nil
		case <-next.C:
		}
		now := time.Now()
		e := kubeletEvent(fmt.Sprintf("%s%x", deadEvent, now.UnixNano()), pods[written%len(pods)], now)
		s.note(e.Name, 1, now)
		if _, err := h.kube.client.CoreV1().Events(e.Namespace).Create(context.WithoutCancel(ctx), e, metav1.CreateOptions{}); err != nil {
			return written, err
		}
	}
}

func isDead(resource pcommon.Map) bool {
	chain := otlpsink.Text(resource, "k8s.owner.chain")
	return strings.Contains(chain, "release.refusing.example.com/") || strings.Contains(chain, "release.silent.example.com/")
}

// hasKnownPart reports whether a record names all owners up to the one that cannot be read, and
// says that this is not all.
func hasKnownPart(resource, log pcommon.Map) bool {
	chain, _ := resource.Get("k8s.owner.chain")
	resolution := otlpsink.Text(log, "k8s.owner.resolution")
	return chain.Slice().Len() == 3 && (resolution == "timeout" || resolution == "unavailable")
}
