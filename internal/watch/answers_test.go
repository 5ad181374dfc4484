// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/queue"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// answered runs a stream for a minute against a server that answers in this way.
func answered(t *testing.T, config watch.Settings, answer http.HandlerFunc) *observer {
	o, queue := &observer{}, queue.New(100_000)
	client, err := kubeclient.Events(&rest.Config{Host: "http://proxy", Transport: apitest.InMemory{Handler: answer}})
	require.NoError(t, err)
	config.Client, config.Taker, config.Observer, config.Pages = client, queue, o, semaphore.NewWeighted(1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		watch.New(config).Run(ctx)
	}()
	for open := true; open; {
		select {
		case <-queue.Signal():
			queue.Take(nil)
		case <-done:
			open = false
		}
	}
	return o
}

func writeJSON(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(text))
}

func TestAListWhoseTokenRepeatsIsNotReadForEver(t *testing.T) {
	for name, tokens := range map[string][]string{"always the same": {"a"}, "in turn": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				o := answered(t, watch.Settings{}, func(w http.ResponseWriter, _ *http.Request) {
					token := tokens[requests%len(tokens)]
					requests++
					writeJSON(w, fmt.Sprintf(`{"kind":"EventList","apiVersion":"v1","metadata":{"resourceVersion":"5","continue":%q},"items":[{"metadata":{"name":"e"}}]}`, token))
				})
				assert.Less(t, requests, 30)
				require.NotEmpty(t, o.errs)
				assert.ErrorContains(t, o.errs[0], "repeats a page")
			})
		})
	}
}

func TestAnAnswerIsBounded(t *testing.T) {
	for name, config := range map[string]watch.Settings{"a list": {}, "a list that asks for the version": {ResourceVersion: "5"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var most atomic.Int64
				o := answered(t, config, func(w http.ResponseWriter, _ *http.Request) {
					writeJSON(w, `{"kind":"EventList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"message":"`)
					part, written := []byte(strings.Repeat("x", 32<<10)), int64(0)
					for written < 200<<20 {
						n, err := w.Write(part)
						if written += int64(n); err != nil {
							break
						}
					}
					most.Store(max(most.Load(), written))
				})
				require.NotEmpty(t, o.errs)
				assert.ErrorContains(t, o.errs[0], "more than 16 MiB")
				assert.LessOrEqual(t, most.Load(), int64(17<<20))
			})
		})
	}
}

func TestOnlyWhatDecodesIsAnAnswer(t *testing.T) {
	html := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html>Please log in</html>"))
	}
	for name, tt := range map[string]struct {
		config watch.Settings
		answer func(w http.ResponseWriter)
		want   string
	}{
		"HTML to a list":           {watch.Settings{}, html, "text/html"},
		"HTML to a watch":          {watch.Settings{ResourceVersion: "5"}, html, "text/html"},
		"JSON that is no list":     {watch.Settings{}, func(w http.ResponseWriter) { writeJSON(w, `{"login": "required"}`) }, "without a resource version"},
		"an object of another API": {watch.Settings{}, func(w http.ResponseWriter) { writeJSON(w, `{"kind": "Namespace", "apiVersion": "v1"}`) }, "unexpected object"},
		"JSON that is broken":      {watch.Settings{}, func(w http.ResponseWriter) { writeJSON(w, `{"kind": `) }, "unexpected end"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := answered(t, tt.config, func(w http.ResponseWriter, r *http.Request) {
					if tt.config.ResourceVersion != "" && isVersionRequest(r) {
						writeJSON(w, `{"kind":"EventList","apiVersion":"v1","metadata":{"resourceVersion":"5"}}`)
						return
					}
					tt.answer(w)
				})
				assert.Zero(t, o.answers)
				require.NotEmpty(t, o.errs)
				assert.ErrorContains(t, o.errs[0], tt.want)
			})
		})
	}
}
