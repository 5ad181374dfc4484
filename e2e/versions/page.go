// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/features"
)

// page is docs/compatibility.md, with the results that it is written from.
type page struct {
	docs    string   // the directory
	pinned  []string // the versions that make can build, the oldest first
	results []result // likewise
}

// readPage reads the pinned versions of a repository, and the results so far.
func readPage(repository string) (*page, error) {
	pinned, err := pinnedVersions(filepath.Join(repository, "tools"))
	if err != nil {
		return nil, err
	}
	p := &page{docs: filepath.Join(repository, "docs"), pinned: pinned}
	kept, err := os.ReadFile(p.data())
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(kept, &p.results); err != nil {
		return nil, fmt.Errorf("read %s: %w", p.data(), err)
	}
	return p, nil
}

var requirement = regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes v(\S+)`)

// pinnedVersions returns the Kubernetes versions that the modules in a directory pin.
func pinnedVersions(tools string) (versions []string, err error) {
	modules, err := filepath.Glob(filepath.Join(tools, "kubernetes*", "go.mod"))
	if err != nil {
		return nil, err
	}
	for _, module := range modules {
		text, err := os.ReadFile(module)
		if err != nil {
			return nil, err
		}
		found := requirement.FindSubmatch(text)
		if found == nil {
			return nil, fmt.Errorf("%s does not require k8s.io/kubernetes", module)
		}
		versions = append(versions, string(found[1]))
	}
	slices.SortFunc(versions, func(a, b string) int { return cmp.Compare(order(a), order(b)) })
	return versions, nil
}

// data is the path of the file with the results.
func (p *page) data() string { return filepath.Join(p.docs, "compatibility.json") }

// keep replaces the last result of the same minor version.
func (p *page) keep(r result) {
	p.results = append(slices.DeleteFunc(p.results, r.replaces), r)
	slices.SortFunc(p.results, func(a, b result) int {
		return cmp.Or(cmp.Compare(order(a.Kubernetes), order(b.Kubernetes)), cmp.Compare(a.Store, b.Store))
	})
}

// order returns the number of the minor version.
func order(version string) int {
	n, _ := strconv.Atoi(strings.Split(version, ".")[1])
	return n
}

// write writes the results, and the page from them.
func (p *page) write() error {
	kept, err := json.MarshalIndent(p.results, "", "  ")
	if err != nil {
		return err
	}
	text, err := p.render()
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(p.data(), append(kept, '\n'), 0o600),
		os.WriteFile(filepath.Join(p.docs, "compatibility.md"), []byte(text), 0o600),
	)
}

//go:embed compatibility.md.tmpl
var pageText string

var pageTemplate = template.Must(template.New("compatibility.md").Parse(pageText))

// view is what the template shows.
type view struct {
	Results        []result
	Oldest, Newest string
	Tests          []row
	Needed, Used   []row
	Remarks        []remark
	Untested       []string // versions that are pinned, but have no result
	KineUntested   bool
}

// row is a row of a table, with a cell for each version.
type row struct {
	Title, Without string
	Cells          []string
}

// remark names tests of a result.
type remark struct {
	Title string
	What  string
	Tests []string
}

func (p *page) render() (string, error) {
	results := p.results
	if len(results) == 0 {
		return "", errors.New("there are no results")
	}
	v := view{Untested: p.untested(), Results: results, Oldest: results[0].Kubernetes, Newest: results[len(results)-1].Kubernetes}
	v.KineUntested = !slices.ContainsFunc(results, func(r result) bool { return r.Store != "" })
	cells := func(cell func(*result) string) (all []string) {
		for i := range results {
			all = append(all, cell(&results[i]))
		}
		return all
	}
	for _, area := range areas {
		v.Tests = append(v.Tests, row{area.title, "", cells(func(r *result) string { return r.Areas[area.title].String() })})
	}
	for _, feature := range features.All() {
		one := row{feature.Name, feature.Without, cells(func(r *result) string { return yesOrNo(r.Features, feature.Name) })}
		if feature.Without == "" {
			v.Needed = append(v.Needed, one)
		} else {
			v.Used = append(v.Used, one)
		}
	}
	for _, r := range results {
		for _, one := range []remark{
			{r.Title(), "failed", r.Failed},
			{r.Title(), "were skipped", r.Skipped},
			{r.Title(), "failed at first, and passed when they ran again without the other tests", r.Repeated},
		} {
			if len(one.Tests) > 0 {
				v.Remarks = append(v.Remarks, one)
			}
		}
	}
	var text bytes.Buffer
	err := pageTemplate.Execute(&text, v)
	return text.String(), err
}

// untested returns the pinned versions without a result.
func (p *page) untested() []string {
	return slices.DeleteFunc(slices.Clone(p.pinned), func(version string) bool {
		return slices.ContainsFunc(p.results, func(r result) bool { return r.Kubernetes == version })
	})
}

// yesOrNo returns the cell of a feature.
func yesOrNo(found map[string]bool, name string) string {
	has, asked := found[name]
	switch {
	case !asked:
		return "not tested"
	case has:
		return "yes"
	default:
		return "no"
	}
}
