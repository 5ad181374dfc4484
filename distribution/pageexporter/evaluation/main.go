// SPDX-License-Identifier: Apache-2.0

// Evaluation serves recorded incidents to agents, and scores their answers.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
	"github.com/kubeevents/kubeeventsreceiver/distribution/pageexporter"
)

//go:embed truth.json
var truths []byte

// truth is the right answer about an incident. Without workloads, there is no problem.
type truth struct {
	Workloads []string `json:"workloads"`
	Cause     string   `json:"cause"` // a regular expression
}

// answer is what a model says about an incident.
type answer struct {
	Workload string `json:"workload"` // empty: there is no problem
	Cause    string `json:"cause"`
	Calls    int    `json:"calls"`
	Bytes    int    `json:"bytes"`
}

// score is how well a model answers.
type score struct{ incidents, right, calls, bytes int }

func main() {
	serve := flag.String("serve", "", "the incident to serve")
	address := flag.String("address", "127.0.0.1:8090", "where to serve it")
	flag.Parse()
	run := func() error { return printScores(os.Stdout) }
	if *serve != "" {
		run = func() error { return serveUntilInterrupt(os.Stdout, *serve, *address) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func printScores(to io.Writer) error {
	files, err := filepath.Glob("evaluation/answers/*.json")
	if err != nil || len(files) == 0 {
		return fmt.Errorf("there are no answers in evaluation/answers: run it in distribution/pageexporter")
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "model\tincidents\tright\tcalls\tbytes")
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var answers map[string]answer
		if err := json.Unmarshal(content, &answers); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		s := scoreOf(answers)
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\n", strings.TrimSuffix(filepath.Base(file), ".json"), s.incidents, s.right, s.calls, s.bytes)
	}
	return table.Flush()
}

// scoreOf compares answers with the truth. An incident without an answer is wrong.
func scoreOf(answers map[string]answer) (s score) {
	var all map[string]truth
	if err := json.Unmarshal(truths, &all); err != nil {
		panic(err) // It is a part of the program.
	}
	for name, right := range all {
		given, ok := answers[name]
		s.incidents, s.calls, s.bytes = s.incidents+1, s.calls+given.Calls, s.bytes+given.Bytes
		if ok && right.admits(given) {
			s.right++
		}
	}
	return s
}

func (t truth) admits(a answer) bool {
	if len(t.Workloads) == 0 {
		return a.Workload == ""
	}
	return slices.Contains(t.Workloads, a.Workload) && regexp.MustCompile(t.Cause).MatchString(a.Cause)
}

// serveUntilInterrupt serves an incident, and prints at the end how much an agent has asked.
func serveUntilInterrupt(to io.Writer, name, address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	page, end, err := startPage(ctx, name)
	if err != nil {
		return err
	}
	defer end()
	var calls, bytes atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(page)
	proxy.ModifyResponse = func(r *http.Response) error {
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if strings.Contains(string(body), `"content"`) {
			calls.Add(1)
			bytes.Add(int64(len(body)))
		}
		return err
	}
	server := &http.Server{Addr: address, Handler: proxy, ReadHeaderTimeout: time.Minute}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	fmt.Fprintf(to, "http://%s/mcp\n", address)
	_ = server.ListenAndServe()
	fmt.Fprintf(to, "calls: %d, bytes: %d\n", calls.Load(), bytes.Load())
	return nil
}

// startPage starts a page with the records of an incident, as if they had come until now.
func startPage(ctx context.Context, name string) (*url.URL, func(), error) {
	logs, err := recordsOf(name)
	if err != nil {
		return nil, nil, err
	}
	factory := pageexporter.NewFactory()
	config := factory.CreateDefaultConfig()
	address := freeAddress()
	if err := confmap.NewFromStringMap(map[string]any{"endpoint": address, "mcp": true}).Unmarshal(config); err != nil {
		return nil, nil, err
	}
	settings := exporter.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	page, err := factory.CreateLogs(ctx, settings, config)
	if err != nil {
		return nil, nil, err
	}
	if err := page.Start(ctx, componenttest.NewNopHost()); err != nil {
		return nil, nil, err
	}
	end := func() { _ = page.Shutdown(context.WithoutCancel(ctx)) }
	return &url.URL{Scheme: "http", Host: address}, end, page.ConsumeLogs(ctx, logs)
}

// neutral is the namespace in the records. The recorded one has the name of the incident, which would give the answer away.
const neutral = "team"

// recordsOf returns the records of an incident, moved to the last minutes.
func recordsOf(name string) (plog.Logs, error) {
	content, err := os.ReadFile(filepath.Join("..", "internal", "incident", "testdata", "real", filepath.Base(name)+".json"))
	if err != nil {
		return plog.Logs{}, fmt.Errorf("no incident %q: %w", name, err)
	}
	namespace := regexp.MustCompile(`(["_/])` + regexp.QuoteMeta(name) + `(-\w+"|["(/])`)
	logs, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(namespace.ReplaceAll(content, []byte("${1}"+neutral+"${2}")))
	if err != nil {
		return logs, err
	}
	story.Move(logs, time.Since(story.Seen(logs)).Truncate(time.Second)) // Most times have whole seconds.
	return logs, nil
}
