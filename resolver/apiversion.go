// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// coreVersion is the only version that the core group ever had.
const coreVersion = "v1"

// versionPattern is how Kubernetes writes a version: v1, v2beta1.
var versionPattern = regexp.MustCompile(`^v\d+((alpha|beta)\d+)?$`)

// successors names, for kinds that were first served in the group extensions,
// the group that took each over. Kubernetes stopped serving the former in 1.16
// (1.22 for Ingress), but producers of events and owner references that old
// still name it.
var successors = map[string]string{
	"DaemonSet":         "apps",
	"Deployment":        "apps",
	"ReplicaSet":        "apps",
	"Ingress":           "networking.k8s.io",
	"NetworkPolicy":     "networking.k8s.io",
	"PodSecurityPolicy": "policy",
}

// parseAPIVersion reads an apiVersion field as its writers meant it. What has no
// slash is a version of the core group when it looks like one, and otherwise a
// group without a version, which some producers write ("extensions", "apps").
func parseAPIVersion(apiVersion string) schema.GroupVersion {
	group, version, found := strings.Cut(apiVersion, "/")
	switch {
	case found:
		return schema.GroupVersion{Group: group, Version: version}
	case apiVersion == "" || apiVersion == coreVersion || versionPattern.MatchString(apiVersion):
		return schema.GroupVersion{Version: apiVersion}
	default:
		return schema.GroupVersion{Group: apiVersion}
	}
}

// currentGroupVersion is parseAPIVersion for a kind that may have moved on to
// another group since. A version of the old group says nothing about the new.
func currentGroupVersion(apiVersion, kind string) schema.GroupVersion {
	gv := parseAPIVersion(apiVersion)
	if gv.Group != "extensions" {
		return gv
	}
	if successor, moved := successors[kind]; moved {
		return schema.GroupVersion{Group: successor}
	}
	return gv
}
