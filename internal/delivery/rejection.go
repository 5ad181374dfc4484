// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"errors"
	"reflect"

	"go.opentelemetry.io/collector/consumer/consumererror"
)

// IsPermanent reports whether every pipeline that rejected data did so with a permanent error. It walks
// the tree of errors, and may be called concurrently. Two rules apply, and both prefer a duplicate to a loss:
//
//   - An error is permanent if it, or an error that it wraps, is the result of NewPermanent. This
//     is what IsPermanent of the Collector means. A consumererror.Error with a status that OTLP
//     does not retry is not permanent: exporterhelper retries it too, and an HTTP status of 401 or
//     500 ends when somebody renews a token or repairs a backend.
//   - Joined errors are those of several pipelines or exporters (a fan-out joins them at any depth,
//     and components wrap what it returns). They are permanent if all of them are. A component that
//     marks joined errors as permanent decides for all of them.
func IsPermanent(err error) bool {
	if reflect.TypeOf(err) == permanentType {
		return true
	}
	switch e := err.(type) { //nolint:errorlint // this function itself walks along the tree
	case interface{ Unwrap() []error }:
		return areAllPermanent(e.Unwrap())
	case interface{ Unwrap() error }:
		return IsPermanent(e.Unwrap())
	default:
		return consumererror.IsPermanent(err)
	}
}

// permanentType is the type of the errors that NewPermanent returns. IsPermanent cannot tell
// whether an error is permanent itself or only one of the errors that are joined in it.
var permanentType = reflect.TypeOf(consumererror.NewPermanent(errors.New("")))

func areAllPermanent(errs []error) (all bool) {
	for _, err := range errs {
		if err == nil {
			continue
		}
		if !IsPermanent(err) {
			return false
		}
		all = true
	}
	return all
}
