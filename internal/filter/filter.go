// SPDX-License-Identifier: Apache-2.0

// Package filter decides which events a user wants records of. The receiver remembers all events, so
// that a filter that is widened later counts nothing of the past.
package filter

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// Filter holds what a user chose. Globs are path.Match patterns, case-sensitive; the caller has checked them. Its methods
// may be called concurrently.
type Filter struct {
	// Types are the event types to take; empty takes all.
	Types []string
	// IncludeReasons are globs of which one must match; empty takes all reasons.
	IncludeReasons []string
	// ExcludeReasons are globs of which none may match. They beat IncludeReasons.
	ExcludeReasons []string
	// ExcludeNamespaces are globs of which none may match the involved object's namespace. An object that is in no
	// namespace is never excluded.
	ExcludeNamespaces []string
}

// Wants says whether the event passes.
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
	namespace := ev.InvolvedObject.Namespace
	return namespace == "" || !matches(f.ExcludeNamespaces, namespace)
}

// FieldSelector is what of the filter the API server can do: a single type. Empty selects everything.
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
