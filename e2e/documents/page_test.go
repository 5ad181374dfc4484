// SPDX-License-Identifier: Apache-2.0

package documents

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
var pages = []string{"migrate.md", "owners.md", "counting.md", "troubleshooting.md", "sizing.md"}

// block is a fenced block of a page.
type block struct {
	page, language, text string
	number               int // among the page's
}

func (b block) String() string { return fmt.Sprintf("%s block %d", b.page, b.number) }

var fence = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

func blocksOf(t *testing.T, page, language string) (found []block) {
	t.Helper()
	for i, match := range fence.FindAllStringSubmatch(harness.Read(t, "docs", page), -1) {
		if match[1] == language {
			found = append(found, block{page: page, language: language, text: match[2], number: i + 1})
		}
	}
	return found
}

var link = regexp.MustCompile(`\]\(([^)#]*)(#[^)]*)?\)`)

// TestLinksLeadSomewhere: every link to a file, and every one to a heading of a page.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, page := range pages {
		for _, match := range link.FindAllStringSubmatch(harness.Read(t, "docs", page), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			target := filepath.Join("docs", page)
			if match[1] != "" {
				target = filepath.Join("docs", match[1])
			}
			_, err := os.Stat(harness.InRepository(target))
			if assert.NoError(t, err, "%s: %s", page, match[0]) && match[2] != "" {
				assert.Contains(t, anchorsOf(t, target), match[2], "%s: %s", page, match[0])
			}
		}
	}
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

// TestEveryPageHasBlocksOfKnownLanguages: no test checks a block of another language.
func TestEveryBlockIsChecked(t *testing.T) {
	t.Parallel()
	for _, page := range pages {
		for i, match := range fence.FindAllStringSubmatch(harness.Read(t, "docs", page), -1) {
			require.Contains(t, []string{"yaml", "sh"}, match[1], "%s block %d", page, i+1)
		}
	}
}
