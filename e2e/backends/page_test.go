// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"fmt"
	"os"
	"strings"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// page is docs/queries.md.
type page struct {
	collector, loki, push, scrape string // configurations, in YAML
	queries                       []query
}

// query is one of the page, with what the page shows below it.
type query struct {
	language string // promql or logql
	text     string
	returns  []string // series, or messages; "…" matches anything
}

// block is a fenced block.
type block struct{ language, text string }

func readPage() (*page, error) {
	text, err := os.ReadFile(harness.InRepository("docs", "queries.md"))
	if err != nil {
		return nil, err
	}
	p := &page{}
	configurations := []*string{&p.collector, &p.loki, &p.push, &p.scrape}
	for _, b := range blocks(string(text)) {
		switch b.language {
		case "yaml":
			if len(configurations) == 0 {
				return nil, fmt.Errorf("docs/queries.md: no test uses the configuration\n%s", b.text)
			}
			*configurations[0], configurations = b.text, configurations[1:]
		case "promql", "logql":
			p.queries = append(p.queries, query{language: b.language, text: strings.TrimSpace(b.text)})
		case "text":
			last := &p.queries[len(p.queries)-1]
			last.returns = strings.Split(strings.TrimSpace(b.text), "\n")
		default:
			return nil, fmt.Errorf("docs/queries.md: no test knows what to do with the language %q", b.language)
		}
	}
	return p, nil
}

func blocks(text string) (found []block) {
	for {
		_, rest, more := strings.Cut(text, "\n```")
		if !more {
			return found
		}
		language, rest, _ := strings.Cut(rest, "\n")
		var b block
		b.language = language
		b.text, text, _ = strings.Cut(rest, "```")
		found = append(found, b)
	}
}
