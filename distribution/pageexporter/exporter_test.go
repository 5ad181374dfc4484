// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tmaxmax/go-sse"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the golden page again")

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// serve starts the exporter as a Collector does, and returns it with its address.
func serve(t *testing.T) (e *pageExporter, url string) {
	t.Helper()
	factory := NewFactory()
	config := factory.CreateDefaultConfig().(*Config)
	config.Server.NetAddr.Endpoint = "127.0.0.1:0"
	made, err := factory.CreateLogs(t.Context(), exportertest.NewNopSettings(factory.Type()), config)
	require.NoError(t, err)
	require.NoError(t, made.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		stopped, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		assert.NoError(t, made.Shutdown(stopped), "it does not wait for open pages")
		http.DefaultClient.CloseIdleConnections()
	})
	e = made.(*pageExporter)
	return e, "http://" + e.address.String()
}

// eventLog is one record as the receiver emits it.
func eventLog(t *testing.T, reason, message string) plog.Logs {
	t.Helper()
	logs := plog.NewLogs()
	resource := logs.ResourceLogs().AppendEmpty()
	require.NoError(t, resource.Resource().Attributes().FromRaw(map[string]any{
		"k8s.namespace.name": "demo", "k8s.object.api_version": "v1", "k8s.object.kind": "Pod", "k8s.object.name": "stuck-5d9f-abc",
		"k8s.owner.chain": []any{"replicaset.apps/stuck-5d9f", "deployment.apps/stuck"}, "tilt.manifest": "stuck",
	}))
	record := resource.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("k8s.event")
	record.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	record.SetSeverityText("Warning")
	record.Body().SetStr(message)
	require.NoError(t, record.Attributes().FromRaw(map[string]any{
		"log.record.uid": reason, "k8s.event.uid": reason, "k8s.event.reason": reason,
		"k8s.event.occurrences": 2, "k8s.event.count": 2, "k8s.owner.resolution": "complete",
	}))
	return logs
}

func get(t *testing.T, url string) (body string, header http.Header) {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	read, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(read), response.Header
}

func TestThePage(t *testing.T) {
	e, url := serve(t)
	page, header := get(t, url)
	assert.Contains(t, page, "Nothing has happened in the last 60 minutes.")
	assert.Equal(t, "text/html; charset=utf-8", header.Get("Content-Type"))
	for _, file := range assets {
		assert.Contains(t, page, file)
		content, _ := get(t, url+"/"+file)
		assert.NotEmpty(t, content)
	}
	require.NoError(t, e.ConsumeLogs(t.Context(), eventLog(t, "FailedScheduling", "0/3 nodes are available")))
	page, _ = get(t, url)
	assert.Contains(t, page, "0/3 nodes are available")
	page, _ = get(t, url+"/?reason=BackOff")
	assert.NotContains(t, page, "0/3 nodes are available")
	assert.Contains(t, page, `Nothing of what is chosen has happened in the last minute. <a href=".">Show everything</a>`)
}

func TestTheWholePageIsAsItIsRecorded(t *testing.T) {
	s, _ := storeAt(noon)
	s.add([]entry{
		podEvent("fe", "fe-1-a", "Started"),
		podEvent("fe", "fe-1-a", "BackOff", warning, func(e *entry) {
			e.occurrences, e.count, e.container, e.message = 2, 5, "web", "Back-off restarting failed container"
		}),
		podEvent("fe", "", "ScalingReplicaSet", func(e *entry) { e.chain, e.at, e.of[traitManifest] = e.chain[:1], noon.Add(-5*time.Minute), "fe" }),
		podEvent("", "lost", "Killing", func(e *entry) { e.chain, e.resolution = e.chain[2:], "forbidden" }),
	})
	var page bytes.Buffer
	require.NoError(t, templates.ExecuteTemplate(&page, "page", s.see(filterFrom(map[string][]string{"namespace": {"demo"}}))))

	path := filepath.Join("testdata", "page.html")
	if *update {
		require.NoError(t, os.WriteFile(path, page.Bytes(), 0o600))
	}
	golden, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(golden), page.String())
}

func FuzzWhatEventsSayStaysText(f *testing.F) {
	f.Add(`<script>alert(1)</script>`)
	f.Add(`"><img src=x onerror=alert(1)>`)
	f.Add(`" autofocus onfocus="alert(1)`)
	f.Add("</textarea>'\"`\u202e\x00\xff")
	f.Fuzz(func(t *testing.T, hostile string) {
		render := func(text string) string {
			s, _ := storeAt(noon)
			s.add([]entry{podEvent(text, text, text, func(e *entry) {
				e.id, e.message, e.container, e.resolution, e.chain[2].Kind = text, text, text, text, text
				e.of = traits{text, text, text, text}
			})})
			var page bytes.Buffer
			require.NoError(t, templates.ExecuteTemplate(&page, "page", s.see(filterFrom(map[string][]string{"manifest": {text}, "name": {text}, "kind": {text}, "text": {text}}))))
			return page.String()
		}
		for quoted, becomes := range map[string]string{"<": "an element", `"`: "an attribute"} {
			assert.Equal(t, strings.Count(render("x"), quoted), strings.Count(render("x"+hostile), quoted), becomes+" comes of it")
		}
	})
}

// follow reads the updates of a page until the test ends.
func follow(t *testing.T, url string) <-chan sse.Event {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request) //nolint:bodyclose // the goroutine below closes it
	require.NoError(t, err)
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	events := make(chan sse.Event)
	go func() {
		defer close(events)
		defer response.Body.Close()
		for event, err := range sse.Read(response.Body, nil) {
			if err != nil {
				return
			}
			select {
			case events <- event:
			case <-t.Context().Done():
				return
			}
		}
	}()
	return events
}

// nextWith skips updates until one has all parts.
func nextWith(t *testing.T, events <-chan sse.Event, parts ...string) sse.Event {
	t.Helper()
	for event := range events {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(event.Data, part)
		}
		if all {
			return event
		}
	}
	t.Fatal("the updates ended without ", parts)
	return sse.Event{}
}

// TestUnderAnyPath is about proxies in front of the page: one may remove its own prefix from the
// path, another may keep it.
func TestUnderAnyPath(t *testing.T) {
	_, url := serve(t)
	for name, path := range map[string]string{
		"no prefix":                "/",
		"a prefix":                 "/events/",
		"the path of an API proxy": "/api/v1/namespaces/monitoring/services/kube-events:page/proxy/",
	} {
		t.Run(name, func(t *testing.T) {
			page, header := get(t, url+path)
			assert.Equal(t, "text/html; charset=utf-8", header.Get("Content-Type"))
			assert.Empty(t, regexp.MustCompile(`(href|src|action)="/`).FindAllString(page, -1), "an address that leaves the prefix")
			for file, contentType := range map[string]string{"page.css": "text/css", "page.js": "text/javascript"} {
				_, header := get(t, url+path+file)
				assert.Contains(t, header.Get("Content-Type"), contentType)
			}
			updates := follow(t, url+path+"updates")
			nextWith(t, updates, "Nothing has happened")
		})
	}
}

func TestAPathWithoutTheSlashLeadsToThePage(t *testing.T) {
	_, url := serve(t)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for path, want := range map[string]string{
		"/events":                "./events/",
		"/tools/events":          "./events/",
		"/events?reason=BackOff": "./events/?reason=BackOff",
		"/http:evil.example":     "./http:evil.example/",
		"//evil.example":         "/evil.example", // the path without the empty segment
	} {
		t.Run(path, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			require.NoError(t, err)
			request.URL.Path, request.URL.RawQuery, _ = strings.Cut(path, "?")
			response, err := client.Do(request)
			require.NoError(t, err)
			defer response.Body.Close()
			assert.Equal(t, want, response.Header.Get("Location"))
			assert.Equal(t, http.StatusTemporaryRedirect, response.StatusCode)
		})
	}
}

func TestUpdatesAreThePartsThatChanged(t *testing.T) {
	e, url := serve(t)
	events := follow(t, url+"/updates")
	nextWith(t, events, "Nothing has happened")
	assert.Equal(t, sse.Event{Type: "order", Data: "[]"}, <-events, "a browser passes over events without data")

	require.NoError(t, e.ConsumeLogs(t.Context(), eventLog(t, "FailedScheduling", "0/3 nodes are available")))
	card := nextWith(t, events, "<article", "0/3 nodes are available")
	assert.Equal(t, "part", card.Type)
	order := <-events
	assert.Equal(t, "order", order.Type)
	var ids []string
	require.NoError(t, json.Unmarshal([]byte(order.Data), &ids))
	require.Len(t, ids, 2)
	assert.Equal(t, "troubled", ids[0], "the heading")
	assert.Contains(t, card.Data, `id="`+ids[1]+`"`)

	require.NoError(t, e.ConsumeLogs(t.Context(), eventLog(t, "BackOff", "again")))
	nextWith(t, events, "<article", "again")
	require.NoError(t, e.ConsumeLogs(t.Context(), eventLog(t, "Killing", "more")))
	assert.Equal(t, "part", (<-events).Type, "the cards are in the order in which they were")
}

func TestACardThatComesBackIsSentAgain(t *testing.T) {
	recorder := httptest.NewRecorder()
	session, err := sse.Upgrade(recorder, httptest.NewRequest(http.MethodGet, "/updates", nil))
	require.NoError(t, err)
	s, _ := storeAt(noon)
	s.add([]entry{podEvent("fe", "a", "Killing")})
	with, without := s.see(filterFrom(nil)), view{}
	sent := map[string]string{}
	for _, v := range []view{with, with, without, with} {
		require.NoError(t, send(session, v, sent))
	}
	assert.Equal(t, 2, strings.Count(recorder.Body.String(), "<article"))
	require.NoError(t, send(session, without, sent))
	once, _ := without.parts()
	assert.Len(t, sent, len(once)+1, "it keeps what it sent of what is there")
}

func TestUpdatesFollowTheFilter(t *testing.T) {
	e, url := serve(t)
	events := follow(t, url+"/updates?reason=BackOff")
	require.NoError(t, e.ConsumeLogs(t.Context(), eventLog(t, "FailedScheduling", "0/3 nodes are available")))
	require.NoError(t, e.ConsumeLogs(t.Context(), eventLog(t, "BackOff", "back-off")))
	card := nextWith(t, events, "<article")
	assert.Contains(t, card.Data, "back-off")
	assert.NotContains(t, card.Data, "0/3 nodes are available")
}

func TestWhoeverLooksDoesNotHoldTheShutdown(t *testing.T) {
	e, url := serve(t)
	events := follow(t, url+"/updates")
	<-events
	ended, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, e.Shutdown(ended))
	for more := true; more; { // updates in flight
		_, more = <-events
	}
}

func TestWhoeverIsSlowIsCutOffByTheShutdown(t *testing.T) {
	e, url := serve(t)
	slow, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	defer func() { _ = slow.Close() }()
	_, err = slow.Write([]byte("GET / HTTP/1.1\r\n"))
	require.NoError(t, err)
	get(t, url) // After that, the connection before it has been taken.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, e.Shutdown(ended))
	_, err = slow.Read(make([]byte, 1))
	assert.Error(t, err)
}

func TestWhoeverHasLeftIsForgotten(t *testing.T) {
	e, url := serve(t)
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/updates", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	leave()
	_ = response.Body.Close()
	require.Eventually(t, func() bool {
		e.store.mu.Lock()
		defer e.store.mu.Unlock()
		return len(e.store.watchers) == 0
	}, 10*time.Second, 10*time.Millisecond)
}

func TestOtherSitesCannotReadThePage(t *testing.T) {
	_, url := serve(t)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	for host, want := range map[string]int{
		"127.0.0.1:" + port: http.StatusOK, "localhost:" + port: http.StatusOK, "[::1]:" + port: http.StatusOK,
		"127.0.0.1": http.StatusOK, "LocalHost": http.StatusOK, "[::1]": http.StatusOK, "[2001:db8::1]": http.StatusForbidden,
		"0.0.0.0:" + port:      http.StatusOK, // a browser opens a page on all addresses this way
		"evil.example:" + port: http.StatusForbidden, "evil.example": http.StatusForbidden, "192.0.2.1": http.StatusForbidden,
	} {
		t.Run(host, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			require.NoError(t, err)
			request.Host = host
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			defer response.Body.Close()
			assert.Equal(t, want, response.StatusCode)
			if want == http.StatusOK {
				assert.Contains(t, response.Header.Get("Content-Security-Policy"), "default-src 'none'")
			}
		})
	}
}

func TestAnAddressThatIsTaken(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	config := createDefaultConfig().(*Config)
	config.Server.NetAddr.Endpoint = listener.Addr().String()
	e := newPageExporter(config, componenttest.NewNopTelemetrySettings())
	err = e.Start(t.Context(), componenttest.NewNopHost())
	require.ErrorContains(t, err, `endpoint: cannot listen on "`+listener.Addr().String()+`"`)
	assert.ErrorContains(t, err, "set a free address")
	assert.NoError(t, e.Shutdown(t.Context()), "of an exporter that did not start")
}

func TestConfig(t *testing.T) {
	config := createDefaultConfig().(*Config)
	require.NoError(t, config.Validate())
	assert.Equal(t, "127.0.0.1:8090", config.Server.NetAddr.Endpoint, "reached from the same machine only")

	require.NoError(t, confmap.NewFromStringMap(map[string]any{"endpoint": "localhost:9", "lines": true}).Unmarshal(config))
	assert.True(t, config.Lines)
	assert.Equal(t, "localhost:9", config.Server.NetAddr.Endpoint)
	err := confmap.NewFromStringMap(map[string]any{"line": true}).Unmarshal(createDefaultConfig())
	assert.ErrorContains(t, err, "invalid keys: line")
	config.Server.NetAddr.Endpoint = ""
	assert.ErrorContains(t, config.Validate(), "endpoint: it is empty: set the address")
}

func TestManyWriteWhileManyLook(t *testing.T) {
	e, url := serve(t)
	var made exporter.Logs = e
	assert.False(t, made.Capabilities().MutatesData)
	var working sync.WaitGroup
	for i := range 4 {
		var batches []plog.Logs
		for j := range 20 {
			batches = append(batches, eventLog(t, fmt.Sprint("Reason", i, j), "m"))
		}
		working.Go(func() {
			for _, batch := range batches {
				assert.NoError(t, e.ConsumeLogs(t.Context(), batch))
				assert.NotZero(t, e.store.see(filterFrom(nil)).All)
			}
		})
	}
	working.Wait()
	page, _ := get(t, url)
	assert.Contains(t, page, "<b>160</b> occurrences")
}
