// SPDX-License-Identifier: Apache-2.0

package details

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// maxSentences bounds what is said about one revision.
const maxSentences = 50

// setting is one setting of a pod template. Only what isShown may be said: a sentence names the others.
type setting struct {
	value   string
	isShown bool
}

// compare returns sentences about what tells a pod template from the one before it, in the order of the
// settings' names; nil: nothing does.
func compare(before, after corev1.PodTemplateSpec) (sentences []string) {
	was, is := settingsOf(before), settingsOf(after)
	for _, name := range slices.Sorted(maps.Keys(merged(was, is))) {
		old, existed := was[name]
		now, exists := is[name]
		switch {
		case existed && exists && old == now:
		case name == "annotation kubectl.kubernetes.io/restartedAt" && isTime(now.value):
			sentences = append(sentences, "restart by hand at "+now.value)
		case existed && exists && now.isShown:
			sentences = append(sentences, name+": "+old.value+" → "+now.value)
		case existed && exists:
			sentences = append(sentences, name+" changed")
		case exists && now.isShown:
			sentences = append(sentences, name+": "+now.value+" added")
		case exists:
			sentences = append(sentences, name+" added")
		case old.isShown:
			sentences = append(sentences, name+": "+old.value+" removed")
		default:
			sentences = append(sentences, name+" removed")
		}
	}
	if len(sentences) > maxSentences {
		return append(sentences[:maxSentences], "and more")
	}
	return sentences
}

func isTime(value string) bool {
	_, err := time.Parse(time.RFC3339, value)
	return err == nil
}

func merged[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// settingsOf returns the settings of a template by name. Whatever has no name of its own is "other settings":
// a list of sentences without it is all that changed.
func settingsOf(t corev1.PodTemplateSpec) map[string]setting {
	t = *t.DeepCopy()
	all := map[string]setting{}
	hide := func(name string, value any) {
		if text, _ := json.Marshal(value); len(text) > 0 && string(text) != "null" {
			all[name] = setting{value: string(text)}
		}
	}
	for key, value := range t.Annotations {
		all["annotation "+key] = setting{value: value}
	}
	for i := range t.Spec.Volumes {
		v := &t.Spec.Volumes[i]
		if v.ConfigMap != nil {
			use(all, "configmap", &v.ConfigMap.Name)
		}
		if v.Secret != nil {
			use(all, "secret", &v.Secret.SecretName)
		}
	}
	for _, containers := range [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			all["image "+c.Name] = setting{c.Image, true}
			hide("command "+c.Name, c.Command)
			hide("args "+c.Name, c.Args)
			hide("liveness probe "+c.Name, c.LivenessProbe)
			hide("readiness probe "+c.Name, c.ReadinessProbe)
			hide("startup probe "+c.Name, c.StartupProbe)
			for _, variable := range c.Env {
				hide("env "+c.Name+" "+variable.Name, variable)
			}
			for _, from := range c.EnvFrom {
				if from.ConfigMapRef != nil {
					use(all, "configmap", &from.ConfigMapRef.Name)
				}
				if from.SecretRef != nil {
					use(all, "secret", &from.SecretRef.Name)
				}
			}
			resources(all, "request "+c.Name, c.Resources.Requests)
			resources(all, "limit "+c.Name, c.Resources.Limits)
			c.Image, c.Command, c.Args, c.Env, c.Resources.Requests, c.Resources.Limits = "", nil, nil, nil, nil, nil
			c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = nil, nil, nil
		}
	}
	spec := &t.Spec
	hide("affinity", spec.Affinity)
	hide("nodeSelector", spec.NodeSelector)
	hide("priorityClassName", spec.PriorityClassName)
	hide("securityContext", spec.SecurityContext)
	hide("serviceAccountName", spec.ServiceAccountName)
	hide("tolerations", spec.Tolerations)
	spec.Affinity, spec.NodeSelector, spec.SecurityContext, spec.Tolerations = nil, nil, nil, nil
	// The API server copies the name of the service account into a deprecated field.
	spec.PriorityClassName, spec.ServiceAccountName, spec.DeprecatedServiceAccount = "", "", ""
	t.Annotations = nil
	for _, revision := range append(slices.Clone(hashes), "controller-revision-hash", "pod-template-generation") {
		delete(t.Labels, revision)
	}
	hide("other settings of the pod template", t)
	return all
}

func resources(all map[string]setting, of string, list corev1.ResourceList) {
	for name, quantity := range list {
		all[string(name)+" "+of] = setting{quantity.String(), true}
	}
}

// hashed matches names that end in a hash of their content, which tools give to ConfigMaps that never change.
var hashed = regexp.MustCompile(`^(.+)-([a-z0-9]*[0-9][a-z0-9]*)$`)

// use adds an object that a template uses, and removes its name from the template.
func use(all map[string]setting, kind string, name *string) {
	known, isHashed := kind+" "+*name, false
	if base := hashed.FindStringSubmatch(*name); base != nil && len(base[2]) >= 4 {
		if other, ok := all[kind+" "+base[1]]; !ok || other.value == *name {
			known, isHashed = kind+" "+base[1], true
		}
	}
	all[known] = setting{*name, isHashed}
	*name = ""
}
