// SPDX-License-Identifier: Apache-2.0

package details

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// maxConfigMaps bounds those of a pod that are read.
const maxConfigMaps = 10

// leaderAnnotation is on ConfigMaps that a leader writes again and again.
// (client-go/tools/leaderelection/resourcelock)
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// configMap is what is remembered of a ConfigMap.
type configMap struct {
	readAt  time.Time
	created time.Time
	last    change    // zero: not known, or none that is meant
	before  time.Time // when it was seen to change before that

	failure resolver.Resolution // why it could not be read
}

// changedConfigMaps returns a sentence about the ConfigMap of a pod that changed last; if none has, about the
// one that was created last.
func (d *Details) changedConfigMaps(ctx context.Context, p *pod, at time.Time) (sentences []string, failure resolver.Resolution) {
	var changed, created change
	for _, name := range p.usedConfigMaps {
		one := d.readConfigMap(ctx, types.NamespacedName{Namespace: p.Namespace, Name: name})
		if one.failure != "" && one.failure != resolver.ResolutionNotFound { // It may be optional.
			return nil, one.failure
		}
		switch {
		case one.isNew():
			created = newest(created, one.last)
		case one.isMeant(at):
			changed = newest(changed, one.last)
		}
	}
	switch {
	case changed.name != "":
		return []string{changed.sentence("changed")}, ""
	case created.name != "":
		return []string{created.sentence("created")}, ""
	}
	return nil, ""
}

func newest(a, b change) change {
	if b.at.After(a.at) {
		return b
	}
	return a
}

func (c change) sentence(verb string) string {
	return "configmap " + c.name + " " + verb + " at " + c.at.UTC().Format(time.RFC3339) + " by " + c.by
}

// isNew reports whether the ConfigMap is as it was created. Times have whole seconds.
func (c *configMap) isNew() bool { return c.last.at.Sub(c.created).Abs() <= time.Second }

// deployers begin the names of managers that change what they deploy, and nothing all the time.
var deployers = []string{"kubectl", "helm", "argocd", "kustomize-controller", "flux"}

// isMeant reports whether the last change of a ConfigMap may have an effect at a time. What changes
// twice within a minute is written by a program all the time, and until a minute has passed, only who changed it
// shows that it is not.
func (c *configMap) isMeant(at time.Time) bool {
	isDeployed := slices.ContainsFunc(deployers, func(name string) bool { return strings.HasPrefix(c.last.by, name) })
	return c.last.at.Sub(c.before) >= time.Minute && (isDeployed || at.Sub(c.last.at) >= time.Minute)
}

// readConfigMap reads when a ConfigMap changed. Pods that use the same one share a read.
func (d *Details) readConfigMap(ctx context.Context, name types.NamespacedName) configMap {
	one, _, _ := d.flights.Do(name.String(), func() (any, error) {
		one, _ := d.configMaps.Get(name)
		if time.Since(one.readAt) < sharedFor {
			return one, nil
		}
		var read metadata
		in := path{version: "v1", resource: "configmaps", namespace: name.Namespace, name: name.Name, metadataOnly: true}
		if failure := d.reader.read(ctx, in, &read); failure != "" {
			return configMap{failure: failure}, nil
		}
		last := lastChange(read.ManagedFields, "f:data", "f:binaryData")
		if _, isLock := read.Annotations[leaderAnnotation]; !isLock && last.at.After(one.last.at) {
			one.last, one.before = change{at: last.at, by: last.by, name: name.Name}, one.last.at
		}
		one.readAt, one.created = time.Now(), read.CreationTimestamp.Time
		d.configMaps.Add(name, one)
		return one, nil
	})
	return one.(configMap)
}

// forgetEnvironment keeps only the names of ConfigMaps of what would take most of a remembered pod's memory.
func (p *pod) forgetEnvironment() {
	p.usedConfigMaps = p.configMaps()
	p.Spec.Volumes = nil
	for _, all := range [][]podContainer{p.Spec.InitContainers, p.Spec.Containers, p.Spec.Ephemeral} {
		for i := range all {
			all[i].Env, all[i].EnvFrom = nil, nil
		}
	}
}

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
