// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// layout is a dashboard whose panels have no places yet.
type layout struct {
	name        string // of the file
	builder     *dashboard.DashboardBuilder
	annotations []annotation
	sections    []section
}

// section is a part of a dashboard, below its title if it has one.
type section struct {
	title string
	lines []line
}

// line has panels of the same height.
type line struct {
	height uint32
	cells  []cell
}

// cell is a panel with its width, in columns of Grafana's grid.
type cell struct {
	width uint32
	panel cog.Builder[dashboard.Panel]
}

// columns is the width of Grafana's grid.
const columns = 24

// build gives each panel a place and an ID.
func (l layout) build(v variant) (dashboard.Dashboard, error) {
	made, err := l.builder.Build()
	if err != nil {
		return made, err
	}
	var id, y uint32
	for _, s := range l.sections {
		id++
		header := s.header(id, y)
		if header != nil {
			y++
		}
		panels, err := s.place(v, &id, &y)
		if err != nil {
			return made, err
		}
		switch {
		case header == nil:
		case len(panels) == 0:
			y--
		default:
			made.Panels = append(made.Panels, dashboard.PanelOrRowPanel{RowPanel: header})
		}
		made.Panels = append(made.Panels, panels...)
	}
	return made, nil
}

// header returns nil for a section without a title.
func (s section) header(id, y uint32) *dashboard.RowPanel {
	if s.title == "" {
		return nil
	}
	row := dashboard.NewRowPanel()
	row.Title, row.Id, row.GridPos = &s.title, id, &dashboard.GridPos{H: 1, W: columns, Y: y}
	return row
}

// place returns the panels of the section, and advances the last ID and the next free line.
func (s section) place(v variant, id, y *uint32) (all []dashboard.PanelOrRowPanel, err error) {
	for _, l := range s.lines {
		panels, err := l.place(v, id, *y)
		if err != nil {
			return nil, err
		}
		if len(panels) > 0 {
			*y += l.height
		}
		for _, panel := range panels {
			all = append(all, dashboard.PanelOrRowPanel{Panel: panel})
		}
	}
	return all, nil
}

// place leaves out the panels that a variant does not have. The others share the whole width. A
// panel has the same ID in all variants.
func (l line) place(v variant, id *uint32, y uint32) (panels []*dashboard.Panel, err error) {
	var widths []uint32
	var total uint32
	for _, c := range l.cells {
		*id++
		panel, err := c.panel.Build()
		if err != nil {
			return nil, err
		}
		if !v.loki && *panel.Datasource.Type == *logsSource.Type {
			continue
		}
		panel.Id = new(*id)
		panels, widths, total = append(panels, &panel), append(widths, c.width), total+c.width
	}
	var left uint32
	for i, panel := range panels {
		right := left + widths[i]
		panel.GridPos = &dashboard.GridPos{H: l.height, W: columns*right/total - columns*left/total, X: columns * left / total, Y: y}
		left = right
	}
	return panels, nil
}
