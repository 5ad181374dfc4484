// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
	stories "github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
)

// TestStories reads the files in testdata/stories: records, an empty line, and the traces of them.
// A line "now TIME" says when the traces are computed; without it, it is a day later.
func TestStories(t *testing.T) {
	for name, s := range allStories(t) {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", "stories", name+".txt")
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			records, want, _ := strings.Cut(string(content), "\n\n")
			got := tree(spansOf(modelOf(s.records), s.options))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(records+"\n\n"+got), 0o600))
				return
			}
			assert.Equal(t, want, got)
		})
	}
}

// told is a story of a file.
type told struct {
	records story
	options rollout.Options
}

func allStories(t testing.TB) map[string]told {
	t.Helper()
	files, err := filepath.Glob("testdata/stories/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string]told{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		records, _, _ := strings.Cut(string(content), "\n\n")
		records, now, hasNow := strings.Cut(records, "\nnow ")
		s := told{storyOf(records), late}
		if hasNow {
			s.options.Now = stories.Epoch.Add(stories.Time(now))
		}
		all[strings.TrimSuffix(filepath.Base(file), ".txt")] = s
	}
	return all
}

// read returns the records of a story.
func read(t testing.TB, name string) story {
	t.Helper()
	s, ok := allStories(t)[name]
	require.True(t, ok, name)
	return s.records
}

// story is a list of records, as the receiver emits them.
type story []plog.Logs

func storyOf(lines string) story { return stories.Logs(lines) }

// changed returns the records of a story with other attributes.
func (s story) changed(change func(resource, record pcommon.Map)) (all story) {
	for _, logs := range s {
		other := plog.NewLogs()
		logs.CopyTo(other)
		change(other.ResourceLogs().At(0).Resource().Attributes(), other.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes())
		all = append(all, other)
	}
	return all
}
