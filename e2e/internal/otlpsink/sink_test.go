// SPDX-License-Identifier: Apache-2.0

package otlpsink_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/otlpsink"
)

// start starts a sink and returns what sends it one log record.
func start(t *testing.T, logs func(context.Context, plog.Logs) error) (send func(context.Context) (int, error)) {
	t.Helper()
	sink, err := otlpsink.Start(otlpsink.Callbacks{Logs: logs})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sink.Stop()) })
	data := plog.NewLogs()
	data.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("a record")
	body, err := plogotlp.NewExportRequestFromLogs(data).MarshalProto()
	require.NoError(t, err)
	return func(ctx context.Context) (int, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, sink.URL+"/v1/logs", bytes.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/x-protobuf")
		request.Header.Set("replica", "one")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		defer response.Body.Close()
		return response.StatusCode, nil
	}
}

func TestTheErrorOfACallbackIsTheStatus(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
	}{
		{nil, http.StatusOK},
		{otlpsink.Rejected, http.StatusBadRequest},
		{errors.New("not now"), http.StatusServiceUnavailable},
		{consumererror.NewPermanent(errors.New("never")), http.StatusInternalServerError},
		{status.Error(codes.ResourceExhausted, "too much"), http.StatusTooManyRequests},
	} {
		records, replica := 0, ""
		send := start(t, func(ctx context.Context, logs plog.Logs) error {
			records += logs.LogRecordCount()
			replica = otlpsink.Header(ctx, "replica")
			return test.err
		})
		code, err := send(t.Context())
		require.NoError(t, err)
		assert.Equal(t, test.status, code, "%v", test.err)
		assert.Equal(t, 1, records)
		assert.Equal(t, "one", replica)
	}
}

func TestACallbackThatWaitsEndsWithTheRequest(t *testing.T) {
	ended := make(chan error, 1)
	send := start(t, func(ctx context.Context, _ plog.Logs) error {
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := send(ctx)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorIs(t, <-ended, context.Canceled)
}
