// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// profile takes profiles of a Collector, if any are wanted: of its processor time for that
// duration, and after that of its memory. The channel yields one error or nil when that is done.
func (b *benchmark) profile(ctx context.Context, c *collector, what string, length time.Duration) <-chan error {
	done := make(chan error, 1)
	if b.profiles == "" {
		done <- nil
		return done
	}
	if err := os.MkdirAll(b.profiles, 0o750); err != nil { //nolint:gosec // The path is the command line's.
		done <- err
		return done
	}
	prefix := filepath.Join(b.profiles, what+"-"+c.String())
	go func() {
		done <- errors.Join(
			c.save(ctx, fmt.Sprintf("profile?seconds=%d", max(1, int(length.Seconds()))), prefix+".cpu.pprof"),
			c.save(ctx, "allocs", prefix+".allocs.pprof"),
			c.save(ctx, "heap?gc=1", prefix+".heap.pprof"),
		)
	}()
	return done
}

// save writes a profile of the Collector to a file.
func (c *collector) save(ctx context.Context, profile, path string) error {
	data, err := c.profiled(ctx, profile)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600) //nolint:gosec // The path is the command line's.
}

// profiled returns a profile that the pprof extension serves.
func (c *collector) profiled(ctx context.Context, profile string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.pprof+"/debug/pprof/"+profile, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the pprof extension answers %s for %s: %s", response.Status, profile, data)
	}
	return data, err
}
