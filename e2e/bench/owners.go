// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
)

const (
	kubeOwners          = "kube_owners"
	k8sAttributes       = "k8s_attributes"
	k8sAttributesModule = "github.com/open-telemetry/opentelemetry-collector-contrib/processor/k8sattributesprocessor"

	completeAfter  = "time from the start until all have the workload"
	incomplete     = "resources that left without it before"
	processorCPU   = "processor time for a known resource, more than without the processor"
	processorRSS   = "peak memory (RSS), more than without the processor"
	processorRatio = "peak memory (RSS), more than without the processor, over that of k8s_attributes"
	podRequests    = "requests other than watches"
	podBytes       = "read from the API server"
	podWatches     = "open watches"

	// maxResources is how many pods a request of data is about.
	maxResources = 1000
)

// ownersSize is a cluster with ten pods in a Deployment. Pods are as large as those of applications, because
// a processor may read whole pods.
func ownersSize(namespaces, pods int) size {
	return size{namespaces: namespaces, deployments: pods / 10, pods: pods, variables: detailedVariables}
}

func runOwners(ctx context.Context, b *benchmark) (r result, err error) {
	setups, err := b.onlyChosen([]setup{
		{name: kubeOwners, title: kubeOwners, runner: enriching(b.ours.binary, kubeOwners, "{auth_type: kubeConfig}")},
		{name: k8sAttributes, title: k8sAttributes, runner: enriching(b.theirs.binary, k8sAttributes, "{auth_type: kubeConfig, "+
			"extract: {metadata: [k8s.deployment.name]}, pod_association: [{sources: [{from: resource_attribute, name: k8s.pod.uid}]}]}")},
	})
	if err != nil {
		return r, err
	}
	m := measurements{}
	for _, sz := range b.owned {
		if _, err := b.onCluster(ctx, sz, func(kube *cluster) (values, error) {
			return nil, m.interleave(ctx, b, b.rounds, setups, "", func(ctx context.Context, c runner) (values, error) {
				return kube.enrichOnce(ctx, c, b.knownTimes)
			})
		}); err != nil {
			return r, err
		}
	}
	r.Groups = m.groups(setups, func(setup string) []figure { return ownersFigures(setup, b.owned) })
	compareMemory(m, r.Groups, b.owned)
	r.Text = fmt.Sprintf(`The processors that add the workload to data of pods: kube_owners, and contrib's k8s_attributes %s. A Collector receives
logs over OTLP and sends them on over OTLP, without batch processor, queue and compression. Real API servers have up to %s pods: ten of each
Deployment, 13 KiB of JSON each, and nothing changes. As soon as the Collector accepts data, a request has a record of each of %s random pods,
whose resources name the UID, the name and the namespace. The request comes again each second until all arrive with the name of their
Deployment. Then it comes %d times, ten times a second. After that, the other pods send data in the same way. The end of a row's name says how many
pods have sent data. kube_owners has its defaults. k8s_attributes finds pods by their UID, adds only `+"`k8s.deployment.name`"+`, and has no filter.`,
		moduleIn(b.theirs.binary, k8sAttributesModule), thousands(b.owned[len(b.owned)-1].pods), thousands(maxResources), b.knownTimes)
	r.Notes = []string{
		"Each Collector is also measured with the same data and without its processor.",
		"kube_owners adds kind, name, UID and API version of the workload, and one label. k8s_attributes takes the name from that of the ReplicaSet, and would need a watch of ReplicaSets for the UID.",
		"Requests and watches are those of pods, ReplicaSets and Deployments, as the API server counts them.",
		"Bytes are those on the connections, with TLS, and compressed where they are.",
	}
	return r, nil
}

// enriching is a Collector that receives data of pods and adds the workload. Nothing compresses what it sends, so
// that little besides the processor takes its time.
func enriching(binary, processor, settings string) runner {
	return runner{name: "otlp", binary: binary}.direct().with(
		"processors::"+processor+": "+settings, "service::pipelines::logs::processors: ["+processor+"]",
		"exporters::otlp_http::compression: none")
}

// ofPods is the end of the name of a figure: so many of so many pods have sent data.
func ofPods(sent, all int) string { return ", " + thousands(sent) + " of " + thousands(all) + " pods" }

// ownersFigures are the rows of a setup. Those of kube_owners have its goals.
func ownersFigures(setup string, sizes []size) (figures []figure) {
	watches := figure{Name: podWatches}
	if setup == kubeOwners {
		watches.Goal = oursAtMost(0)
	}
	for _, sz := range sizes {
		first, all := ofPods(min(sz.pods, maxResources), sz.pods), ofPods(sz.pods, sz.pods)
		figures = append(figures, suffixed([]figure{{Name: completeAfter, Unit: "s"}, {Name: incomplete}, {Name: processorCPU, Unit: "µs"}}, first)...)
		for _, sent := range []string{first, all} {
			figures = append(figures, suffixed([]figure{
				{Name: peakRSS, Unit: "MiB"}, {Name: processorRSS, Unit: "MiB"}, {Name: podBytes, Unit: "MiB"}, {Name: podRequests}, watches,
			}, sent)...)
		}
	}
	return figures
}

// compareMemory adds how the memory of the processors compares, if both were measured, to the group of kube_owners.
func compareMemory(m measurements, groups []group, sizes []size) {
	last := sizes[len(sizes)-1].pods
	for _, sent := range []string{ofPods(min(last, maxResources), last), ofPods(last, last)} {
		ours, theirs := m.of(kubeOwners, processorRSS+sent), m.of(k8sAttributes, processorRSS+sent)
		if len(ours) == 0 || len(theirs) == 0 {
			return
		}
		groups[0].Figures = append(groups[0].Figures, figure{
			Name: processorRatio + sent, Ours: []float64{median(ours) / median(theirs)}, Goal: oursAtMost(0.5),
		})
	}
}
