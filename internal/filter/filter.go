// SPDX-License-Identifier: Apache-2.0

// Package filter selects the events that a user wants records of. The receiver remembers all
// events, so that a wider filter later counts nothing of the past.
package filter

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/kind"
)

// Filter holds the user's choices. Globs are path.Match patterns, case-sensitive. Callers must have
// validated them. Its methods may be called concurrently.
type Filter struct {
	// Types are the event types to take; empty takes all.
	Types []string
	// IncludeReasons are globs of which one must match; empty takes all reasons.
	IncludeReasons []string
	// ExcludeReasons are globs of which none may match. They override IncludeReasons.
	ExcludeReasons []string
	// ExcludeNamespaces are globs of which none may match the involved object's namespace, which is
	// that of the event. An object that is in no namespace is never excluded.
	ExcludeNamespaces []string
	// IncludeKinds are patterns of which one must match the kind of the involved object; empty takes
	// all kinds.
	IncludeKinds []kind.Pattern
	// ExcludeKinds are patterns of which none may match. They override IncludeKinds.
	ExcludeKinds []kind.Pattern
}

// Wants reports whether the event passes the filter.
func (f Filter) Wants(ev *corev1.Event) bool {
	if len(f.Types) > 0 && !slices.Contains(f.Types, ev.Type) {
		return false
	}
	if len(f.IncludeReasons) > 0 && !matches(f.IncludeReasons, ev.Reason) {
		return false
	}
	if matches(f.ExcludeReasons, ev.Reason) {
		return false
	}
	if len(f.IncludeKinds) > 0 && !matchesKind(f.IncludeKinds, &ev.InvolvedObject) {
		return false
	}
	if matchesKind(f.ExcludeKinds, &ev.InvolvedObject) {
		return false
	}
	if ev.InvolvedObject.Namespace == "" && event.IsOfCluster(ev) {
		return true
	}
	return !matches(f.ExcludeNamespaces, ev.Namespace)
}

// matchesKind reports whether a pattern matches the kind of an object. Without an API version, the
// group of the kind is not known.
func matchesKind(patterns []kind.Pattern, object *corev1.ObjectReference) bool {
	return slices.ContainsFunc(patterns, func(p kind.Pattern) bool {
		if object.APIVersion == "" {
			return p.MatchesKind(object.Kind)
		}
		return p.Matches(object.GroupVersionKind().GroupKind())
	})
}

// FieldSelector returns the part of the filter that the API server can apply: a single type. Empty
// selects everything.
func (f Filter) FieldSelector() string {
	if len(f.Types) != 1 {
		return ""
	}
	return fields.OneTermEqualSelector("type", f.Types[0]).String()
}

func matches(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		ok, _ := path.Match(glob, name)
		return ok
	})
}
