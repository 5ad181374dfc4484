// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// pages are those whose blocks are checked here. The others in docs/ are written by programs, or
// have tests of their own.
var pages = []string{
	"docs/configuration.md", "docs/migrate.md", "docs/owners.md", "docs/rbac.md", "docs/reliability.md",
	"docs/rollouts.md", "docs/sizing.md", "docs/troubleshooting.md",
}

// readme has commands that need a registry, kind or a release of the chart. Tests in e2e/chart check
// them.
const readme = "README.md"

// block is a fenced block of a page.
type block struct {
	page, language, text string
	number               int // among the page's
}

func (b block) String() string { return fmt.Sprintf("%s block %d", filepath.Base(b.page), b.number) }

var fence = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

func blocksOf(t *testing.T, page, language string) (found []block) {
	t.Helper()
	for i, match := range fence.FindAllStringSubmatch(harness.Read(t, page), -1) {
		if match[1] == language {
			found = append(found, block{page: page, language: language, text: match[2], number: i + 1})
		}
	}
	return found
}

var (
	link       = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	inlineCode = regexp.MustCompile("`[^`\n]*`")
)

// TestLinksLeadSomewhere: every link to a file, and every one to a heading of a page, on every page
// of the repository.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, page := range allPages(t) {
		text := inlineCode.ReplaceAllString(fence.ReplaceAllString(harness.Read(t, page), ""), "")
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			target := page
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(page), match[1])
			}
			_, err := os.Stat(harness.InRepository(target))
			if assert.NoError(t, err, "%s: %s", page, match[0]) && match[2] != "" {
				assert.Contains(t, anchorsOf(t, target), match[2], "%s: %s", page, match[0])
			}
		}
	}
}

// allPages returns the paths of the repository's pages.
func allPages(t *testing.T) (paths []string) {
	t.Helper()
	root := harness.InRepository()
	for _, pattern := range []string{"*.md", ".github/*.md", "docs/*.md", "test/*.md", "deploy/*.md", "distribution/*.md", "examples/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		for _, path := range found {
			relative, err := filepath.Rel(root, path)
			require.NoError(t, err)
			paths = append(paths, relative)
		}
	}
	return paths
}

var (
	heading     = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInAnchor = regexp.MustCompile(`[^\w\- ]`)
)

// anchorsOf are the headings of a page as GitHub links to them.
func anchorsOf(t *testing.T, path string) (anchors []string) {
	t.Helper()
	text := fence.ReplaceAllString(harness.Read(t, path), "")
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		plain := notInAnchor.ReplaceAllString(strings.ToLower(match[1]), "")
		anchors = append(anchors, "#"+strings.ReplaceAll(plain, " ", "-"))
	}
	return anchors
}

// TestEveryBlockIsChecked: no test checks a block of another language. A text block has an example
// of output.
func TestEveryBlockIsChecked(t *testing.T) {
	t.Parallel()
	for _, page := range append(pages, readme) {
		for i, match := range fence.FindAllStringSubmatch(harness.Read(t, page), -1) {
			require.Contains(t, []string{"yaml", "sh", "text"}, match[1], "%s block %d", page, i+1)
		}
	}
}

// TestEveryPageIsListed in docs/README.md, the table of contents.
func TestEveryPageIsListed(t *testing.T) {
	t.Parallel()
	text := harness.Read(t, "docs", "README.md")
	for _, page := range allPages(t) {
		if name, found := strings.CutPrefix(page, "docs/"); found && name != "README.md" {
			assert.Contains(t, text, "]("+name)
		}
	}
}

// TestTheFiguresOfTheComparisonAreMeasured: each cell has the ratios of figures of the page on performance.
func TestTheFiguresOfTheComparisonAreMeasured(t *testing.T) {
	t.Parallel()
	const storage, leader = "kube_events, `storage`", "kube_events, leader election"
	measured := measuredRates(t)
	for _, row := range []struct {
		name, setup string
		figure      int
	}{
		{"processor time", storage, 0}, {"processor time, leader election", leader, 0},
		{"peak memory", storage, 1}, {"peak memory, leader election", leader, 1},
		{"latency, median", storage, 2}, {"latency, 99th percentile", storage, 3}, {"bytes, compressed", storage, 4},
		{"bytes, uncompressed", storage, 5},
	} {
		text := "| " + row.name + " |"
		for _, rate := range []string{"1", "10", "100", "1,000"} {
			ratio := func(other string) string {
				r := measured[rate][row.setup][row.figure] / measured[rate][other][row.figure]
				if r < 9.95 {
					return fmt.Sprintf("%.1f", r)
				}
				return fmt.Sprintf("%.0f", r)
			}
			text += " " + ratio("k8s_events, batches of 200 ms") + ", " + ratio("k8s_events") + " |"
		}
		assert.Contains(t, harness.Read(t, "docs", "compared.md"), text+"\n")
	}
}

// measuredRates are the figures of the page on performance by rate and setup.
func measuredRates(t *testing.T) map[string]map[string][]float64 {
	t.Helper()
	measured, rate := map[string]map[string][]float64{}, ""
	for _, row := range regexp.MustCompile(`(?m)^\| ([\d,]*) ?\| (.*?) \| (.* B) \|$`).FindAllStringSubmatch(harness.Read(t, "test", "PERFORMANCE.md"), -1) {
		if row[1] != "" {
			rate = row[1]
			measured[rate] = map[string][]float64{}
		}
		for _, cell := range strings.Split(row[3], " | ") {
			number, _, _ := strings.Cut(cell, " ")
			figure, err := strconv.ParseFloat(number, 64)
			require.NoError(t, err, cell)
			measured[rate][row[2]] = append(measured[rate][row[2]], figure)
		}
	}
	require.Len(t, measured, 4)
	return measured
}
