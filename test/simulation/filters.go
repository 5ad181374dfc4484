// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// The filters here are the only ones of the simulation. They are written once more than in the
// receiver, from the contract, so that a mistake there is found.

// wants reports whether the filters let the event through.
func (c *Configured) wants(ev *corev1.Event) bool {
	included := c.watches(ev.Namespace) &&
		(len(c.Types) == 0 || slices.Contains(c.Types, ev.Type)) &&
		(len(c.IncludeReasons) == 0 || matches(c.IncludeReasons, ev.Reason))
	return included && !matches(c.ExcludeReasons, ev.Reason) &&
		!matches(c.ExcludeSpaces, ev.InvolvedObject.Namespace)
}

// watches reports whether events of the namespace are watched.
func (c *Configured) watches(namespace string) bool {
	return len(c.Watched) == 0 || slices.Contains(c.Watched, namespace)
}

// streams are the namespaces of the streams that the receiver watches; "" is the whole cluster.
func (c *Configured) streams() []string {
	if len(c.Watched) == 0 {
		return []string{""}
	}
	return c.Watched
}

// stream is the stream in which the receiver sees the events of a namespace.
func (c *Configured) stream(namespace string) string {
	if len(c.Watched) > 0 {
		return namespace
	}
	return ""
}

func matches(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		matched, _ := path.Match(glob, name)
		return matched
	})
}
