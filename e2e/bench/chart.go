// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"math"
	"strconv"
	"strings"
	"text/template"
)

// chart shows how a figure of two Collectors grows with the rate, on two logarithmic axes.
type chart struct {
	file, title, unit string
	rates             []int
	lines             []line
}

type line struct {
	name  string
	color string
	y     []float64 // at each rate
}

//go:embed chart.svg.tmpl
var drawing string

var drawingTemplate = template.Must(template.New("chart.svg").Parse(drawing))

// The plot is within the chart, in the drawing's units.
const (
	plotLeft, plotTop     = 70.0, 50.0
	plotWidth, plotHeight = 320.0, 190.0
	plotBottom            = plotTop + plotHeight
	legendTop, legendLine = 292.0, 16.0
)

// mark is a text at a point.
type mark struct {
	X, Y  float64
	Label string
}

type curve struct {
	Name, Color string
	LegendY     float64
	Points      []mark
	ValueAt     int // where a point's value is, above it or below
}

// draw returns the chart as SVG.
func (c chart) draw() ([]byte, error) {
	view := struct {
		Title, Unit              string
		Left, Top, Right, Bottom float64
		XTicks, YTicks           []mark
		Curves                   []curve
	}{
		Title: strings.ToUpper(c.title[:1]) + c.title[1:], Unit: c.unit,
		Left: plotLeft, Top: plotTop, Right: plotLeft + plotWidth, Bottom: plotBottom,
	}
	var xs, ys []float64
	for _, rate := range c.rates {
		xs = append(xs, float64(rate))
	}
	for _, l := range c.lines {
		ys = append(ys, l.y...)
	}
	across, up := decades(xs), decades(ys)
	for _, power := range across.powers() {
		view.XTicks = append(view.XTicks, mark{plotLeft + plotWidth*across.place(power), plotBottom, label(power)})
	}
	for _, power := range up.powers() {
		view.YTicks = append(view.YTicks, mark{plotLeft, plotBottom - plotHeight*up.place(power), label(power)})
	}
	for i, l := range c.lines {
		drawn := curve{Name: l.name, Color: l.color, LegendY: legendTop + legendLine*float64(i), ValueAt: 16 - 24*i}
		for j, y := range l.y {
			drawn.Points = append(drawn.Points, mark{plotLeft + plotWidth*across.place(xs[j]), plotBottom - plotHeight*up.place(y), decimal(y)})
		}
		view.Curves = append(view.Curves, drawn)
	}
	var out bytes.Buffer
	err := drawingTemplate.Execute(&out, view)
	return out.Bytes(), err
}

// span is a range of powers of ten.
type span struct{ from, to int }

// decades returns the smallest span that contains all positive values.
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
