// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What Events mean that have the same reason. Other kinds are reasons.
const (
	KindPresent    = "Present"      // Pulled, but the node had the image
	KindStopping   = "Stopping"     // Killing, because the pod ends
	KindPullFailed = "PullFailed"   // Failed or BackOff, because of the image
	KindRestarted  = "Restarted"    // Killing, because the container must start again
	KindCrashed    = "CrashBackOff" // BackOff, because the container ended
)

// KindOf returns what an Event means by its reason and, if several share it, its message.
func KindOf(reason, message string) string {
	switch reason {
	case "Pulled":
		if strings.Contains(message, "already present") {
			return KindPresent
		}
	case "Killing":
		if hasAny(message, restarts) {
			return KindRestarted
		}
		return KindStopping
	case "BackOff":
		if !strings.Contains(message, "pulling image") {
			return KindCrashed
		}
		return KindPullFailed
	case "Failed":
		if hasAny(message, imageTexts) {
			return KindPullFailed
		}
	case "ErrImageNeverPull", "InspectFailed", "FailedToInspectImage":
		return KindPullFailed
	}
	return reason
}

// restarts are in the messages of a kubelet that kills a container, and continues with the pod, and
// imageTexts in those about an image.
var (
	restarts   = []string{"will be restarted", "before restart", "requires restart", "FailedPostStartHook"}
	imageTexts = []string{"pull image", "ErrImage", "ImagePull", "InvalidImageName", "inspect image", "ImageInspect"}
)

func hasAny(message string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(message, part) })
}

// scaled matches what Deployments and Argo Rollouts write about a ReplicaSet, in all versions:
// "Scaled up replica set web-5d9 from 0 to 3", "Scaled up replica set web-5d9 to 3 from 0".
var scaled = regexp.MustCompile(`^Scaled (up|down) (?i:replica ?set) (\S+)(?: \(revision \d+\))?(?: from (\d+))? to (\d+)(?: from (\d+))?`)

// Scaling is a change of a ReplicaSet's replicas. From is -1 if the message of a scale-down does
// not have it.
type Scaling struct {
	Revision string
	From, To int
	Up       bool
	Existed  bool // the message is not that of a new ReplicaSet
}

// ScalingOf parses the message of a ScalingReplicaSet.
func ScalingOf(message string) (s Scaling, ok bool) {
	match := scaled.FindStringSubmatch(strings.TrimPrefix(message, combined))
	if match == nil {
		return s, false
	}
	s = Scaling{Revision: "replicaset.apps/" + match[2], From: -1, Up: match[1] == "up"}
	s.To, _ = strconv.Atoi(match[4])
	switch from := match[3] + match[5]; {
	case from != "":
		s.From, _ = strconv.Atoi(from)
		s.Existed = match[5] != "" // Kubernetes 1.28 to 1.31
	case s.Up: // They leave it out if they have created the ReplicaSet.
		s.From = 0
	}
	return s, true
}

// madeBy matches the name in "Created pod: web-5d9-x", "Deleted pod: web-5d9-x", "create Pod web-0
// in StatefulSet web successful", "Created job report-29", and what KubeVirt writes: "Created
// virtual machine pod virt-launcher-vm-x".
var madeBy = regexp.MustCompile(`(?i)^(?:create|delete)d? (?:virtual machine |migration target )?(pod|job):? (\S+)`)

// NamedIn returns the kind, in lower case, and the name of what an owner created or deleted; empty:
// the message names nothing.
func NamedIn(message string) (kind, name string) {
	match := madeBy.FindStringSubmatch(strings.TrimPrefix(message, combined))
	if match == nil {
		return "", ""
	}
	return strings.ToLower(match[1]), match[2]
}

// PullOf returns what a message about a pull has: the image, and how long the kubelet took. Values
// that it does not have are empty.
func PullOf(message string) (name string, took time.Duration) {
	name = between(message, `image "`, `"`)
	if before, _, ok := strings.Cut(message, " including waiting)"); ok {
		took, _ = time.ParseDuration(before[strings.LastIndex(before, "(")+1:])
		return name, took
	}
	if _, rest, ok := strings.Cut(message, `" in `); ok {
		text, _, _ := strings.Cut(rest, " ")
		took, _ = time.ParseDuration(text)
	}
	return name, took
}

// between returns the text between two others; empty: one of them is missing.
func between(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	value, _, ok := strings.Cut(rest, after)
	if !ok {
		return ""
	}
	return value
}

// HasCause reports whether a message is more than "Back-off pulling image" or "Error:
// ErrImagePull".
func HasCause(message string) bool {
	reason, isError := strings.CutPrefix(message, "Error: ")
	isWord := isError && !strings.Contains(reason, " ")
	return !strings.HasPrefix(message, "Back-off") && !isWord
}

// harmless are warnings of objects that run in spite of them, or of controllers that repeat at once
// what has failed. No later Event shows that they are over. Without a pull secret, the pull shows
// whether it fails.
var harmless = map[string]bool{
	"DNSConfigForming": true, "MissingClusterDNS": true, "FailedToRetrieveImagePullSecret": true, "ProbeWarning": true,
	"MultiplePodDisruptionBudgets": true, "PolicyViolation": true, "LoggingDisabled": true, "CgroupV1": true, "InvalidDiskCapacity": true,
	"CheckLimitsForResolvConf": true, "FailedToUpdateEndpoint": true, "FailedToUpdateEndpointSlices": true,
	"FailedToCreateEndpoint": true,
}

// HarmlessReasons returns the reasons of warnings that are no problem, in the order of the
// alphabet.
func HarmlessReasons() []string { return slices.Sorted(maps.Keys(harmless)) }

// CheckHarmless reports what is not the name of a reason in the option harmless_reasons.
func CheckHarmless(reasons []string) error {
	for i, reason := range reasons {
		if reason == "" || strings.ContainsAny(reason, " \t\n*?[") {
			return fmt.Errorf("harmless_reasons[%d]: %q is not the name of a reason: reasons are CamelCase names such as AuditOnly, without blanks; globs are not known here", i, reason)
		}
	}
	return nil
}

// JobFailures are the reasons of Events that report that a Job failed.
var JobFailures = []string{"BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy", "FailedIndexes", "MaxFailedIndexesExceeded"}
