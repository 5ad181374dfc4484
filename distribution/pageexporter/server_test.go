// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
	"github.com/kubeevents/kubeeventsreceiver/distribution/pageexporter/internal/metadata"
)

// serve starts the exporter as a Collector does, and returns it with its address.
func serve(t *testing.T, change ...func(*Config)) (e *pageExporter, url string) {
	t.Helper()
	factory := NewFactory()
	config := factory.CreateDefaultConfig().(*Config)
	config.Server.NetAddr.Endpoint = "127.0.0.1:0"
	for _, c := range change {
		c(config)
	}
	made, err := factory.CreateLogs(t.Context(), exportertest.NewNopSettings(factory.Type()), config)
	require.NoError(t, err)
	require.NoError(t, made.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		assert.NoError(t, made.Shutdown(context.Background()))
		http.DefaultClient.CloseIdleConnections()
	})
	e = made.(*pageExporter)
	assert.False(t, e.Capabilities().MutatesData)
	return e, "http://" + e.address.String()
}

// ask sends a request with headers, of which Host is one, and does not follow redirects.
func ask(t *testing.T, method, url string, headers map[string]string) (status int, header http.Header, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	request.Host = headers["Host"]
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, response.Header, string(read)
}

func get(t *testing.T, url string) (body string, header http.Header) {
	t.Helper()
	status, header, body := ask(t, http.MethodGet, url, nil)
	require.Equal(t, http.StatusOK, status, body)
	return body, header
}

// justNow returns a record of now.
func justNow(line string) plog.Logs { return story.Records(line)[0].Logs(time.Now()) }

// TestUnderAnyPath: a proxy may remove its own prefix from the path, another may keep it.
func TestUnderAnyPath(t *testing.T) {
	e, url := serve(t)
	require.NoError(t, e.ConsumeLogs(t.Context(), justNow(unschedulable)))
	for _, path := range []string{"/", "/events/", "/api/v1/namespaces/monitoring/services/kube-events:page/proxy/"} {
		t.Run(path, func(t *testing.T) {
			page, header := get(t, url+path)
			assert.Equal(t, "text/html; charset=utf-8", header.Get("Content-Type"))
			assert.Contains(t, page, "0/3 nodes are available")
			assert.Empty(t, regexp.MustCompile(`(href|src|action)="/`).FindAllString(page, -1), "an address that leaves the prefix")
			script, _ := get(t, url+path+"page.js")
			assert.NotRegexp(t, `["'`+"`"+`]/\w`, script, "an address that leaves the prefix")
			for file, contentType := range map[string]string{"page.css": "text/css", "page.js": "text/javascript", "content": "text/html", "api/problems": "application/json"} {
				_, header := get(t, url+path+file)
				assert.Contains(t, header.Get("Content-Type"), contentType)
			}
		})
	}
}

func TestAPathWithoutTheSlashLeadsToThePage(t *testing.T) {
	_, url := serve(t)
	for path, want := range map[string]string{
		"/events": "./events/", "/tools/events": "./events/", "/events?reason=BackOff": "./events/?reason=BackOff",
		"/http:evil.example": "./http:evil.example/", "//evil.example": "./evil.example/",
	} {
		status, header, _ := ask(t, http.MethodGet, url+path, nil)
		assert.Equal(t, want, header.Get("Location"), path)
		assert.Equal(t, http.StatusTemporaryRedirect, status, path)
	}
}

func TestABrowserGetsTheSameContentOnce(t *testing.T) {
	_, url := serve(t)
	_, header := get(t, url+"/content")
	status, _, body := ask(t, http.MethodGet, url+"/content", map[string]string{"If-None-Match": header.Get("ETag")})
	assert.Equal(t, http.StatusNotModified, status)
	assert.Empty(t, body)
	_, page := get(t, url+"/")
	assert.NotEqual(t, header.Get("ETag"), page.Get("ETag"), "of another answer")
}

func TestOtherSitesCannotReadThePage(t *testing.T) {
	_, url := serve(t, func(c *Config) { c.AllowedHosts, c.MCP = []string{"events.example.com"}, true })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	link := func(site, mode, dest string) map[string]string {
		return map[string]string{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
	}
	tests := map[string]struct {
		headers map[string]string
		allowed bool
	}{
		"curl":                                {nil, true},
		"localhost":                           {map[string]string{"Host": "LocalHost:" + port}, true},
		"an IPv6 address":                     {map[string]string{"Host": "[::1]:" + port}, true},
		"an IPv6 address without a port":      {map[string]string{"Host": "[2001:db8::1]"}, true},
		"all addresses":                       {map[string]string{"Host": "0.0.0.0:" + port}, true},
		"a name that is listed":               {map[string]string{"Host": "Events.example.com"}, true},
		"a listed name with the final dot":    {map[string]string{"Host": "events.example.com.:" + port}, true},
		"a name that points here":             {map[string]string{"Host": "evil.example:" + port}, false},
		"a name below one that is listed":     {map[string]string{"Host": "x.events.example.com"}, false},
		"the address bar":                     {link("none", "navigate", "document"), true},
		"a script of the page":                {link("same-origin", "cors", "empty"), true},
		"a link on another site":              {link("cross-site", "navigate", "document"), true},
		"a frame of another site":             {link("cross-site", "navigate", "iframe"), false},
		"an image on another site":            {link("cross-site", "no-cors", "image"), false},
		"a script of another port":            {link("same-site", "cors", "empty"), false},
		"another site in an old browser":      {map[string]string{"Origin": "https://evil.example"}, false},
		"a file in an old browser":            {map[string]string{"Origin": "null"}, false},
		"a script of the page in old browser": {map[string]string{"Origin": "http://127.0.0.1:" + port}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/", "/content", "/api/problems", "/page.js"} {
				status, header, _ := ask(t, http.MethodGet, url+path, tt.headers)
				assert.Equal(t, map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[tt.allowed], status, path)
				assert.Equal(t, "same-origin", header.Get("Cross-Origin-Resource-Policy"))
				assert.Contains(t, header.Get("Content-Security-Policy"), "default-src 'none'")
			}
			status, _, _ := ask(t, http.MethodPost, url+"/mcp", tt.headers)
			if !tt.allowed || name == "a link on another site" {
				assert.Equal(t, http.StatusForbidden, status, "the tools for agents")
			} else {
				assert.NotEqual(t, http.StatusForbidden, status, "the tools for agents")
			}
		})
	}
}

func TestThePageCanOnlyBeRead(t *testing.T) {
	_, url := serve(t)
	for _, path := range []string{"/", "/api/problems", "/mcp"} {
		status, header, _ := ask(t, http.MethodPost, url+path, nil)
		assert.Equal(t, http.StatusMethodNotAllowed, status)
		assert.Equal(t, "GET, HEAD", header.Get("Allow"))
	}
}

func TestASlowViewerIsCutOffByTheShutdown(t *testing.T) {
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

func TestAnAddressThatIsTaken(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	config := createDefaultConfig().(*Config)
	config.Server.NetAddr.Endpoint = listener.Addr().String()
	e := newPageExporter(config, exportertest.NewNopSettings(NewFactory().Type()))
	err = e.Start(t.Context(), componenttest.NewNopHost())
	require.ErrorContains(t, err, `endpoint: cannot listen on "`+listener.Addr().String()+`"`)
	assert.ErrorContains(t, err, "set a free address")
	assert.NoError(t, e.Shutdown(t.Context()), "of an exporter that did not start")
}

func TestAMissingExtensionOrCertificateIsReportedWithTheFix(t *testing.T) {
	for message, settings := range map[string]map[string]any{
		"add the extensions that auth and middlewares name to extensions and service.extensions": {"auth": map[string]any{"authenticator": "password"}},
		"set cert_file and key_file to files that the Collector may read":                        {"tls": map[string]any{"cert_file": "missing.crt", "key_file": "missing.key"}},
	} {
		config := createDefaultConfig().(*Config)
		config.Server.NetAddr.Endpoint = "127.0.0.1:0"
		require.NoError(t, confmap.NewFromStringMap(settings).Unmarshal(config))
		err := newPageExporter(config, exportertest.NewNopSettings(NewFactory().Type())).Start(t.Context(), componenttest.NewNopHost())
		require.ErrorContains(t, err, message)
		assert.NotContains(t, err.Error(), "free address")
	}
}

func TestAPageForEverybodyIsLoggedWithTheFix(t *testing.T) {
	for name, tt := range map[string]struct {
		endpoint string
		auth     bool
		warned   int
	}{
		"from this machine":  {"127.0.0.1:0", false, 0},
		"from all":           {"0.0.0.0:0", false, 1},
		"from all, password": {"0.0.0.0:0", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			core, log := observer.New(zap.WarnLevel)
			settings := exportertest.NewNopSettings(NewFactory().Type())
			settings.Logger = zap.New(core)
			config, host := createDefaultConfig().(*Config), extensions{}
			config.Server.NetAddr.Endpoint = tt.endpoint
			if tt.auth {
				require.NoError(t, confmap.NewFromStringMap(map[string]any{"auth": map[string]any{"authenticator": "password"}}).Unmarshal(config))
				host[component.MustNewID("password")] = password{}
			}
			e := newPageExporter(config, settings)
			require.NoError(t, e.Start(t.Context(), host))
			assert.Equal(t, tt.warned, log.FilterMessageSnippet("Set auth of event_page, or its endpoint to 127.0.0.1:8090").Len())
			assert.NoError(t, e.Shutdown(t.Context()))
		})
	}
}

// password is an extension that lets everybody in.
type password struct{ component.Component }

func (password) Authenticate(ctx context.Context, _ map[string][]string) (context.Context, error) {
	return ctx, nil
}

func TestPipelinesOfOtherSignalsNameTheFix(t *testing.T) {
	factory, settings := NewFactory(), exportertest.NewNopSettings(metadata.Type)
	_, errMetrics := factory.CreateMetrics(t.Context(), settings, createDefaultConfig())
	_, errTraces := factory.CreateTraces(t.Context(), settings, createDefaultConfig())
	for _, err := range []error{errMetrics, errTraces} {
		assert.EqualError(t, err, "the page takes logs only; write event_page in the exporters of a logs pipeline, and remove it from this one")
	}
}

func TestConfig(t *testing.T) {
	config := createDefaultConfig().(*Config)
	require.NoError(t, config.Validate())
	assert.Equal(t, "127.0.0.1:8090", config.Server.NetAddr.Endpoint, "reached from the same machine only")
	assert.False(t, config.MCP)

	require.NoError(t, confmap.NewFromStringMap(map[string]any{"endpoint": "localhost:9", "mcp": true, "allowed_hosts": []any{"a.example"}}).Unmarshal(config))
	assert.True(t, config.MCP)
	assert.Equal(t, []string{"a.example"}, config.AllowedHosts)
	assert.Equal(t, "localhost:9", config.Server.NetAddr.Endpoint)
	require.NoError(t, config.Validate())
	for message, settings := range map[string]map[string]any{
		"lines is not an option; write one of allowed_hosts, auth, ":                             {"lines": true},
		"allowed_host is not an option; did you mean allowed_hosts?":                             {"allowed_host": []any{"a.example"}},
		"port is not an option; write endpoint, with the host and the port":                      {"port": 8090},
		"has invalid keys: cert_fil":                                                             {"tls": map[string]any{"cert_fil": "a"}},
		"read_timeout: 30 has no unit; write 30s":                                                {"read_timeout": 30},
		`write_timeout: "30" has no unit; write 30s`:                                             {"write_timeout": "30"},
		`mcp: "yes" is neither true nor false; write one of them`:                                {"mcp": "yes"},
		"k8s_leader_elector is not an option; remove it; the extension kube_events_status tells": {"k8s_leader_elector": "k8s_leader_elector"},
		"harmless_reasons: 1 is not a list; write [":                                             {"harmless_reasons": 1},
		`auth: "basicauth" is not a map; write {authenticator: basicauth}`:                       {"auth": "basicauth", "lines": true},
		"tls: true is not a map; write {cert_file: ":                                             {"tls": true},
		`cors: "*" is not a map; write {allowed_origins: `:                                       {"cors": "*"},
	} {
		assert.ErrorContains(t, confmap.NewFromStringMap(settings).Unmarshal(createDefaultConfig()), message)
	}
	config.AllowedHosts = []string{"events.example.com", "https://a.example"}
	assert.ErrorContains(t, config.Validate(), `allowed_hosts[1]: "https://a.example" is not a host name`)
	config.AllowedHosts, config.HarmlessReasons = nil, []string{"*"}
	assert.ErrorContains(t, config.Validate(), `harmless_reasons[0]: "*" is not the name of a reason`)
	config.HarmlessReasons, config.Server.NetAddr.Endpoint = nil, ""
	assert.ErrorContains(t, config.Validate(), "endpoint: it is empty: set the address")
	for _, endpoint := range []string{"http://127.0.0.1:8090", "http://localhost", "localhost", "8090"} {
		config.Server.NetAddr.Endpoint = endpoint
		require.ErrorContains(t, config.Validate(), `endpoint: "`+endpoint+`": `)
		assert.ErrorContains(t, config.Validate(), "write a host and a port, such as 127.0.0.1:8090")
	}
	for _, endpoint := range []string{":8090", "[::1]:0", "localhost:http"} {
		config.Server.NetAddr.Endpoint = endpoint
		assert.NoError(t, config.Validate())
	}
	config.Server.NetAddr.Transport, config.Server.NetAddr.Endpoint = "unix", "/run/page.sock"
	assert.NoError(t, config.Validate())
}

// TestCallsThatComeSlowlyKeepNobodyAway: a call takes its place after it is read.
func TestCallsThatComeSlowlyKeepNobodyAway(t *testing.T) {
	_, url := serve(t, func(c *Config) { c.MCP = true })
	for range maxWaiting + 1 {
		slow, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		require.NoError(t, err)
		defer func() { _ = slow.Close() }()
		_, err = slow.Write([]byte("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n"))
		require.NoError(t, err)
		_, err = slow.Read(make([]byte, 1)) // The server asks for the body: it reads the call.
		require.NoError(t, err)
	}
	get(t, url)
	status, _, body := post(t, url+"/mcp", strings.Repeat(" ", maxCall+1))
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, body, "send at most 65536 bytes")
	status, _, body = post(t, url+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "what_changed")
}

// TestACallIsReadForALimitedTime: the answer may take longer.
func TestACallIsReadForALimitedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		pipe := onePipe{server, make(chan struct{})}
		h := &handler{board: newBoard(time.Now), agents: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			time.Sleep(2 * readTimeout)
			assert.NoError(t, r.Context().Err())
		})}
		var serving sync.WaitGroup
		serving.Go(func() { _ = (&http.Server{Handler: h, ReadHeaderTimeout: time.Hour}).Serve(&pipe) })
		send := func(length int, call string) (status int, body string, took time.Duration) {
			start := time.Now()
			_, err := fmt.Fprintf(client, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", length, call)
			require.NoError(t, err)
			response, err := http.ReadResponse(bufio.NewReader(client), nil)
			require.NoError(t, err)
			took = time.Since(start)
			content, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			return response.StatusCode, string(content), took
		}
		status, _, took := send(2, "{}")
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, 2*readTimeout, took)
		assert.Zero(t, h.calls.Load())
		status, body, took := send(1000, "{")
		assert.Equal(t, http.StatusBadRequest, status)
		assert.Equal(t, readTimeout, took)
		assert.Contains(t, body, "send at most 65536 bytes, within 10s")
		_ = client.Close()
		close(pipe.closed)
		serving.Wait()
	})
}

func TestOneCallTooManyIsRefused(t *testing.T) {
	h := &handler{board: boardOf(""), agents: http.NotFoundHandler()}
	h.calls.Store(maxWaiting)
	status, body := serveAt(t, h, "/mcp")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, body, "too many requests")
}

// onePipe is a listener for one connection.
type onePipe struct {
	net.Conn
	closed chan struct{}
}

func (p *onePipe) Accept() (net.Conn, error) {
	if c := p.Conn; c != nil {
		p.Conn = nil
		return c, nil
	}
	<-p.closed
	return nil, net.ErrClosed
}

func (*onePipe) Addr() net.Addr { return &net.TCPAddr{} }
func (*onePipe) Close() error   { return nil }

// post sends a call of an agent.
func post(t *testing.T, url, call string) (status int, header http.Header, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(call))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, response.Header, string(read)
}
