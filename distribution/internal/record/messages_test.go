// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// TestEventsWithTheSameReason: the message says which of them it is.
func TestEventsWithTheSameReason(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ reason, message, want string }{
		{"Pulled", `Container image "shop:2" already present on machine`, record.KindPresent},
		{"Pulled", `Successfully pulled image "shop:2" in 1.9s`, "Pulled"},
		{"Killing", "Stopping container app", record.KindStopping},
		{"Killing", "Container app failed liveness probe, will be restarted", record.KindRestarted},
		{"Killing", "Container app definition changed, will be restarted", record.KindRestarted},
		{"Killing", "FailedPostStartHook", record.KindRestarted},
		{"BackOff", "Back-off restarting failed container app in pod web-aaa-1", record.KindCrashed},
		{"BackOff", `Back-off pulling image "shop:9"`, record.KindPullFailed},
		{"Failed", `Failed to pull image "shop:9": not found`, record.KindPullFailed},
		{"Failed", "Error: ImagePullBackOff", record.KindPullFailed},
		{"Failed", "Error: failed to create containerd task", "Failed"},
		{"ErrImageNeverPull", `Container image "shop:9" is not present with pull policy of Never`, record.KindPullFailed},
		{"InspectFailed", `Failed to apply default image tag "shop:": couldn't parse image name`, record.KindPullFailed},
		{"Started", "Container started", "Started"},
	} {
		assert.Equal(t, tt.want, record.KindOf(tt.reason, tt.message), "%s: %s", tt.reason, tt.message)
	}
}

// TestScalings: each version of Kubernetes, and Argo Rollouts, write another message.
func TestScalings(t *testing.T) {
	t.Parallel()
	const revision = "replicaset.apps/web-5d9"
	for message, want := range map[string]record.Scaling{
		"Scaled up replica set web-5d9 from 0 to 3":                                     {Revision: revision, From: 0, To: 3, Up: true},
		"Scaled up replica set web-5d9 from 1 to 3":                                     {Revision: revision, From: 1, To: 3, Up: true},
		"Scaled up replica set web-5d9 to 3 from 0":                                     {Revision: revision, From: 0, To: 3, Up: true, Existed: true},
		"Scaled up replica set web-5d9 to 3":                                            {Revision: revision, From: 0, To: 3, Up: true},
		"Scaled down replica set web-5d9 from 3 to 1":                                   {Revision: revision, From: 3, To: 1},
		"Scaled down replica set web-5d9 to 1 from 3":                                   {Revision: revision, From: 3, To: 1, Existed: true},
		"Scaled down replica set web-5d9 to 1":                                          {Revision: revision, From: -1, To: 1},
		"Scaled up ReplicaSet web-5d9 (revision 4) from 2 to 5":                         {Revision: revision, From: 2, To: 5, Up: true},
		"(combined from similar events): Scaled down replica set web-5d9 from 12 to 11": {Revision: revision, From: 12, To: 11},
	} {
		got, ok := record.ScalingOf(message)
		assert.True(t, ok, message)
		assert.Equal(t, want, got, message)
	}
	for _, message := range []string{"", "Scaled up the replica set", "Created pod: web-5d9-x", "It was Scaled up replica set web-5d9 from 0 to 3"} {
		_, ok := record.ScalingOf(message)
		assert.False(t, ok, message)
	}
}

// TestWhatAnOwnerCreated: controllers name the pod or the Job in their messages.
func TestWhatAnOwnerCreated(t *testing.T) {
	t.Parallel()
	for message, want := range map[string][2]string{
		"Created pod: web-5d9-x": {"pod", "web-5d9-x"}, "Deleted pod: web-5d9-x": {"pod", "web-5d9-x"}, "Created job report-29": {"job", "report-29"},
		"create Pod web-0 in StatefulSet web successful":                {"pod", "web-0"},
		"Created virtual machine pod virt-launcher-vm-x":                {"pod", "virt-launcher-vm-x"},
		"(combined from similar events): Created pod: web-5d9-x":        {"pod", "web-5d9-x"},
		"Created PVC data-web-0 of Pod web-0 in StatefulSet web failed": {}, "": {},
	} {
		kind, name := record.NamedIn(message)
		assert.Equal(t, want, [2]string{kind, name}, message)
	}
}

// TestPulls: the time with the wait for other pulls is the one in which the pod waited.
func TestPulls(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]struct {
		image string
		took  time.Duration
	}{
		`Successfully pulled image "shop:2" in 1.9s (2.5s including waiting). Image size: 1234 bytes.`: {"shop:2", 2500 * time.Millisecond},
		`Successfully pulled image "shop:2" in 1.9s`:                                                   {"shop:2", 1900 * time.Millisecond},
		`Container image "shop:2" already present on machine`:                                          {"shop:2", 0},
		`Pulling image "shop:2`:  {"", 0},
		"Stopping container app": {"", 0},
	} {
		image, took := record.PullOf(message)
		assert.Equal(t, want.image, image, message)
		assert.Equal(t, want.took, took, message)
	}
}

// TestMessagesThatSayWhy: a kubelet repeats a failure in words that name no cause.
func TestMessagesThatSayWhy(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]bool{
		`Back-off pulling image "shop:9"`: false, "Error: ErrImagePull": false, "Error: ImagePullBackOff": false,
		`Error: secret "token" not found`: true, `Failed to pull image "shop:9": not found`: true, "Unauthorized": true,
	} {
		assert.Equal(t, want, record.HasCause(message), message)
	}
}
