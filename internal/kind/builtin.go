// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
)

// shortNames are kubectl's short names of resources. See `kubectl api-resources`.
var shortNames = map[string]string{
	"cj": "cronjob", "cm": "configmap", "deploy": "deployment", "ds": "daemonset", "ep": "endpoints",
	"hpa": "horizontalpodautoscaler", "ing": "ingress", "no": "node", "ns": "namespace",
	"pdb": "poddisruptionbudget", "po": "pod", "pv": "persistentvolume",
	"pvc": "persistentvolumeclaim", "quota": "resourcequota", "rc": "replicationcontroller",
	"rs": "replicaset", "sa": "serviceaccount", "sts": "statefulset", "svc": "service",
}

// versionFirst matches a group after its version, as in kubectl's deployments.v1.apps.
var versionFirst = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?(\.|$)`)

// builtin has the groups of each kind of Kubernetes itself, and the kind of each plural.
type builtin struct {
	groups map[string][]string // by kind
	kinds  map[string]string   // by resource
	known  map[string]bool     // groups
}

// theBuiltin has the kinds of kindsOf.
var theBuiltin = sync.OnceValue(func() builtin {
	b := builtin{groups: map[string][]string{}, kinds: maps.Clone(shortNames), known: map[string]bool{}}
	for group, kinds := range kindsOf {
		b.known[group] = true
		for kind := range strings.FieldsSeq(kinds) {
			plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
			b.groups[kind], b.kinds[plural.Resource] = append(b.groups[kind], group), kind
		}
	}
	return b
})

// likelyFix returns what was probably meant by a kind in lower case that cannot exist: the plural
// or the short name of a built-in kind, a built-in kind in another group, or a kind with a version.
// Empty: the kind may exist.
func likelyFix(lower string) string {
	written, group, grouped := strings.Cut(lower, ".")
	if version := versionFirst.FindString(group); version != "" {
		return join(written, group[len(version):])
	}
	b := theBuiltin()
	kind := written
	if b.groups[kind] == nil {
		kind = b.kinds[written]
	}
	switch {
	case kind == "" || grouped && !b.known[group]:
		return "" // Another API may define it.
	case grouped && !slices.Contains(b.groups[kind], group):
		return join(kind, b.home(kind))
	case kind == written:
		return ""
	}
	return join(kind, group)
}

// home returns the group of a kind that kubectl uses for the kind alone.
func (b builtin) home(kind string) string {
	if group, ok := semconv.Group(kind); ok {
		return group
	}
	return slices.Min(b.groups[kind])
}

// join returns how kubectl writes a kind of a group; empty: the core group.
func join(kind, group string) string {
	return strings.TrimSuffix(kind+"."+group, ".")
}
