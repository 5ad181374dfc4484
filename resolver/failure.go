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

// failureOf returns what a request's error means for the requested object; empty for no error.
func failureOf(err error) Resolution {
	switch {
	case err == nil:
		return ""
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), apierrors.IsGone(err):
		return NotFound
	case apierrors.IsForbidden(err):
		return Forbidden
	case isTimeout(err):
		return Timeout
	default:
		// This includes a wrong or expired token (401): no permission is missing, and the failure
		// usually ends when the token is renewed.
		return Unavailable
	}
}

// isTimeout reports whether no answer came in time: from the API server, or from a server behind it
// (504).
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) ||
		(errors.As(err, &timeout) && timeout.Timeout()) ||
		apierrors.IsTimeout(err)
}

// isAboutPath reports whether a 404 means that the API server does not serve the path, rather than
// that the object does not exist. The former is plain text, which client-go converts to a status.
func isAboutPath(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusNotFound {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" ||
		apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
