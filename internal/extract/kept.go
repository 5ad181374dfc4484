// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"regexp"
	"slices"
)

// Kept describes which labels and annotations rules need of objects, in a form that can be stored.
type Kept struct {
	Labels      Keys `json:"labels,omitzero"`
	Annotations Keys `json:"annotations,omitzero"`
}

// Keys are the keys of labels, or of annotations.
type Keys struct {
	Named   []string `json:"named,omitempty"`
	Matched []string `json:"matched,omitempty"` // regular expressions that match a whole key
}

// Kept returns which labels and annotations the rules need.
func (e *Extractor) Kept() Kept { return Kept{keysOf(e.labels), keysOf(e.annotations)} }

func keysOf(rules []rule) (k Keys) {
	for _, r := range rules {
		if r.regex != nil {
			k.Matched = append(k.Matched, r.regex.String())
		} else {
			k.Named = append(k.Named, r.key)
		}
	}
	return Keys{sorted(k.Named), sorted(k.Matched)}
}

// sorted returns each text once, in order: the order of rules means nothing.
func sorted(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// Covers reports whether objects that were kept for k have all that is wanted.
func (k Kept) Covers(wanted Kept) bool {
	return k.Labels.cover(wanted.Labels) && k.Annotations.cover(wanted.Annotations)
}

func (k Keys) cover(wanted Keys) bool {
	for _, regex := range wanted.Matched {
		if !slices.Contains(k.Matched, regex) {
			return false
		}
	}
	for _, key := range wanted.Named {
		if !slices.Contains(k.Named, key) && !slices.ContainsFunc(k.Matched, func(regex string) bool {
			matched, err := regexp.MatchString(regex, key)
			return err == nil && matched
		}) {
			return false
		}
	}
	return true
}
