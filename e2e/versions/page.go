// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"errors"
	"os"
	"text/template"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/features"
)

//go:embed compatibility.md.tmpl
var pageText string

var pageTemplate = template.Must(template.New("compatibility.md").Parse(pageText))

// page is docs/compatibility.md.
type page struct {
	Results  []result // the oldest version first
	Untested []string // versions that are pinned, but have no result

	// What follows is derived from the results.
	Oldest, Newest string
	Needed, Used   []row
	Remarks        []remark
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

// write writes the page to a file, or prints it.
func (p *page) write(file string) error {
	text, err := p.render()
	if err != nil {
		return err
	}
	if file == "" {
		_, err = os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}

func (p *page) render() (string, error) {
	if len(p.Results) == 0 {
		return "", errors.New("there are no results")
	}
	p.Oldest, p.Newest = p.Results[0].Kubernetes, p.Results[len(p.Results)-1].Kubernetes
	for _, feature := range features.All() {
		one := row{Title: feature.Name, Without: feature.Without}
		for _, r := range p.Results {
			one.Cells = append(one.Cells, yesOrNo(r.Features, feature.Name))
		}
		if feature.Without == "" {
			p.Needed = append(p.Needed, one)
		} else {
			p.Used = append(p.Used, one)
		}
	}
	for _, r := range p.Results {
		for _, one := range []remark{
			{r.Title(), "failed", r.Failed},
			{r.Title(), "were skipped", r.Skipped},
			{r.Title(), "failed at first, and passed when they ran again without the other tests", r.Repeated},
		} {
			if len(one.Tests) > 0 {
				p.Remarks = append(p.Remarks, one)
			}
		}
	}
	var text bytes.Buffer
	err := pageTemplate.Execute(&text, p)
	return text.String(), err
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
