// SPDX-License-Identifier: Apache-2.0

// Package record reads the receiver's log records once: what an Event says, about which object, and
// where that object belongs. The rollouts and the problems are computed from these values.
package record

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// The bounds of texts: anybody may write any text into an Event.
const (
	maxMessage = 1024
	maxName    = 256 // bytes; no name or reason of Kubernetes is longer
	maxChain   = 32  // objects
)

// MaxCount bounds counts, so that sums of what anybody writes do not overflow.
const MaxCount = 1 << 40

// Record is one record of an Event.
type Record struct {
	*Subject
	Attributes pcommon.Map `json:"-"` // of the resource
	ID         string      // log.record.uid
	Event      string      // the same for all records of an Event
	Type       string
	Reason     string
	Action     string
	Kind       string // what the reason and the message mean: see KindOf
	Message    string
	Reporter   string
	Related    string    // the name of the related object, such as the pod that preempts
	Resolution string    // of the owners
	IsInit     bool      // it is about a container that runs before the others
	IsDebug    bool      // it is about a container with which somebody debugs the pod
	IsHarmless bool      // a warning with this reason is no problem
	Count      int64     // occurrences in all
	N          int64     // occurrences since the record before
	First, At  time.Time `json:"-"`
	Details    *Details  `json:",omitempty"` // nil: the Event calls for none, or nothing is known
}

// Read returns the records of Events. Reasons of warnings that are no problem come in addition to
// the known ones.
func Read(logs plog.Logs, harmlessReasons ...string) (all []*Record) {
	all = make([]*Record, 0, logs.LogRecordCount())
	for _, resource := range logs.ResourceLogs().All() {
		var s *Subject
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				if !IsEvent(record) {
					continue
				}
				if s == nil {
					s = SubjectOf(resource.Resource().Attributes())
				}
				r := recordOf(resource.Resource().Attributes(), s, record)
				r.IsHarmless = harmless[r.Reason] || slices.Contains(harmlessReasons, r.Reason)
				all = append(all, r)
			}
		}
	}
	return all
}

// IsEvent reports whether a record is one of the receiver.
func IsEvent(record plog.LogRecord) bool { return record.EventName() == "k8s.event" }

func recordOf(attributes pcommon.Map, s *Subject, record plog.LogRecord) *Record {
	event, field := record.Attributes(), text(record.Attributes(), "k8s.object.fieldpath")
	at := timeOf(cmp.Or(record.Timestamp(), record.ObservedTimestamp()))
	r := &Record{
		Subject: s, Attributes: attributes, ID: text(event, "log.record.uid"), Event: text(event, "k8s.event.uid"),
		Type:   cmp.Or(text(event, "k8s.event.type"), Cut(record.SeverityText(), maxName)),
		Reason: text(event, "k8s.event.reason"), Action: text(event, "k8s.event.action"), Message: Cut(record.Body().AsString(), maxMessage),
		Reporter: text(event, "k8s.event.reporting_controller"), Related: text(event, "k8s.event.related.name"),
		Resolution: text(event, "k8s.owner.resolution"),
		IsInit:     strings.HasPrefix(field, "spec.initContainers"), IsDebug: strings.HasPrefix(field, "spec.ephemeralContainers"),
		Count: number(event, "k8s.event.count"), N: number(event, "k8s.event.occurrences"), First: at, At: at,
		Details: detailsOf(event),
	}
	r.Kind = KindOf(r.Reason, r.Message)
	if r.Count > 1 {
		r.First = startOf(event, at)
	}
	r.identify()
	return r
}

// startOf returns when the Event occurred first, not later than at another time.
func startOf(event pcommon.Map, at time.Time) time.Time {
	start, err := time.Parse(time.RFC3339Nano, text(event, "k8s.event.start_time"))
	if err != nil || !start.Before(at) {
		return at
	}
	return time.Unix(max(0, start.Unix()), int64(start.Nanosecond())).UTC()
}

// identify makes an Event of its own of each record that has another message: those of a combined
// Event that is no failure are each about something else, such as another pod.
func (r *Record) identify() {
	switch {
	case r.Event == "":
		r.Event = strings.Join([]string{r.Object().String(), r.Reason, r.Message}, "\n")
	case isCombined(r.Message) && !r.IsFailure():
		r.Event, r.First, r.Count = r.Event+"-"+strconv.FormatInt(r.Count, 10), r.At, 1
	}
}

// IsWarning reports whether the type is not Normal.
func (r *Record) IsWarning() bool { return r.Type != "Normal" }

// IsFailure reports whether something did not work. A kubelet reports that it waits to pull an
// image again as Normal.
func (r *Record) IsFailure() bool { return r.IsWarning() || r.Kind == KindPullFailed }

// combined begins the messages of an Event that stands for others with the same reason: from the
// tenth message within ten minutes on, a controller writes all of them into one Event.
const combined = "(combined from similar events): "

func isCombined(message string) bool { return strings.HasPrefix(message, combined) }

// Text is the message without the words that say that the Event stands for others.
func (r *Record) Text() string { return strings.TrimPrefix(r.Message, combined) }

// IsForeign reports whether the Event is about an object that its namespace does not speak for:
// anybody who may write Events there can name any object.
func (r *Record) IsForeign() bool { return r.Resolution == "foreign" }

// assigned matches the message of a scheduler: its Events have no node.
var assigned = regexp.MustCompile(`^Successfully assigned \S+ to (\S+)$`)

// schedulers matches the names of schedulers. A profile can have any name, and its Events have the
// action of the scheduler.
var schedulers = regexp.MustCompile(`scheduler|^volcano$`)

// NodeOfPod returns the node of the Event, or the one that a scheduler has chosen; empty: not
// known.
func (r *Record) NodeOfPod() string {
	isOfScheduler := r.Action == "Binding" || schedulers.MatchString(r.Reporter)
	if r.Node == "" && r.Pod != "" && r.Reason == "Scheduled" && isOfScheduler {
		if match := assigned.FindStringSubmatch(r.Message); match != nil {
			return match[1]
		}
	}
	return r.Node
}

// latest bounds times, so that sums with durations do not overflow.
const latest = math.MaxInt64 - int64(366*24*time.Hour)

func timeOf(stamp pcommon.Timestamp) time.Time {
	return time.Unix(0, int64(min(stamp, pcommon.Timestamp(latest)))).UTC()
}

// number returns an attribute that is an integer, at least 1: it can be missing.
func number(m pcommon.Map, key string) int64 {
	value, ok := m.Get(key)
	if !ok || value.Type() != pcommon.ValueTypeInt {
		return 1
	}
	return min(max(1, value.Int()), MaxCount)
}

func text(m pcommon.Map, key string) string {
	value, ok := m.Get(key)
	if !ok {
		return ""
	}
	return Cut(value.AsString(), maxName)
}

// Cut returns at most so many bytes of a text, and an ellipsis if it is longer.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
