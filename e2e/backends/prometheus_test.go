// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// prometheus is one that runs in a directory.
type prometheus struct {
	*program
	url string
}

// often makes scrapes and rules run at once.
const often = `
global: {scrape_interval: 1s, evaluation_interval: 1s}
`

func startPrometheus(directory, config string, flags ...string) (*prometheus, error) {
	addresses, err := process.FreeAddresses(1)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(directory, "prometheus.yaml")
	if err := os.WriteFile(path, []byte(often+config), 0o600); err != nil {
		return nil, err
	}
	p, err := start("", nil, backend("prometheus"), append(flags, "--config.file="+path, "--storage.tsdb.path="+filepath.Join(directory, "data"),
		"--web.listen-address="+addresses[0], "--web.enable-otlp-receiver", "--log.level=warn")...)
	return &prometheus{p, "http://" + addresses[0]}, err
}

// newPrometheus starts one that ends with the test, and waits until it is ready.
func newPrometheus(t *testing.T, directory, config string, flags ...string) *prometheus {
	t.Helper()
	p, err := startPrometheus(directory, config, flags...)
	require.NoError(t, err)
	t.Cleanup(p.stop)
	require.NoError(t, p.await(p.ready))
	return p
}

// ready returns an error until Prometheus accepts and returns metrics.
func (p *prometheus) ready() error {
	_, err := get(p.url + "/-/ready")
	return err
}

// series asks for a metric, as of now.
func (p *prometheus) series(query string) ([]series, error) {
	return instant(p.url+"/api/v1/query", query, time.Now())
}

// rule is one that was loaded.
type rule struct {
	Name, Type, Health, LastError string
}

func (p *prometheus) rules() ([]rule, error) { return rulesOf(p.url) }

// rulesOf are the rules of a Prometheus, or of a ruler with its API.
func rulesOf(url string) (all []rule, err error) {
	body, err := get(url + "/api/v1/rules")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct{ Groups []struct{ Rules []rule } }
	}
	err = json.Unmarshal(body, &answer)
	for _, group := range answer.Data.Groups {
		all = append(all, group.Rules...)
	}
	return all, err
}

// series is one with its value at some time. Prometheus and Loki answer alike.
type series struct {
	Metric map[string]string
	Value  [2]any
}

// String is the series as PromQL writes it, without its name.
func (s series) String() string {
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(s.Metric)) {
		if name != "__name__" {
			labels = append(labels, name+"="+strconv.Quote(s.Metric[name]))
		}
	}
	return "{" + strings.Join(labels, ", ") + "}"
}

func instant(api, query string, at time.Time) ([]series, error) {
	body, err := get(api + "?" + url.Values{"query": {query}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)}}.Encode())
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			ResultType string
			Result     json.RawMessage
		}
		Warnings []string
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if answer.Data.ResultType != "vector" || len(answer.Warnings) > 0 {
		return nil, fmt.Errorf("the result is of type %s, with the warnings %q", answer.Data.ResultType, answer.Warnings)
	}
	var all []series
	return all, json.Unmarshal(answer.Data.Result, &all)
}
