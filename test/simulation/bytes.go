// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	corev1 "k8s.io/api/core/v1"
)

// The contract: "A record's body keeps its message up to 64 KiB. Every other attribute value of a
// record or a point, and every name that becomes one, keeps at most 1 KiB; longer ones are cut at a
// character and end in …". Requests have at most 1 MiB.
const (
	mostBody      = 64 << 10
	mostAttribute = 1 << 10
	mostRequest   = 1_000_000
)

// attributeOf returns a text as it comes out in an attribute, and bodyOf as it does in a body.
func attributeOf(text string) string { return cutAt(text, mostAttribute) }
func bodyOf(text string) string      { return cutAt(text, mostBody) }

func cutAt(text string, most int) string {
	const mark = "…"
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	end := most - len(mark)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// checkLogs checks the size of a request and of its texts.
func (p *process) checkLogs(logs plog.Logs) {
	e := p.replica.env
	if size := (&plog.ProtoMarshaler{}).LogsSize(logs); size > mostRequest && logs.LogRecordCount() > 1 {
		e.violate(boundedBytes, "", "%s offers a request of %d bytes with %d records", p.name, size, logs.LogRecordCount())
	}
	each(logs, func(resource pcommon.Map, log plog.LogRecord) {
		p.checkAttributes(resource)
		p.checkAttributes(log.Attributes())
		p.checkText("the body", log.Body().AsString(), mostBody)
		p.checkText("the type", log.SeverityText(), mostAttribute)
	})
}

// checkMetrics checks the size of a request and of its texts, and that no point comes twice.
func (p *process) checkMetrics(metrics pmetric.Metrics) {
	e := p.replica.env
	if size := (&pmetric.ProtoMarshaler{}).MetricsSize(metrics); size > mostRequest && metrics.DataPointCount() > 1 {
		e.violate(boundedBytes, "", "%s offers a request of %d bytes with %d points", p.name, size, metrics.DataPointCount())
	}
	for _, rm := range metrics.ResourceMetrics().All() {
		for name := range rm.Resource().Attributes().All() {
			if name != "k8s.cluster.uid" && name != "k8s.cluster.name" {
				e.violate(monotonic, "", "%s emits a metric whose resource has %s", p.name, name)
			}
		}
	}
	last := map[string]pmetric.NumberDataPoint{}
	eachPoint(metrics, func(point pmetric.NumberDataPoint) {
		p.checkAttributes(point.Attributes())
		attributes := fmt.Sprint(point.Attributes().AsRaw())
		// The contract: "At shutdown [...] a new series then gets its zero and its value."
		if zero, twice := last[attributes]; twice && (zero.IntValue() != 0 || point.IntValue() == 0) {
			e.violate(monotonic, "", "%s emits two points of %s", p.name, attributes)
		}
		last[attributes] = point
	})
}

func (p *process) checkAttributes(attributes pcommon.Map) {
	for name, value := range attributes.All() {
		p.checkText("a name", name, mostAttribute)
		switch value.Type() {
		case pcommon.ValueTypeStr:
			p.checkText(name, value.Str(), mostAttribute)
		case pcommon.ValueTypeSlice:
			for _, element := range value.Slice().All() {
				p.checkText(name, element.Str(), mostAttribute)
			}
		}
	}
}

func (p *process) checkText(what, text string, most int) {
	e := p.replica.env
	if len(text) > most {
		e.violate(boundedBytes, "", "%s emits %d bytes in %.80s: %.80q…", p.name, len(text), what, text)
	}
	if !utf8.ValidString(text) {
		e.violate(boundedBytes, "", "%s emits invalid UTF-8 in %.80s: %.80q", p.name, what, text)
	}
}

// cutAway returns how much of the texts of an event a process does not keep.
func cutAway(ev *corev1.Event) (size int) {
	beyond := func(s string, most int) int { return max(0, len(s)-most) }
	for _, s := range texts(ev) {
		if s != &ev.Message {
			size += beyond(*s, mostAttribute)
		}
	}
	for _, value := range ev.Annotations {
		size += beyond(value, mostAttribute)
	}
	return size + beyond(ev.Message, mostBody)
}
