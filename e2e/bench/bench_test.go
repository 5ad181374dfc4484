// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/controlplanetest"
)

// TestScenariosWork runs each scenario with small loads and without k8s_events, which make test does
// not build. No record may be lost or lack owners. Times and sizes have no meaning here.
func TestScenariosWork(t *testing.T) {
	otelcol := cmp.Or(os.Getenv("OTELCOL"), filepath.Join("..", "..", "build", "otelcol-kubeevents"))
	for _, path := range []string{otelcol, filepath.Join(controlplanetest.Binaries(), "kube-apiserver")} {
		if _, err := os.Stat(path); err != nil && os.Getenv("CI") == "" {
			t.Skip("make build controlplane builds what is missing: ", err)
		}
	}
	b := &benchmark{
		lengths: shortLengths, ours: kubeEvents(otelcol), rounds: 1, controlPlane: controlplanetest.Binaries(),
		only: strings.Join([]string{direct, stored, elected, tracesOnly, problemsAndPage, withoutDetails, kubeOwners}, ","),
	}
	// On a machine that is busy with other tests, an owner may take longer than the default.
	b.ours.receiver = "{auth_type: kubeConfig, owners: {lookup_timeout: 1m}}"
	b.ours.quiet = 2 * time.Minute // A batch may wait for its owners for a minute.
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r, err := s.run(t.Context(), b)
			require.NoError(t, err)
			require.NotEmpty(t, r.Groups)
			for _, g := range r.Groups {
				require.NotEmpty(t, g.Figures)
				for _, f := range g.Figures {
					if text, missed := f.missed(); missed && countsRecords.MatchString(f.Name) {
						t.Error(g.Title, text)
					}
				}
			}
		})
	}
}

var countsRecords = regexp.MustCompile(`^(healthy )?records (lost|without|repeated)|^(ends of|new revisions|spans|open watches)`)
