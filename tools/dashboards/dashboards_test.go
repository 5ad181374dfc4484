// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parsed is what the tests need of a dashboard.
type parsed struct {
	variant, file, text string

	UID           string
	Title         string
	Description   string
	SchemaVersion int
	Panels        []panel
	Links         []struct {
		URL      string
		KeepTime bool
	}
	Requires    []requirement `json:"__requires"`
	Templating  struct{ List []struct{ Name string } }
	Annotations struct{ List []struct{ Name, Expr string } }
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults  struct{ Unit string }
		Overrides []struct {
			Matcher    struct{ Options string }
			Properties []struct {
				ID    string
				Value json.RawMessage
			}
		}
	}
	Targets         []struct{ Expr string }
	Transformations []struct {
		Options struct{ RenameByName map[string]string }
	}
}

// read returns all dashboards below a directory.
func read(t *testing.T, directory string) (all []parsed) {
	t.Helper()
	for _, v := range variants {
		paths, err := filepath.Glob(filepath.Join(directory, v.folder, "*.json"))
		require.NoError(t, err)
		require.Len(t, paths, len(layouts(v)))
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			d := parsed{variant: v.folder, file: filepath.Join(v.folder, filepath.Base(path)), text: string(text)}
			require.NoError(t, json.Unmarshal(text, &d), path)
			all = append(all, d)
		}
	}
	return all
}

// TestTheChartHasWhatIsGenerated: two runs write the same files, and the chart has these files and no
// others.
func TestTheChartHasWhatIsGenerated(t *testing.T) {
	generated := t.TempDir()
	require.NoError(t, generate(generated))
	assert.Equal(t, read(t, generated), read(t, directory), "run make generate")
}

// unknownToTheSDK are fields that Grafana has in addition: those of an annotation, and the requirements.
var unknownToTheSDK = regexp.MustCompile(`(?m)^ +"(step|titleFormat|textFormat)": ".*",\n|^  "__requires": \[\n(    .*\n)*  \],\n`)

// TestGrafanaCanImportTheDashboards: they have exactly what its schema allows.
func TestGrafanaCanImportTheDashboards(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	uids := map[string]string{}
	for _, d := range read(t, directory) {
		var strict dashboard.Dashboard
		assert.NoError(t, strict.UnmarshalJSONStrict(unknownToTheSDK.ReplaceAll([]byte(d.text), nil)), d.file)
		assert.NotZero(t, d.SchemaVersion, d.file)
		assert.NotEmpty(t, d.Title, d.file)
		assert.NotEmpty(t, d.Description, d.file)
		assert.NotEmpty(t, d.UID, d.file)
		assert.NotContains(t, uids, d.variant+d.UID, "%s and %s have the same UID", d.file, uids[d.variant+d.UID])
		uids[d.variant+d.UID] = d.file
		assert.NotContains(t, d.text, "tilt", "%s: users without Tilt would see an empty label", d.file)
		if d.variant == "without-loki" {
			assert.NotRegexp(t, `(?i)loki|\$\{logs`, d.text, d.file)
			assert.NotEmpty(t, d.Panels, d.file)
		}
	}
}

// TestRequirements: Grafana, the data sources and the types of panels, each with a name.
func TestRequirements(t *testing.T) {
	for _, d := range read(t, directory) {
		var required []string
		for _, r := range d.Requires {
			assert.NotEmpty(t, r.Name, d.file)
			required = append(required, r.ID)
		}
		assert.Equal(t, requirement{"grafana", "grafana", "Grafana", "11.5.0"}, d.Requires[0], d.file)
		assert.Equal(t, strings.Contains(d.text, `"type": "loki"`), slices.Contains(required, "loki"), d.file)
		for _, p := range d.Panels {
			assert.True(t, p.Type == "row" || slices.Contains(required, p.Type), "%s: %s", d.file, p.Type)
		}
	}
}

// TestClusters: each query of the metric is about the clusters with a name and about those without one, whose
// name is the label of the scrape.
func TestClusters(t *testing.T) {
	for _, d := range read(t, directory) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				named, unnamed := strings.Count(target.Expr, inNamed), strings.Count(target.Expr, inUnnamed)
				assert.Equal(t, named, unnamed, target.Expr)
				assert.Equal(t, strings.Count(target.Expr, occurrences), named+unnamed, target.Expr)
			}
		}
	}
}

// TestPanels explain themselves. No two are in the same place, and no place is empty.
func TestPanels(t *testing.T) {
	for _, d := range read(t, directory) {
		ids, taken, bottom := map[int]bool{0: true}, map[[2]int]bool{}, 0
		for _, p := range d.Panels {
			name := d.file + ": " + p.Title
			assert.False(t, ids[p.ID], "%s has no ID, or that of another panel", name)
			ids[p.ID] = true
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
					assert.True(t, x < columns && !taken[[2]int{x, y}], "%s overlaps", name)
					taken[[2]int{x, y}] = true
				}
			}
			bottom = max(bottom, p.GridPos.Y+p.GridPos.H)
			assert.NotEmpty(t, p.Title, d.file)
			isRow, hasUnit := p.Type == "row", p.FieldConfig.Defaults.Unit != "" || p.Type == "logs"
			assert.True(t, isRow || p.Description != "" && len(p.Targets) > 0 && hasUnit, "%s has no description, query or unit", name)
		}
		assert.Len(t, taken, bottom*columns, "%s has empty places", d.file)
	}
}

// cellLinks returns the links of the cells of a table.
func (p panel) cellLinks(t *testing.T) (links []cellLink) {
	t.Helper()
	for _, override := range p.FieldConfig.Overrides {
		for _, property := range override.Properties {
			if property.ID == "links" {
				var some []cellLink
				require.NoError(t, json.Unmarshal(property.Value, &some))
				require.NotEmpty(t, some, p.Title)
				assert.True(t, p.has(override.Matcher.Options), "%s has links in the column %s, which it does not have", p.Title, override.Matcher.Options)
				links = append(links, some...)
			}
		}
	}
	return links
}

// has reports whether a table has a column.
func (p panel) has(column string) bool {
	for _, transformation := range p.Transformations {
		for label, title := range transformation.Options.RenameByName {
			if title == column {
				return slices.ContainsFunc(p.Targets, func(target struct{ Expr string }) bool { return strings.Contains(target.Expr, label) })
			}
		}
	}
	return false
}

func (d parsed) variables() (names []string) {
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
	}
	return names
}

var (
	keptValue  = regexp.MustCompile(`^\$\{(\w+):queryparam\}$`)
	fieldOfRow = regexp.MustCompile(`\$\{__data\.fields\.(\w+)\}`)
)

// TestLinksHaveTargets: a dashboard of the same variant, or a query of logs. What they name exists:
// variables of both dashboards, and columns of the table.
func TestLinksHaveTargets(t *testing.T) {
	all := read(t, directory)
	for _, d := range all {
		var reached []string
		for _, l := range d.Links {
			if l.URL == troubleshooting() {
				assert.FileExists(t, filepath.Join("..", "..", "docs", "troubleshooting.md"))
				continue
			}
			assert.True(t, l.KeepTime, l.URL)
			reached = append(reached, checkTarget(t, all, d, l.URL))
		}
		assert.Len(t, reached, len(all)/len(variants)-1, "%s has a link to each of the others", d.file)
		for _, p := range d.Panels {
			for _, l := range p.cellLinks(t) {
				assert.NotEmpty(t, l.Title, l.URL)
				for _, field := range fieldOfRow.FindAllStringSubmatch(l.URL, -1) {
					assert.True(t, p.has(field[1]), "%s: %s has no column %s for %q", d.file, p.Title, field[1], l.Title)
				}
				if strings.HasPrefix(l.URL, "/explore?") {
					// e2e/backends asks the query. Without braces, Grafana does not find a variable between %XX.
					assert.NotRegexp(t, `\$[^{]`, l.URL)
					continue
				}
				assert.Contains(t, l.URL, "?${__url_time_range}&", l.Title)
				checkTarget(t, all, d, strings.Replace(l.URL, "${__url_time_range}&", "", 1))
			}
		}
	}
}

// checkTarget returns the UID of the dashboard to which a link leads.
func checkTarget(t *testing.T, all []parsed, from parsed, link string) string {
	t.Helper()
	path, query, _ := strings.Cut(link, "?")
	uid := strings.TrimPrefix(path, "/d/")
	i := slices.IndexFunc(all, func(d parsed) bool { return d.variant == from.variant && d.UID == uid })
	require.GreaterOrEqual(t, i, 0, "%s has a link to %s, which does not exist", from.file, link)
	given := map[string]bool{}
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(strings.TrimPrefix(parameter, "var-"), "=")
		if match := keptValue.FindStringSubmatch(parameter); match != nil {
			name = match[1]
			assert.Contains(t, from.variables(), name, link)
		}
		assert.Contains(t, all[i].variables(), name, link)
		assert.False(t, given[name], "%s gives %s two values", link, name)
		given[name] = true
	}
	return uid
}

// TestQueriesOfLogsSelectTheReceiver: each query of records, also of a link, selects streams by the
// variable, and by the cluster and the namespace if it has them.
func TestQueriesOfLogsSelectTheReceiver(t *testing.T) {
	for _, d := range read(t, directory) {
		queries := strings.Count(d.text, "k8s_event_name")
		assert.Equal(t, queries > 0, slices.Contains(d.variables(), "selector"), d.file)
		assert.Equal(t, queries, strings.Count(d.text, "{${selector:raw}")+strings.Count(d.text, "%7B${selector}"), d.file)
		assert.NotRegexp(t, `(\| |%7C%20)k8s_(cluster|namespace)_name`, d.text, d.file)
	}
}
