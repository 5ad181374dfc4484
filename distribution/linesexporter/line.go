// SPDX-License-Identifier: Apache-2.0

package linesexporter

import (
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// maxMessage is the number of characters of a message that a line shows.
const maxMessage = 240

// The terminal's sequences (ECMA-48, "select graphic rendition") that lines use.
const (
	styleReset  = "\x1b[0m"
	styleDim    = "\x1b[2m"
	styleYellow = "\x1b[33m"
	styleCyan   = "\x1b[36m"
)

// lineFormat turns log records into lines.
type lineFormat struct {
	color bool
}

// appendLine appends the line of record, newline included, to dst. The line leaves out what the
// record does not have.
func (f lineFormat) appendLine(dst []byte, resource pcommon.Resource, record plog.LogRecord) []byte {
	object := resource.Attributes()
	event := record.Attributes()

	fields := []string{
		timestamp(record).Local().Format(time.TimeOnly),
		f.eventType(record),
		pad(text(event, "k8s.event.reason"), 20),
	}
	fields = append(fields, nonEmpty(
		text(object, "k8s.namespace.name"),
		objectName(object),
		f.style(styleDim, ownerChain(object)),
		f.style(styleCyan, bracketed(text(object, "tilt.manifest"))),
		occurrences(event),
	)...)

	line := strings.TrimRight(strings.Join(fields, " "), " ")
	if message := cut(plain(record.Body().AsString()), maxMessage); message != "" {
		line += "  " + message
	}
	return append(dst, line+"\n"...)
}

func (f lineFormat) eventType(record plog.LogRecord) string {
	name := pad(plain(record.SeverityText()), len("Warning"))
	if record.SeverityNumber() >= plog.SeverityNumberWarn {
		return f.style(styleYellow, name)
	}
	return name
}

func (f lineFormat) style(style, s string) string {
	if !f.color || s == "" {
		return s
	}
	return style + s + styleReset
}

// timestamp returns when the event last occurred. If the record does not have this time, it returns
// when the event was observed.
func timestamp(record plog.LogRecord) time.Time {
	if record.Timestamp() == 0 {
		return record.ObservedTimestamp().AsTime()
	}
	return record.Timestamp().AsTime()
}

// objectName returns the involved object's name as kubectl writes it: pod/fe-abc,
// deployment.apps/fe.
func objectName(object pcommon.Map) string {
	kind := strings.ToLower(text(object, "k8s.object.kind"))
	if kind == "" {
		return text(object, "k8s.object.name")
	}
	if group, _, found := strings.Cut(text(object, "k8s.object.api_version"), "/"); found {
		kind += "." + group
	}
	return kind + "/" + text(object, "k8s.object.name")
}

// ownerChain returns the path from the involved object to the workload that it belongs to.
func ownerChain(object pcommon.Map) string {
	chain, ok := object.Get("k8s.owner.chain")
	if !ok || chain.Type() != pcommon.ValueTypeSlice {
		return ""
	}
	var owners []string
	for _, owner := range chain.Slice().All() {
		owners = append(owners, "← "+plain(owner.AsString()))
	}
	return strings.Join(owners, " ")
}

// occurrences returns how often the event has occurred, if more than once: ×3. If the record is
// about several occurrences, but not about all, it adds their number: ×11 (+2).
func occurrences(event pcommon.Map) string {
	fresh, total := integer(event, "k8s.event.occurrences"), integer(event, "k8s.event.count")
	switch {
	case total <= 1:
		return ""
	case fresh > 1 && fresh < total:
		return fmt.Sprintf("×%d (+%d)", total, fresh)
	}
	return fmt.Sprintf("×%d", total)
}

func integer(attributes pcommon.Map, key string) int64 {
	value, ok := attributes.Get(key)
	if !ok {
		return 0
	}
	return value.Int()
}

func text(attributes pcommon.Map, key string) string {
	value, ok := attributes.Get(key)
	if !ok {
		return ""
	}
	return plain(value.AsString())
}

func bracketed(s string) string {
	if s == "" {
		return ""
	}
	return "[" + s + "]"
}

func nonEmpty(fields ...string) []string {
	var kept []string
	for _, field := range fields {
		if field != "" {
			kept = append(kept, field)
		}
	}
	return kept
}
