// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
)

// TestOutages takes the API server away from the chart's default for the first time in OUTAGES, such
// as "10m 1h", and then the backend for the second. The API server keeps events for an hour, as usual.
func TestOutages(t *testing.T) {
	if os.Getenv("OUTAGES") == "" {
		t.Skip("make outages runs it")
	}
	times := strings.Fields(os.Getenv("OUTAGES"))
	require.Len(t, times, 2)
	withoutAPI, err := time.ParseDuration(times[0])
	require.NoError(t, err)
	withoutBackend, err := time.ParseDuration(times[1])
	require.NoError(t, err)
	c := start(t, controlplane.Options{})
	require.NoError(t, c.node.ImportImage(t.Context(), builtImage(t)))
	r := c.newRelease(t, "defaults", withDefaults)
	r.install(t)
	c.count(t, "API server away for "+times[0], func(f *traffic) {
		require.NoError(t, c.KillAPIServer())
		time.Sleep(withoutAPI)
		started := make(chan error, 1)
		go func() { started <- c.StartAPIServer(t.Context()) }()
		f.load.Grows(t, 1) // It takes writes before it reports that it is ready.
		f.since = time.Now()
		require.NoError(t, <-started)
	}, r)
	c.count(t, "backend away for "+times[1]+": it answers 503", func(f *traffic) {
		c.backend.Answer(func(context.Context) error { return errors.New("away") })
		for range 4 {
			time.Sleep(withoutBackend / 4)
			f.observe(t) // while the API server still has the events of the beginning
		}
		c.backend.Answer(nil)
		f.since = time.Now()
	}, r)
	c.write(t, "outages", c.environment(t))
}
