// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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

// TestTheFiguresOfTheComparisonAreMeasured: each row with figures is one of the page on performance.
func TestTheFiguresOfTheComparisonAreMeasured(t *testing.T) {
	t.Parallel()
	rows := regexp.MustCompile(`(?m)^\| .* (µs|MiB|ms) \|.*$`).FindAllString(harness.Read(t, "docs", "compared.md"), -1)
	require.NotEmpty(t, rows)
	for _, row := range rows {
		assert.Contains(t, harness.Read(t, "test", "PERFORMANCE.md"), row+"\n")
	}
}
