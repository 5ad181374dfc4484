// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log"
	"os"
	"path/filepath"
)

// fill writes a file of 8 MiB into a directory, and waits until ctx ends.
func fill(ctx context.Context, dir string) error {
	content := make([]byte, 8<<20)
	if err := os.WriteFile(filepath.Join(dir, "filled"), content, 0o600); err != nil { //nolint:gosec // the test selects the directory
		return err
	}
	log.Printf("wrote %d bytes", len(content))
	<-ctx.Done()
	return nil
}
