// SPDX-License-Identifier: Apache-2.0

package details

import (
	"context"
	"slices"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// maxConfigMaps bounds those of a pod that are read.
const maxConfigMaps = 10

// leaderAnnotation is on ConfigMaps that a leader writes again and again.
// (client-go/tools/leaderelection/resourcelock)
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// changedConfigMaps returns a sentence about the ConfigMap of a pod that changed last. A ConfigMap that
// was seen to change twice within a minute is not meant: a program writes it all the time.
func (d *Details) changedConfigMaps(ctx context.Context, p *pod) (sentences []string, failure resolver.Resolution) {
	var last change
	for _, name := range p.configMaps() {
		var read metadata
		failure = d.reader.read(ctx, path{version: "v1", resource: "configmaps", namespace: p.Namespace, name: name, metadataOnly: true}, &read)
		if failure != "" {
			if failure == resolver.ResolutionNotFound {
				continue // It may be optional.
			}
			return nil, failure
		}
		changed := lastChange(read.ManagedFields, "f:data", "f:binaryData")
		if _, isLock := read.Annotations[leaderAnnotation]; isLock || changed.at.IsZero() || d.changesOften(read, changed.at) {
			continue
		}
		if changed.at.After(last.at) {
			last = change{at: changed.at, by: changed.by, name: name}
		}
	}
	if last.name == "" {
		return nil, ""
	}
	return []string{"configmap " + last.name + " changed at " + last.at.UTC().Format(time.RFC3339) + " by " + last.by}, ""
}

// changesOften reports whether a ConfigMap has changed twice within a minute.
func (d *Details) changesOften(read metadata, at time.Time) bool {
	seen, _ := d.configMaps.Get(read.UID)
	if at.After(seen.last) {
		seen = changes{last: at, before: seen.last}
		d.configMaps.Add(read.UID, seen)
	}
	return seen.last.Sub(seen.before) < time.Minute
}

// changes are when a ConfigMap was seen to change.
type changes struct{ last, before time.Time }

// configMaps returns the names of the ConfigMaps that a pod's volumes and environment name.
func (p *pod) configMaps() (names []string) {
	add := func(name string) {
		if name != "" && len(names) < maxConfigMaps && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, volume := range p.Spec.Volumes {
		add(volume.ConfigMap.Name)
	}
	for _, container := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, from := range container.EnvFrom {
			add(from.ConfigMap.Name)
		}
		for _, variable := range container.Env {
			add(variable.From.ConfigMap.Name)
		}
	}
	return names
}
