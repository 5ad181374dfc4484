// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/multierr"
)

// logsOf returns logs with a record for each name.
func logsOf(names ...string) plog.Logs {
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, name := range names {
		records.AppendEmpty().Body().SetStr(name)
	}
	return logs
}

// namesIn returns the names of all records.
func namesIn(logs plog.Logs) (names []string) {
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				names = append(names, record.Body().Str())
			}
		}
	}
	return names
}

func TestWhatAnErrorOfThePipelinesMeans(t *testing.T) {
	full := errors.New("the queue is full")
	invalid := consumererror.NewPermanent(errors.New("invalid"))
	part := func(err error, names ...string) error { return consumererror.NewLogs(err, logsOf(names...)) }
	const permanent, retryable = true, false
	for name, tt := range map[string]struct {
		err  error
		want bool // whether it is permanent
	}{
		"a plain error":                               {full, retryable},
		"a permanent error":                           {invalid, permanent},
		"a permanent error without a cause":           {consumererror.NewPermanent(nil), permanent},
		"the end of a context":                        {context.DeadlineExceeded, retryable},
		"a wrapped plain error":                       {fmt.Errorf("no more retries left: %w", full), retryable},
		"a wrapped permanent error":                   {fmt.Errorf("not retryable error: %w", invalid), permanent},
		"a permanent error of a component downstream": {consumererror.NewDownstream(invalid), permanent},

		"an error marked as retryable":                   {consumererror.NewRetryableError(full), retryable},
		"a permanent error marked as retryable":          {consumererror.NewRetryableError(invalid), permanent},
		"an HTTP status that OTLP retries":               {consumererror.NewOTLPHTTPError(full, http.StatusServiceUnavailable), retryable},
		"an HTTP status that OTLP does not retry":        {consumererror.NewOTLPHTTPError(full, http.StatusUnauthorized), retryable},
		"an HTTP status in a permanent error":            {consumererror.NewPermanent(consumererror.NewOTLPHTTPError(nil, http.StatusBadRequest)), permanent},
		"a status around a permanent error":              {consumererror.NewOTLPHTTPError(invalid, http.StatusServiceUnavailable), permanent},
		"two permanent errors":                           {errors.Join(invalid, invalid), permanent},
		"a permanent and a plain error":                  {errors.Join(invalid, full), retryable},
		"a plain and a permanent error":                  {multierr.Append(full, invalid), retryable},
		"three errors":                                   {multierr.Combine(invalid, full, full), retryable},
		"no joined errors":                               {joinedErrors{}, retryable},
		"joined errors, some of them nil":                {joinedErrors{nil, invalid, nil}, permanent},
		"only nil":                                       {joinedErrors{nil}, retryable},
		"wrapped joined errors":                          {fmt.Errorf("export: %w", errors.Join(invalid, full)), retryable},
		"wrapped joined permanent errors":                {consumererror.NewDownstream(fmt.Errorf("export: %w", errors.Join(invalid, invalid))), permanent},
		"several errors in one message":                  {fmt.Errorf("first: %w, second: %w", invalid, full), retryable},
		"joined errors within joined errors":             {errors.Join(invalid, fmt.Errorf("export: %w", multierr.Append(invalid, full))), retryable},
		"a mixture, and a plain error":                   {errors.Join(multierr.Append(invalid, full), full), retryable},
		"joined errors within a single joined error":     {errors.Join(multierr.Append(invalid, full)), retryable},
		"joined errors that are marked as permanent":     {consumererror.NewPermanent(errors.Join(full, full)), permanent},
		"a mixture that is marked as permanent":          {fmt.Errorf("export: %w", consumererror.NewPermanent(errors.Join(invalid, full))), permanent},
		"a mixture marked as permanent, and another one": {errors.Join(consumererror.NewPermanent(errors.Join(invalid, full)), full), retryable},
		"a part":         {part(full, "a"), retryable},
		"a wrapped part": {fmt.Errorf("no more retries left: %w", part(full, "a")), retryable},
		"a part, rejected with a permanent error":   {part(invalid, "a"), permanent},
		"a permanent error around a part":           {consumererror.NewPermanent(part(full, "a")), permanent},
		"a part with several causes":                {part(errors.Join(invalid, full), "a"), retryable},
		"a part, and a permanent error":             {errors.Join(part(full, "a"), invalid), retryable},
		"a part, and a plain error":                 {errors.Join(part(full, "a"), full), retryable},
		"a part, and a part with a permanent error": {errors.Join(part(full, "a"), part(invalid, "b")), retryable},
		"two parts with permanent errors":           {errors.Join(part(invalid, "a"), part(invalid, "b")), permanent},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, IsPermanent(tt.err))
		})
	}
}

// joinedErrors is an error that joins others, and nil errors too.
type joinedErrors []error

func (j joinedErrors) Error() string   { return "joined" }
func (j joinedErrors) Unwrap() []error { return j }
