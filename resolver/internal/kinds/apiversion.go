// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// coreVersion is the only version that the core group ever had.
const coreVersion = "v1"

// versionPattern matches a version of Kubernetes: v1, v2beta1.
var versionPattern = regexp.MustCompile(`^v\d+((alpha|beta)\d+)?$`)

// successors maps kinds that were first served in the group extensions to their present group.
// Kubernetes stopped serving them in extensions in 1.16 (Ingress: 1.22). Old event producers and
// owner references still use the old group.
var successors = map[string]string{
	"DaemonSet":         "apps",
	"Deployment":        "apps",
	"ReplicaSet":        "apps",
	"Ingress":           "networking.k8s.io",
	"NetworkPolicy":     "networking.k8s.io",
	"PodSecurityPolicy": "policy",
}

// parseAPIVersion parses an apiVersion field the way its writer meant it. A value without a slash
// is a version of the core group if it looks like a version. Otherwise it is a group without a
// version, which some producers write ("extensions", "apps").
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

// CurrentGroupVersion returns the group and version of an apiVersion field. If the kind has moved to
// another group, it returns that group, without a version: the version of the old group means nothing
// in the new one.
func CurrentGroupVersion(apiVersion, kind string) schema.GroupVersion {
	gv := parseAPIVersion(apiVersion)
	if gv.Group != "extensions" {
		return gv
	}
	if successor, moved := successors[kind]; moved {
		return schema.GroupVersion{Group: successor}
	}
	return gv
}
