// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"text/template"
)

// chart shows how something grows, on two logarithmic axes.
type chart struct {
	File   string `json:"file,omitempty"` // the charts of a file are side by side; empty: that of the scenario
	Title  string `json:"title"`
	Unit   string `json:"unit"`
	Across string `json:"across,omitempty"` // what the horizontal axis has
	Lines  []line `json:"lines"`
}

// line is what one Collector does.
type line struct {
	Name string    `json:"name"`
	X    []int     `json:"x"`
	Y    []float64 `json:"y"`
}

func (l *line) add(x int, y float64) {
	l.X, l.Y = append(l.X, x), append(l.Y, y)
}

//go:embed chart.svg.tmpl
var drawing string

var drawingTemplate = template.Must(template.New("chart.svg").Parse(drawing))

// keepCharts draws the charts of a scenario into files next to the page.
func keepCharts(docs, name string, charts []chart) error {
	files := map[string][]chart{}
	for _, c := range charts {
		file := cmp.Or(c.File, name)
		files[file] = append(files[file], c)
	}
	for file, some := range files {
		drawn, err := draw(some)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(docs, "performance-"+file+".svg"), drawn, 0o600); err != nil { //nolint:gosec // The path is the command line's.
			return err
		}
	}
	return nil
}

// The measures of a chart, in the drawing's units: where the plot is within it.
const (
	chartWidth, chartHeight = 420, 290 // without the legend
	plotLeft, plotTop       = 70.0, 50.0
	plotWidth, plotHeight   = 320.0, 190.0
	legendTop, legendLine   = 292.0, 16.0
	// mostLabels is how many lines have their values next to their points. More would overlap.
	mostLabels = 2
)

// draw puts charts side by side.
func draw(charts []chart) ([]byte, error) {
	view := struct {
		Width, Height int
		Panels        []panel
	}{Width: chartWidth * len(charts), Height: chartHeight}
	legend := 0
	for i, c := range charts {
		legend = max(legend, len(c.Lines))
		view.Panels = append(view.Panels, c.panel(i*chartWidth))
	}
	view.Height += int(legendLine) * legend
	var out bytes.Buffer
	err := drawingTemplate.Execute(&out, view)
	return out.Bytes(), err
}

// panel is a chart in the form of marks on paper.
type panel struct {
	Offset                   int
	Title, Unit, Across      string
	Left, Top, Right, Bottom float64
	XTicks, YTicks           []tick
	Curves                   []curve
}

type tick struct {
	At    float64
	Label string
}

type curve struct {
	Name, Color    string
	Points         []point
	LabelX, LabelY float64
	ValueAt        int // where a point's value is, above it or below
	Labels         bool
}

type point struct {
	X, Y  float64
	Label string
}

// All colors stand out from white and from black. Text has a color of its own for each: see the template.
var colors = []string{"#1a8fe3", "#d9731a", "#2a9d5c", "#b05fd0", "#d0405f"}

func (c chart) panel(offset int) panel {
	p := panel{Offset: offset, Title: capitalized(c.Title), Unit: c.Unit, Across: cmp.Or(c.Across, "live events"), Left: plotLeft, Top: plotTop, Right: plotLeft + plotWidth, Bottom: plotTop + plotHeight}
	var xs, ys []float64
	for _, l := range c.Lines {
		for i := range l.X {
			xs, ys = append(xs, float64(l.X[i])), append(ys, l.Y[i])
		}
	}
	across, up := decades(xs), decades(ys)
	for _, power := range across.powers() {
		p.XTicks = append(p.XTicks, tick{plotLeft + plotWidth*across.place(power), label(power)})
	}
	for _, power := range up.powers() {
		p.YTicks = append(p.YTicks, tick{p.Bottom - plotHeight*up.place(power), label(power)})
	}
	for i, l := range c.Lines {
		drawn := curve{Name: l.Name, Color: colors[i%len(colors)], LabelX: plotLeft + 18, LabelY: legendTop + legendLine*float64(i), ValueAt: -8, Labels: len(c.Lines) <= mostLabels}
		if i == 0 && len(c.Lines) > 1 {
			drawn.ValueAt = 16 // Out of the way of the next.
		}
		for j := range l.X {
			drawn.Points = append(drawn.Points, point{plotLeft + plotWidth*across.place(float64(l.X[j])), p.Bottom - plotHeight*up.place(l.Y[j]), decimal(l.Y[j])})
		}
		p.Curves = append(p.Curves, drawn)
	}
	return p
}

// span is a range of powers of ten.
type span struct{ from, to int }

// decades is the least that has all values in it.
func decades(values []float64) span {
	least, most := math.Inf(1), math.Inf(-1)
	for _, value := range values {
		if value > 0 {
			least, most = min(least, math.Log10(value)), max(most, math.Log10(value))
		}
	}
	if least > most {
		return span{0, 1}
	}
	s := span{int(math.Floor(least)), int(math.Ceil(most))}
	s.to = max(s.to, s.from+1)
	return s
}

func (s span) powers() (powers []float64) {
	for power := s.from; power <= s.to; power++ {
		powers = append(powers, math.Pow10(power))
	}
	return powers
}

// place is where a value lies within the span, from 0 to 1. What has no logarithm lies at the
// bottom.
func (s span) place(value float64) float64 {
	if value <= 0 {
		return 0
	}
	return max(0, (math.Log10(value)-float64(s.from))/float64(s.to-s.from))
}

func label(power float64) string {
	if power < 1 {
		return strconv.FormatFloat(power, 'f', -1, 64)
	}
	return thousands(int(power))
}
