// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// loki is one that runs in a directory.
type loki struct {
	*program
	url string
}

// startLoki starts one as the recipe does. Its ruler has the rules of deploy/chart/rules/loki.
func startLoki(directory string) (*loki, error) {
	addresses, err := process.FreeAddresses(2)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(harness.InRepository("examples", "backends", "loki.yaml"))
	ports := strings.NewReplacer("3100", port(addresses[0]), "9096", port(addresses[1]))
	rules, err2 := filepath.Abs(harness.InRepository("deploy", "chart", "rules", "loki"))
	tenants := filepath.Join(directory, "build", "data", "loki", "rules")
	err = errors.Join(err, err2, os.MkdirAll(tenants, 0o700), os.Symlink(rules, filepath.Join(tenants, "fake")),
		os.WriteFile(filepath.Join(directory, "loki.yaml"), []byte(ports.Replace(string(text))), 0o600))
	if err != nil {
		return nil, err
	}
	program, err := filepath.Abs(backend("loki"))
	if err != nil {
		return nil, err
	}
	p, err := start(directory, nil, program, "-config.file=loki.yaml")
	return &loki{p, "http://" + addresses[0]}, err
}

func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// ready returns an error until Loki accepts logs.
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

// rules are those that its ruler evaluates.
func (l *loki) rules() ([]rule, error) { return rulesOf(l.url + "/prometheus") }

// streams are the labels of all streams that a selector matches, of the last hours.
func (l *loki) streams(selector string) ([]map[string]string, error) {
	body, err := get(l.url + "/loki/api/v1/series?" + url.Values{
		"match[]": {selector}, "start": {strconv.FormatInt(time.Now().Add(-3*time.Hour).UnixNano(), 10)},
	}.Encode())
	if err != nil {
		return nil, err
	}
	var answer struct{ Data []map[string]string }
	return answer.Data, json.Unmarshal(body, &answer)
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
