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

// logsOf returns logs with a record for each name, which is also its UID.
func logsOf(names ...string) plog.Logs {
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, name := range names {
		record := records.AppendEmpty()
		record.Body().SetStr(name)
		record.Attributes().PutStr(uidAttribute, name)
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
	const permanent, retryable, mixed = "permanent", "retryable", "retryable, some dropped"
	for name, tt := range map[string]struct {
		err  error
		want string
		rest []string // nil: unknown
	}{
		"a plain error":                               {full, retryable, nil},
		"a permanent error":                           {invalid, permanent, nil},
		"a permanent error without a cause":           {consumererror.NewPermanent(nil), permanent, nil},
		"the end of a context":                        {context.DeadlineExceeded, retryable, nil},
		"a wrapped plain error":                       {fmt.Errorf("no more retries left: %w", full), retryable, nil},
		"a wrapped permanent error":                   {fmt.Errorf("not retryable error: %w", invalid), permanent, nil},
		"a permanent error of a component downstream": {consumererror.NewDownstream(invalid), permanent, nil},

		"an error marked as retryable":                   {consumererror.NewRetryableError(full), retryable, nil},
		"a permanent error marked as retryable":          {consumererror.NewRetryableError(invalid), permanent, nil},
		"an HTTP status that OTLP retries":               {consumererror.NewOTLPHTTPError(full, http.StatusServiceUnavailable), retryable, nil},
		"an HTTP status that OTLP does not retry":        {consumererror.NewOTLPHTTPError(full, http.StatusUnauthorized), retryable, nil},
		"an HTTP status in a permanent error":            {consumererror.NewPermanent(consumererror.NewOTLPHTTPError(nil, http.StatusBadRequest)), permanent, nil},
		"a status around a permanent error":              {consumererror.NewOTLPHTTPError(invalid, http.StatusServiceUnavailable), permanent, nil},
		"two permanent errors":                           {errors.Join(invalid, invalid), permanent, nil},
		"a permanent and a plain error":                  {errors.Join(invalid, full), mixed, nil},
		"a plain and a permanent error":                  {multierr.Append(full, invalid), mixed, nil},
		"three errors":                                   {multierr.Combine(invalid, full, full), mixed, nil},
		"no joined errors":                               {joinedErrors{}, retryable, nil},
		"joined errors, some of them nil":                {joinedErrors{nil, invalid, nil}, permanent, nil},
		"only nil":                                       {joinedErrors{nil}, retryable, nil},
		"wrapped joined errors":                          {fmt.Errorf("export: %w", errors.Join(invalid, full)), mixed, nil},
		"wrapped joined permanent errors":                {consumererror.NewDownstream(fmt.Errorf("export: %w", errors.Join(invalid, invalid))), permanent, nil},
		"several errors in one message":                  {fmt.Errorf("first: %w, second: %w", invalid, full), mixed, nil},
		"joined errors within joined errors":             {errors.Join(invalid, fmt.Errorf("export: %w", multierr.Append(invalid, full))), mixed, nil},
		"a mixture, and a plain error":                   {errors.Join(multierr.Append(invalid, full), full), mixed, nil},
		"joined errors within a single joined error":     {errors.Join(multierr.Append(invalid, full)), mixed, nil},
		"joined errors that are marked as permanent":     {consumererror.NewPermanent(errors.Join(full, full)), permanent, nil},
		"a mixture that is marked as permanent":          {fmt.Errorf("export: %w", consumererror.NewPermanent(errors.Join(invalid, full))), permanent, nil},
		"a mixture marked as permanent, and another one": {errors.Join(consumererror.NewPermanent(errors.Join(invalid, full)), full), mixed, nil},
		"a part":                                          {part(full, "a"), retryable, []string{"a"}},
		"a wrapped part":                                  {fmt.Errorf("no more retries left: %w", part(full, "a")), retryable, []string{"a"}},
		"an empty part":                                   {part(full), retryable, nil},
		"a part within a part":                            {part(part(full, "a"), "a", "b"), retryable, []string{"a", "b"}},
		"a part within an empty part":                     {part(part(full, "a")), retryable, []string{"a"}},
		"a part, rejected with a permanent error":         {part(invalid, "a"), permanent, []string{"a"}},
		"a permanent error around a part":                 {consumererror.NewPermanent(part(full, "a")), permanent, []string{"a"}},
		"a part with several causes":                      {part(errors.Join(invalid, full), "a"), mixed, []string{"a"}},
		"a part, and a permanent error":                   {errors.Join(part(full, "a"), invalid), mixed, []string{"a"}},
		"a part, and a plain error":                       {errors.Join(part(full, "a"), full), retryable, nil},
		"two parts":                                       {errors.Join(part(full, "a"), part(full, "b")), retryable, []string{"a", "b"}},
		"two parts, and a plain error":                    {multierr.Combine(part(full, "a"), part(full, "b"), full), retryable, nil},
		"two parts, and a permanent error":                {multierr.Combine(part(full, "a"), invalid, part(full, "b")), mixed, []string{"a", "b"}},
		"a part, and a part with a permanent error":       {errors.Join(part(full, "a"), part(invalid, "b")), mixed, []string{"a"}},
		"two parts with permanent errors":                 {errors.Join(part(invalid, "a"), part(invalid, "b")), permanent, []string{"a", "b"}},
		"a part in joined errors that are wrapped":        {consumererror.NewDownstream(errors.Join(part(full, "a"))), retryable, []string{"a"}},
		"a permanent error around a part and another one": {consumererror.NewPermanent(errors.Join(part(full, "a"), invalid)), permanent, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := classify(tt.err)
			assert.Equal(t, tt.want == permanent, got.permanent, "permanent")
			if !got.permanent {
				assert.Equal(t, tt.want == mixed, got.someDropped, "some dropped")
			}
			var rest []string
			for _, logs := range got.rests {
				rest = append(rest, namesIn(logs)...)
			}
			assert.Equal(t, tt.rest, rest)
		})
	}
}

// joinedErrors is an error that joins others, and nil errors too.
type joinedErrors []error

func (j joinedErrors) Error() string   { return "joined" }
func (j joinedErrors) Unwrap() []error { return j }

func TestTheRestHasNoEmptyResourcesOrScopes(t *testing.T) {
	logs := logsOf("a", "b")
	for _, name := range []string{"c", "d"} {
		logsOf(name).ResourceLogs().At(0).CopyTo(logs.ResourceLogs().AppendEmpty())
	}
	logsOf("e").ResourceLogs().At(0).ScopeLogs().At(0).CopyTo(logs.ResourceLogs().At(1).ScopeLogs().AppendEmpty())
	only(logs, map[string]bool{"b": true, "e": true})
	assert.Equal(t, []string{"b", "e"}, namesIn(logs))
	assert.Equal(t, 2, logs.ResourceLogs().Len())
	assert.Equal(t, 1, logs.ResourceLogs().At(1).ScopeLogs().Len())
}
