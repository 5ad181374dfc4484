// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// declared is the receiver's own telemetry in metadata.yaml.
type declared struct {
	Attributes map[string]struct {
		Enum []string `json:"enum"`
	} `json:"attributes"`
	Telemetry struct {
		Metrics map[string]any `json:"metrics"`
	} `json:"telemetry"`
}

func readMetadata(t *testing.T) (d declared) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(harness.Read(t, "metadata.yaml")), &d))
	require.NotEmpty(t, d.Telemetry.Metrics)
	return d
}

// TestEveryMetricExists that a page tells readers to look at. documentation.md, which is generated, has all.
func TestEveryMetricExists(t *testing.T) {
	t.Parallel()
	d := readMetadata(t)
	for _, name := range []string{"troubleshooting.md", "migrate.md", "reliability.md", "owners.md", "sizing.md", "day-two.md"} {
		for _, mentioned := range regexp.MustCompile("`otelcol_(kube_events_\\w+)`").FindAllStringSubmatch(harness.Read(t, "docs", name), -1) {
			assert.Contains(t, slices.Collect(maps.Keys(d.Telemetry.Metrics)), mentioned[1], name)
		}
	}
}

// TestEveryCauseAndResolutionIsExplained: what the values of attributes mean.
func TestEveryCauseAndResolutionIsExplained(t *testing.T) {
	t.Parallel()
	d := readMetadata(t)
	for attribute, page := range map[string]string{"cause": "troubleshooting.md", "k8s.owner.resolution": "owners.md"} {
		values := d.Attributes[attribute].Enum
		require.NotEmpty(t, values, attribute)
		for _, value := range values {
			assert.Contains(t, harness.Read(t, "docs", page), "| `"+value+"` |", attribute)
		}
	}
}

// TestEveryMessageIsExplained: whatever the receiver logs as a warning or an error, or reports as
// its status, has a line in the table of messages; and the table has no message that there is not.
func TestEveryMessageIsExplained(t *testing.T) {
	t.Parallel()
	explained := messagesOf(t, harness.Read(t, "docs", "troubleshooting.md"))
	messages := readMessages(t)
	require.NotEmpty(t, messages)
	for _, message := range messages {
		assert.True(t, slices.ContainsFunc(explained, func(row string) bool { return isOf(message, row) }), message)
	}
	for _, row := range explained {
		assert.True(t, slices.ContainsFunc(messages, func(message string) bool { return isOf(message, row) }), row)
	}
}

// isOf reports whether a row of the table is about a message. It may have only the beginning of it.
func isOf(message, row string) bool {
	begin, isBegin := strings.CutSuffix(row, " …")
	return message == row || isBegin && strings.HasPrefix(message, begin)
}

// messagesOf are the first column of the table of messages. Text in brackets is not part of a
// message.
func messagesOf(t *testing.T, page string) (messages []string) {
	t.Helper()
	_, section, found := strings.Cut(page, "## Messages\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]*) \|`).FindAllStringSubmatch(section, -1)[2:] {
		message, _, _ := strings.Cut(row[1], " (")
		messages = append(messages, message)
	}
	return messages
}
