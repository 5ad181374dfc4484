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
	// rest holds the logs that are not accepted; nil: any of them may not be accepted.
	rest *plog.Logs
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
//   - A consumererror.Logs names the logs that a pipeline did not accept. They are all that is left
//     to deliver if no other pipeline rejected logs with a retryable error.
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
			data := e.Data()
			r.rest = &data
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
	switch {
	case len(retryable) == 1:
		r := retryable[0]
		r.someDropped = r.someDropped || len(permanent) > 0
		return r
	case len(retryable) > 1:
		return rejection{} // Each of them may need other logs again.
	case len(permanent) == 1:
		return permanent[0]
	default:
		return rejection{permanent: len(permanent) > 0}
	}
}
