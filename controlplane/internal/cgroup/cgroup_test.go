// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRoots(t *testing.T) {
	for name, test := range map[string]struct {
		mounts string
		want   []string
	}{
		"v2": {
			mounts: "24 1 254:0 / / rw - ext4 /dev/vda rw\n30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
			want:   []string{"/sys/fs/cgroup"},
		},
		"v1 and v2": {
			mounts: "31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
				"32 30 0:28 / /sys/fs/cgroup/memory rw shared:5 master:1 - cgroup cgroup rw,memory\n" +
				"33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			want: []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"},
		},
		"mounted twice": {
			mounts: "31 30 0:27 / /cgroup rw - cgroup2 cgroup rw\n31 30 0:27 / /cgroup rw - cgroup2 cgroup rw\n",
			want:   []string{"/cgroup"},
		},
		"none": {mounts: "24 1 254:0 / / rw - ext4 /dev/cgroup rw\n"},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, rootsOf(test.mounts)) })
	}
}
