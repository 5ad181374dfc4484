// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/kubeevents/kubeeventsreceiver/internal/journal"
)

// extensions is a host with these extensions.
type extensions map[component.ID]component.Component

func (e extensions) GetExtensions() map[component.ID]component.Component { return e }

// opening is a storage extension that opens a client, or fails to.
type opening struct {
	component.Component
	err error
}

func (o opening) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return &memory{}, o.err
}

func TestStorageThatCannotBeOpenedNamesTheFix(t *testing.T) {
	files := component.MustNewID("file_storage")
	for name, tt := range map[string]struct {
		host extensions
		want []string // parts of the error; nil: there is none
	}{
		"it works":                     {extensions{files: opening{}}, nil},
		"no such extension":            {extensions{}, []string{`"file_storage" is not among the extensions that run`}},
		"an extension of another kind": {extensions{files: nil}, []string{`"file_storage" is not a storage extension`}},
		"a full disk":                  {extensions{files: opening{err: fmt.Errorf("write: %w", syscall.ENOSPC)}}, []string{"write: ", "; free disk space"}},
		"a missing permission":         {extensions{files: opening{err: fs.ErrPermission}}, []string{"; make its directory and files writable"}},
		"a read-only disk":             {extensions{files: opening{err: syscall.EROFS}}, []string{"; make its directory and files writable"}},
		"a missing directory":          {extensions{files: opening{err: &fs.PathError{Op: "stat", Path: "/data", Err: syscall.ENOENT}}}, []string{"/data", "; create its directory"}},
		"a directory in use":           {extensions{files: opening{err: errors.New("timeout")}}, []string{"; give each Collector its own directory"}},
		"a damaged file":               {extensions{files: opening{err: errors.New("invalid database")}}, []string{"invalid database", "; if a file in its directory is damaged, remove the file"}},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := journal.Client(t.Context(), tt.host, files, component.KindReceiver, component.MustNewID("kube_events"), "")
			if tt.want == nil {
				require.NoError(t, err)
				assert.NotNil(t, client)
				return
			}
			for _, part := range tt.want {
				assert.ErrorContains(t, err, part)
			}
		})
	}
}
