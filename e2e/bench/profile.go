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
			fetch(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", c.pprof, max(1, int(length.Seconds()))), prefix+".cpu.pprof"),
			fetch(ctx, "http://"+c.pprof+"/debug/pprof/allocs", prefix+".allocs.pprof"),
			fetch(ctx, "http://"+c.pprof+"/debug/pprof/heap?gc=1", prefix+".heap.pprof"),
		)
	}()
	return done
}

func fetch(ctx context.Context, url, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %s", url, response.Status, data)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600) //nolint:gosec // The path is the command line's.
}
