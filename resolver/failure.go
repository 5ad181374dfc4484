// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failureOf says what a request's error means for the object asked for.
func failureOf(err error) Resolution {
	switch {
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), apierrors.IsGone(err):
		return NotFound
	case apierrors.IsForbidden(err):
		return Forbidden
	case isTimeout(err):
		return Timeout
	default:
		// A wrong or expired token (401) is among these: it is no missing
		// permission, and mostly over as soon as the token is renewed.
		return Unavailable
	}
}

// isTimeout reports whether no answer came in time, be it that the API server
// was waited for or that it waited for another (504).
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) ||
		(errors.As(err, &timeout) && timeout.Timeout()) ||
		apierrors.IsTimeout(err)
}

// isAboutPath reports whether a 404 says that the API server does not serve the
// path, rather than that the object is not there. The former comes as plain
// text, from which client-go makes a status of its own.
func isAboutPath(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusNotFound {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" ||
		apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
