// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// TestTheQueriesOfThePage asks each query of docs/queries.md. PromQL is asked of both Prometheuses:
// the labels of what is scraped and of what is pushed are the same.
func TestTheQueriesOfThePage(t *testing.T) {
	t.Parallel()
	asked := map[string]int{}
	for _, q := range all.page.queries {
		require.NotEmpty(t, q.returns, "the page does not say what it returns: %s", q.text)
		for name, ask := range all.askedWith(q) {
			asked[q.language]++
			t.Run(name+" "+q.text, func(t *testing.T) {
				t.Parallel()
				eventually(t, func() error { return q.check(ask) })
			})
		}
	}
	assert.NotZero(t, asked["promql"])
	assert.NotZero(t, asked["logql"])
}

// TestTheQueriesOfAnIncident: the backends understand each query of docs/incident.md. The first one
// finds the messages of the demo's Deployment shop.
func TestTheQueriesOfAnIncident(t *testing.T) {
	t.Parallel()
	asked := 0
	for _, b := range blocks(harness.Read(t, "docs", "incident.md")) {
		text := strings.TrimSpace(b.text)
		var ask ask
		switch {
		case b.language == "promql":
			ask = linesOf(all.pushed.series)
		case b.language == "logql" && strings.HasPrefix(text, "{"):
			ask = all.loki.messages
		case b.language == "logql":
			ask = linesOf(all.loki.series)
		default:
			continue
		}
		first := asked == 0
		asked++
		eventually(t, func() error {
			lines, err := ask(text)
			if err == nil && first && len(lines) == 0 {
				return fmt.Errorf("no messages: %s", text)
			}
			return err
		})
	}
	assert.Greater(t, asked, 6)
}

// ask returns a line for each series or message.
type ask func(query string) ([]string, error)

// askedWith are the backends that a query is for, and the ways to ask them.
func (f *fixture) askedWith(q query) map[string]ask {
	switch {
	case q.language == "promql":
		return map[string]ask{"scraped": linesOf(f.scraped.series), "pushed": linesOf(f.pushed.series)}
	case strings.HasPrefix(q.returns[0], "{"):
		return map[string]ask{"loki": linesOf(f.loki.series)}
	default:
		return map[string]ask{"loki": f.loki.messages}
	}
}

// linesOf leaves out what is not a number, such as a quantile of nothing.
func linesOf(answer func(string) ([]series, error)) ask {
	return func(query string) (lines []string, err error) {
		all, err := answer(query)
		for _, one := range all {
			if one.Value[1] != "NaN" {
				lines = append(lines, one.String())
			}
		}
		return lines, err
	}
}

// check returns an error unless the answer has everything that the page shows below the query.
func (q query) check(ask ask) error {
	lines, err := ask(q.text)
	if err != nil {
		return err
	}
	for _, wanted := range q.returns {
		pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(wanted), "…", ".*") + "$"
		if !slices.ContainsFunc(lines, regexp.MustCompile(pattern).MatchString) {
			return fmt.Errorf("%s\nis not among what\n%s\nreturns:\n%s", wanted, q.text, strings.Join(lines, "\n"))
		}
	}
	return nil
}
