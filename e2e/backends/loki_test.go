// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/e2e/child"
)

// loki is one that runs in a directory.
type loki struct {
	*process
	url string
}

// lokiConfig is Loki's own example for a single process, confined to the loopback interface and a directory.
const lokiConfig = `
auth_enabled: false
server: {http_listen_address: 127.0.0.1, http_listen_port: HTTP, grpc_listen_address: 127.0.0.1, grpc_listen_port: GRPC, log_level: warn}
common:
  path_prefix: DIRECTORY
  replication_factor: 1
  instance_addr: 127.0.0.1
  ring: {instance_addr: 127.0.0.1, kvstore: {store: inmemory}}
  storage: {filesystem: {chunks_directory: DIRECTORY/chunks, rules_directory: DIRECTORY/rules}}
schema_config:
  configs: [{from: "2020-01-01", store: tsdb, object_store: filesystem, schema: v13, index: {prefix: index_, period: 24h}}]
ingester: {lifecycler: {min_ready_duration: 0s, final_sleep: 0s}}
analytics: {reporting_enabled: false}
`

func startLoki(directory string) (*loki, error) {
	addresses, err := child.FreeAddresses(2)
	if err != nil {
		return nil, err
	}
	_, http, _ := net.SplitHostPort(addresses[0])
	_, grpc, _ := net.SplitHostPort(addresses[1])
	config := filepath.Join(directory, "loki.yaml")
	text := strings.NewReplacer("HTTP", http, "GRPC", grpc, "DIRECTORY", directory).Replace(lokiConfig)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	p, err := start(nil, backend("loki"), "-config.file="+config)
	return &loki{p, "http://" + addresses[0]}, err
}

// ready says whether it takes logs.
func (l *loki) ready() error {
	_, err := get(l.url + "/ready")
	return err
}

// series asks for a metric, as of now.
func (l *loki) series(query string) ([]series, error) {
	return instant(l.url+"/loki/api/v1/query", query, time.Now())
}

// messages asks for log lines of the last hours, the latest first.
func (l *loki) messages(query string) (messages []string, err error) {
	body, err := get(l.url + "/loki/api/v1/query_range?" + url.Values{
		"query": {query}, "limit": {"5000"}, "start": {strconv.FormatInt(time.Now().Add(-3*time.Hour).UnixNano(), 10)},
	}.Encode())
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			ResultType string
			Result     []struct{ Values [][2]string }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if answer.Data.ResultType != "streams" {
		return nil, fmt.Errorf("the result is of type %s", answer.Data.ResultType)
	}
	for _, stream := range answer.Data.Result {
		for _, value := range stream.Values {
			messages = append(messages, value[1])
		}
	}
	return messages, nil
}

// get is the body of an answer, which has to be a good one.
func get(address string) ([]byte, error) {
	response, err := http.Get(address)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	return body, err
}
