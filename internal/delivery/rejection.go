// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"reflect"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
)

// rejection is what an error of the next consumer means for the logs that it rejected.
type rejection struct {
	// permanent reports whether every pipeline that rejected logs did so with a permanent error. A
	// pipeline that rejected them with a retryable error may still accept them.
	permanent bool
	// someDropped reports whether a pipeline rejected logs with a permanent error while another one
	// rejected them with a retryable error.
	someDropped bool
	// rests hold the logs that the pipelines did not accept; nil: any of them may not be accepted.
	// Processors may have changed them, and a queue of an exporter may have merged them with others.
	rests []plog.Logs
}

// classify walks the tree of errors. Three rules apply, and all of them prefer a duplicate to a
// loss:
//
//   - An error is permanent if it, or an error that it wraps, is the result of NewPermanent. This
//     is what IsPermanent of the Collector means. A consumererror.Error with a status that OTLP
//     does not retry is not permanent: exporterhelper retries it too, and an HTTP status of 401 or
//     500 ends when somebody renews a token or repairs a backend.
//   - Joined errors are those of several pipelines or exporters (a fan-out joins them at any depth,
//     and components wrap what it returns). They are permanent if all of them are. A component that
//     marks joined errors as permanent decides for all of them.
//   - A consumererror.Logs names the logs that a pipeline did not accept. Those of all pipelines
//     are all that is left to deliver, if each of them names its own.
func classify(err error) rejection {
	if reflect.TypeOf(err) == permanentType {
		r := classify(errors.Unwrap(err))
		r.permanent = true
		return r
	}
	switch e := err.(type) { //nolint:errorlint // this function itself walks along the tree
	case consumererror.Logs:
		r := classify(e.Unwrap())
		// The part is what this component rejected of its logs. A part that is deeper in the tree
		// holds logs that a component may have changed since. An empty part names nothing, so any
		// record may be missing.
		if e.Data().LogRecordCount() > 0 {
			r.rests = []plog.Logs{e.Data()}
		}
		return r
	case interface{ Unwrap() []error }:
		return classifyJoined(e.Unwrap())
	case interface{ Unwrap() error }:
		return classify(e.Unwrap())
	default:
		return rejection{permanent: consumererror.IsPermanent(err)}
	}
}

// permanentType is the type of the errors that NewPermanent returns. IsPermanent cannot tell
// whether an error is permanent itself or only one of the errors that are joined in it.
var permanentType = reflect.TypeOf(consumererror.NewPermanent(errors.New("")))

func classifyJoined(errs []error) rejection {
	var permanent, retryable []rejection
	for _, err := range errs {
		if err == nil {
			continue
		}
		if r := classify(err); r.permanent {
			permanent = append(permanent, r)
		} else {
			retryable = append(retryable, r)
		}
	}
	if len(retryable) == 0 {
		return together(permanent)
	}
	r := together(retryable)
	r.someDropped = r.someDropped || len(permanent) > 0
	return r
}

// together joins rejections, which are all permanent or all retryable.
func together(all []rejection) (r rejection) {
	named := true
	for _, one := range all {
		r.permanent = one.permanent
		r.someDropped = r.someDropped || one.someDropped
		r.rests = append(r.rests, one.rests...)
		named = named && one.rests != nil
	}
	if !named {
		r.rests = nil // One of them may need any of the logs again.
	}
	return r
}

// uidAttribute is the attribute of records that identifies them. Two receivers of one cluster use the same
// for the same event.
const uidAttribute = "log.record.uid"

// uids returns the number of records for each UID; an empty one: those without.
func uids(logs plog.Logs) map[string]int {
	found := map[string]int{}
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				found[uid(lr)]++
			}
		}
	}
	return found
}

func uid(lr plog.LogRecord) string {
	value, ok := lr.Attributes().Get(uidAttribute)
	if !ok {
		return ""
	}
	return value.AsString()
}

// originals returns the UIDs of the offered records that the rests name, and how many records have
// them. It returns nil if a record of the rests cannot be matched with an offered one: what a
// processor made of an offered one would be lost.
func originals(offered plog.Logs, rests []plog.Logs) (named map[string]bool, records int) {
	have := uids(offered) // Each of them has one.
	named = map[string]bool{}
	for _, rest := range rests {
		for uid := range uids(rest) {
			switch {
			case have[uid] == 0:
				return nil, 0
			case !named[uid]:
				named[uid] = true
				records += have[uid]
			}
		}
	}
	return named, records
}

// only removes the records without one of the UIDs.
func only(logs plog.Logs, named map[string]bool) {
	logs.ResourceLogs().RemoveIf(func(rl plog.ResourceLogs) bool {
		rl.ScopeLogs().RemoveIf(func(sl plog.ScopeLogs) bool {
			sl.LogRecords().RemoveIf(func(lr plog.LogRecord) bool { return !named[uid(lr)] })
			return sl.LogRecords().Len() == 0
		})
		return rl.ScopeLogs().Len() == 0
	})
}
