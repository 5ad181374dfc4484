// SPDX-License-Identifier: Apache-2.0

// Package kind reads kinds as users of kubectl write them: pod, deployment.apps,
// rollout.argoproj.io, in any case.
package kind

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
)

// Pattern selects kinds. Kind and group are path.Match patterns in lower case. Its methods may be
// called concurrently.
type Pattern struct {
	kind, group string
	// grouped reports whether the group must match. If not, the kind may be of any group.
	grouped bool
}

// name is a kind without a group, or with one.
var name = regexp.MustCompile(`^[a-z][a-z0-9]*(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// shortNames are the names that kubectl also accepts, and that are no kinds.
var shortNames = map[string]string{
	"cj": "cronjob", "deploy": "deployment", "ds": "daemonset", "hpa": "horizontalpodautoscaler", "no": "node", "ns": "namespace", "po": "pod",
	"pv": "persistentvolume", "pvc": "persistentvolumeclaim", "quota": "resourcequota", "rc": "replicationcontroller", "rs": "replicaset",
	"sc": "storageclass", "sts": "statefulset", "svc": "service",
}

// Parse reads KIND or KIND.GROUP. The group of a bare kind that OpenTelemetry's conventions name is
// the one that kubectl uses; another bare kind may be of any group.
func Parse(text string) (Pattern, error) {
	lower := strings.ToLower(text)
	if !name.MatchString(lower) {
		return Pattern{}, fmt.Errorf("%q is not a kind such as pod, deployment or rollout.argoproj.io", text)
	}
	if kind, isShort := shortNames[lower]; isShort {
		return Pattern{}, fmt.Errorf("%q is a short name of kubectl; write %s, or KIND.GROUP for a kind of this name", text, kind)
	}
	p := newPattern(lower)
	singular := strings.TrimSuffix(p.kind, "s")
	if group, isKind := semconv.Group(singular); isKind && singular != p.kind && (!p.grouped || p.group == group) {
		return Pattern{}, fmt.Errorf("%q is not a kind; kinds are singular, such as %s", text, singular)
	}
	return p, nil
}

// ParseGlob reads a glob of KIND or KIND.GROUP. Without metacharacters, it is what Parse reads.
func ParseGlob(text string) (Pattern, error) {
	if !strings.ContainsAny(text, `*?[\`) {
		return Parse(text)
	}
	p := newPattern(strings.ToLower(text))
	for _, glob := range []string{p.kind, p.group} {
		if _, err := path.Match(glob, ""); err != nil || p.kind == "" || strings.ContainsAny(text, " \t\n") {
			return Pattern{}, fmt.Errorf("%q is not a valid glob of a kind; see https://pkg.go.dev/path#Match", text)
		}
	}
	return p, nil
}

func newPattern(lower string) (p Pattern) {
	p.kind, p.group, p.grouped = strings.Cut(lower, ".")
	if !p.grouped {
		p.group, p.grouped = semconv.Group(p.kind)
	}
	return p
}

// Matches reports whether the pattern selects a kind. An empty group is the core group, whose kinds
// kubectl writes without a group: no glob of groups matches it.
func (p Pattern) Matches(gk schema.GroupKind) bool {
	inGroup := !p.grouped || (p.group == "") == (gk.Group == "") && matches(p.group, gk.Group)
	return inGroup && matches(p.kind, gk.Kind)
}

// MatchesKind reports whether the pattern selects a kind whose group is not known. A pattern for
// all kinds of a group does not.
func (p Pattern) MatchesKind(kind string) bool {
	return matches(p.kind, kind) && (!p.grouped || strings.Trim(p.kind, "*") != "")
}

func matches(glob, name string) bool {
	ok, _ := path.Match(glob, strings.ToLower(name))
	return ok
}
