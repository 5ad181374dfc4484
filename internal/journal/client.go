// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Client returns the client of the storage extension that the option storage of a component names. The name tells
// several of a component apart; it can be empty.
func Client(ctx context.Context, host component.Host, id component.ID, kind component.Kind, own component.ID, name string) (storage.Client, error) {
	extension, ok := host.GetExtensions()[id]
	if !ok {
		return nil, fmt.Errorf("storage: %q is not among the extensions that run; add it to extensions and to service.extensions, or remove storage", id)
	}
	storageExtension, ok := extension.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("storage: %q is not a storage extension; name one, such as file_storage", id)
	}
	client, err := storageExtension.GetClient(ctx, kind, own, name)
	if err != nil {
		return nil, fmt.Errorf("storage: %q cannot be opened: %w; %s", id, err, fixOf(err))
	}
	return client, nil
}

// fixOf returns the fix for an error of file_storage.
func fixOf(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "free disk space"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "make its directory and files writable for the Collector"
	case errors.Is(err, fs.ErrNotExist):
		return "create its directory"
	case strings.Contains(err.Error(), "timeout"): // of the lock of the file
		return "give each Collector its own directory; another one has locked this one"
	default:
		return "if a file in its directory is damaged, remove the file, which leads to a first start"
	}
}
