// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// alwaysChosen are values of variables that have no All.
var alwaysChosen = map[string]choices{
	"workload": {"namespace": {"mistakes"}},
	"node":     {"kind": {"Node"}},
}

// alsoChosen are the other values that a user chooses who looks for something.
var alsoChosen = map[string]choices{
	"overview": {"cluster": {clusterName}, "namespaces": {"demo", "mistakes"}},
	"workload": {"cluster": {clusterName}, "kind": {"Deployment"}, "workload": {"mistyped"}, "reason": {"BackOff", "Failed"}, "search": {"IMAGE"}},
	"node":     {"cluster": {clusterName}, "object": {"node-0"}, "reason": {"ImageGCFailed", "NodeReady"}, "search": {"IMAGE"}},
}

// mayBeEmpty are queries that return nothing here, or only 0, with the reason.
var mayBeEmpty = map[string]string{
	"otelcol_kube_events_filtered":                                             "no Collector here has a filter",
	"otelcol_kube_events_waiting":                                              "the receivers wait for nothing",
	"otelcol_kube_events_checkpoint_age":                                       "no Collector here has storage",
	"otelcol_kube_events_checkpoint_failures":                                  "no Collector here has storage",
	"otelcol_kube_events_owner_lookups_forbidden":                              "the receivers may read all owners",
	"otelcol_kube_events_series_overflow":                                      "there are fewer series than series.max",
	"resolution!~":                                                             "the receiver finds the owners",
	"k8s_container_status_last_terminated_reason":                              "no container ends: kwok runs none",
	"k8s_pod_cpu_usage":                                                        "no agent measures pods: kwok runs none",
	"k8s_container_restarts":                                                   "no agent measures pods: kwok runs none",
	`group by (cluster) ({__name__=~"otelcol_kube_events_received(_total)?"})`: "no scrape here sets the label",
}

// TestTheDashboards asks each query of the dashboards, those that fill its variables and those of its
// links included: with the values that a user gets who chooses nothing, and with chosen values. It
// needs only the variant with Loki: the other has a part of its queries.
func TestTheDashboards(t *testing.T) {
	t.Parallel()
	causeEvents(t)
	for _, path := range files(t, "deploy", "chart", "dashboards", "*.json") {
		d := dashboard{name: strings.TrimSuffix(filepath.Base(path), ".json")}
		decode(t, path, &d)
		require.NotEmpty(t, d.Panels)
		d.isAnswered(t, "nothing chosen", []*prometheus{all.scraped, all.pushed}, alwaysChosen[d.name])
		d.isAnswered(t, "chosen", []*prometheus{all.scraped, all.pushed}, d.allChosen(t))
		if d.name == "overview" {
			d.showsPodsWithoutOwners(t)
		}
	}
}

func (d dashboard) has(name string) bool {
	for _, v := range d.Templating.List {
		if v.Name == name {
			return true
		}
	}
	return false
}

// allChosen has a value for each variable for which there is one. For the receiver, these are all
// Collectors.
func (d dashboard) allChosen(t *testing.T) choices {
	t.Helper()
	chosen := choices{}
	for _, some := range []choices{alwaysChosen[d.name], alsoChosen[d.name]} {
		for name, values := range some {
			require.True(t, d.has(name), name)
			chosen[name] = values
		}
	}
	if d.has("instance") {
		answers, err := all.scraped.series("otelcol_kube_events_received")
		require.NoError(t, err)
		for _, answer := range answers {
			chosen["instance"] = append(chosen["instance"], answer.Metric["instance"])
			chosen["receiver"] = append(chosen["receiver"], answer.Metric["receiver"])
		}
	}
	return chosen
}

// isAnswered asks all queries of a dashboard.
func (d dashboard) isAnswered(t *testing.T, name string, servers []*prometheus, chosen choices) {
	t.Helper()
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			d.offers(t, name+" "+v.Name, servers, v, chosen)
		}
	}
	for _, a := range d.Annotations.List {
		query := target{Expr: a.Expr, Datasource: a.Datasource}
		for source, ask := range d.asked(servers, query, d.interpolate(a.Expr, a.Datasource.Type, chosen)) {
			d.run(t, fmt.Sprint(name, " annotation ", a.Name, " ", source), func(t *testing.T) { eventually(t, ask.returnsData) })
		}
	}
	for _, p := range d.Panels {
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		for i, target := range p.Targets {
			asked := d.asked(servers, target, d.interpolate(target.Expr, target.Datasource.Type, chosen))
			for source, ask := range asked {
				d.run(t, fmt.Sprint(name, " ", p.Title, " ", i, " ", source), func(t *testing.T) {
					eventually(t, ask.returnsData)
					d.exploreIsAnswered(t, p, ask, chosen)
				})
			}
		}
	}
}

func (d dashboard) run(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(d.name+" "+name, func(t *testing.T) {
		t.Parallel()
		test(t)
	})
}

// offers: the values that were chosen for a variable are among those from which a user can choose.
func (d dashboard) offers(t *testing.T, name string, servers []*prometheus, v variable, chosen choices) {
	t.Helper()
	query, label := v.asks()
	query = d.interpolate(query, "prometheus", chosen)
	for source, ask := range d.asked(servers, target{Instant: true}, query) {
		d.run(t, name+" "+source, func(t *testing.T) {
			eventually(t, func() error {
				if err := ask.returnsData(); err != nil {
					return err
				}
				answers, err := ask.answers()
				for _, value := range chosen[v.Name] {
					if !hasValue(answers, label, value) {
						return fmt.Errorf("%s does not offer %s", query, value)
					}
				}
				return err
			})
		})
	}
}

func hasValue(answers []answer, label, value string) bool {
	for _, a := range answers {
		if a.Metric[label] == value {
			return true
		}
	}
	return false
}

// exploreIsAnswered asks the queries of the links of the first row of a table.
func (d dashboard) exploreIsAnswered(t *testing.T, p panel, rows question, chosen choices) {
	t.Helper()
	queries, err := p.explored()
	require.NoError(t, err)
	for _, query := range queries {
		eventually(t, func() error {
			answers, err := rows.answers()
			if err != nil {
				return err
			}
			if len(answers) == 0 {
				return fmt.Errorf("%s has no rows", p.Title)
			}
			asked := d.interpolate(p.inRow(query, answers[0].Metric), "", chosen)
			if unset.MatchString(asked) {
				return fmt.Errorf("%s has a variable without a value", asked)
			}
			messages, err := all.loki.messages(asked)
			if err == nil && len(messages) == 0 {
				err = fmt.Errorf("%s returns nothing", asked)
			}
			return err
		})
	}
}

// question is a query and where to ask it.
type question struct {
	query   string
	answers func() ([]answer, error)
}

// answer is a series with its values, or a log line.
type answer struct {
	Metric map[string]string
	Values [][2]any
}

// asked returns the question to each of the servers that a query is for.
func (d dashboard) asked(servers []*prometheus, t target, query string) map[string]question {
	asked := map[string]question{}
	if t.Datasource.Type == "loki" {
		asked["loki"] = question{query, func() ([]answer, error) { return all.loki.panel(t, query) }}
		return asked
	}
	for _, server := range servers {
		name := "pushed"
		if server == all.scraped {
			name = "scraped"
		}
		asked[name] = question{query, func() ([]answer, error) { return server.panel(t, query) }}
	}
	return asked
}

func (p *prometheus) panel(t target, query string) ([]answer, error) {
	if t.Instant {
		return numbers(p.series(query))
	}
	return ranged(p.url+"/api/v1/query_range", query, 15*time.Second)
}

func (l *loki) panel(t target, query string) ([]answer, error) {
	switch {
	case strings.HasPrefix(query, "{"):
		messages, err := l.messages(query)
		var answers []answer
		for _, message := range messages {
			answers = append(answers, answer{Values: [][2]any{{"", message}}})
		}
		return answers, err
	case t.QueryType == "instant":
		return numbers(l.series(query))
	default:
		return ranged(l.url+"/loki/api/v1/query_range", query, time.Minute)
	}
}

func numbers(all []series, err error) (answers []answer, _ error) {
	for _, s := range all {
		answers = append(answers, answer{s.Metric, [][2]any{s.Value}})
	}
	return answers, err
}

// ranged asks for the last hour.
func ranged(api, query string, step time.Duration) ([]answer, error) {
	end := time.Now()
	body, err := get(api + "?" + url.Values{
		"query": {query}, "step": {strconv.Itoa(int(step.Seconds()))},
		"start": {strconv.FormatInt(end.Add(-time.Hour).Unix(), 10)}, "end": {strconv.FormatInt(end.Unix(), 10)},
	}.Encode())
	if err != nil {
		return nil, err
	}
	var decoded struct {
		Data struct {
			ResultType string
			Result     []answer
		}
		Warnings []string
	}
	if err := json.Unmarshal(body, &decoded); err != nil {
		return nil, err
	}
	if decoded.Data.ResultType != "matrix" || len(decoded.Warnings) > 0 {
		return nil, fmt.Errorf("the result is of type %s, with the warnings %q", decoded.Data.ResultType, decoded.Warnings)
	}
	return decoded.Data.Result, nil
}

// labelsBy are the labels that a query sums by.
var labelsBy = regexp.MustCompile(`by \(([\w, ]+)\)`)

// unset matches a variable without a value. $1 is a group of label_replace.
var unset = regexp.MustCompile(`\$[^0-9]`)

// returnsData returns an error unless there is an answer that is not 0, with all labels by which the
// query groups.
func (q question) returnsData() error {
	if unset.MatchString(q.query) {
		return fmt.Errorf("%s has a variable without a value", q.query)
	}
	answers, err := q.answers()
	if err != nil || q.mayBeEmpty() {
		return err
	}
	labels, something := map[string]bool{}, false
	for _, a := range answers {
		for label := range a.Metric {
			labels[label] = true
		}
		for _, value := range a.Values {
			something = something || value[1] != "0" && value[1] != "NaN"
		}
	}
	if !something {
		return fmt.Errorf("%s returns nothing, or only 0", q.query)
	}
	if match := labelsBy.FindStringSubmatch(q.query); match != nil {
		for _, label := range strings.Split(match[1], ", ") {
			// The bounds of a histogram's buckets go into its quantile.
			if label != "le" && !labels[label] && !strings.HasPrefix(q.query, "count(") {
				return fmt.Errorf("%s returns nothing that has the label %s", q.query, label)
			}
		}
	}
	return nil
}

func (q question) mayBeEmpty() bool {
	for part := range mayBeEmpty {
		if strings.Contains(q.query, part) {
			return true
		}
	}
	return false
}

// causeEvents makes events of all kinds that the dashboards show. Their counts rise when all Prometheus servers have their series, so that
// increase() sees it.
func causeEvents(t *testing.T) {
	t.Helper()
	node, err := all.cluster.CoreV1().Nodes().Get(t.Context(), "node-0", metav1.GetOptions{})
	require.NoError(t, err)
	pod, err := all.cluster.CoreV1().Pods("mistakes").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "alone"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "alone", Image: "example.com/alone:1.0"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	ofNode := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	ofPod := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	events := []*corev1.Event{
		report(t, ofNode, "Warning", "ImageGCFailed", "failed to garbage collect required amount of images"),
		report(t, ofNode, "Normal", "NodeReady", "Node node-0 status is now: NodeReady"),
		report(t, ofPod, "Warning", "FailedMount", "Unable to attach or mount volumes"),
	}
	existing, err := all.cluster.CoreV1().Events("mistakes").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i, e := range existing.Items {
		if e.Reason == "Failed" || e.Reason == "BackOff" {
			events = append(events, &existing.Items[i])
		}
	}
	require.Len(t, events, 5)
	for _, e := range events {
		eventually(t, func() error { return isCounted(e.Reason) })
		e.Count += 10
		e.LastTimestamp = metav1.Now()
		_, err := all.cluster.CoreV1().Events(e.Namespace).Update(t.Context(), e, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
}

// isCounted returns an error until both Prometheus servers have a reason.
func isCounted(reason string) error {
	for _, server := range []*prometheus{all.scraped, all.pushed} {
		found, err := server.series(fmt.Sprintf("k8s_event_occurrences_total{k8s_event_reason=%q}", reason))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("%s is not counted: %w", reason, err)
		}
	}
	return nil
}

// report writes an event of the kubelet of node-0.
func report(t *testing.T, about corev1.ObjectReference, kind, reason, message string) *corev1.Event {
	t.Helper()
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	e, err := all.cluster.CoreV1().Events(namespace).Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: about.Name + "."}, InvolvedObject: about, Type: kind, Reason: reason, Message: message,
		Count: 1, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Source: corev1.EventSource{Component: "kubelet", Host: "node-0"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return e
}

// showsPodsWithoutOwners: as All, which is what the link in the row then chooses.
func (d dashboard) showsPodsWithoutOwners(t *testing.T) {
	t.Helper()
	for _, p := range d.Panels {
		if p.Title != "Top workloads" {
			continue
		}
		d.run(t, "pods without owners", func(t *testing.T) {
			eventually(t, func() error {
				answers, err := all.scraped.panel(p.Targets[0], d.interpolate(p.Targets[0].Expr, "prometheus", nil))
				for _, a := range answers {
					if a.Metric["k8s_namespace_name"] == "mistakes" && a.Metric["k8s_workload_kind"] == "Pod" && a.Metric["k8s_workload_name"] == "All" {
						return err
					}
				}
				return fmt.Errorf("no row for the pods without owners: %v, %w", answers, err)
			})
		})
		return
	}
	require.Fail(t, "no table of workloads")
}

// TestTheReceiversDashboardShowsAll: each of the receiver's own metrics is on it.
func TestTheReceiversDashboardShowsAll(t *testing.T) {
	t.Parallel()
	documentation, err := os.ReadFile(harness.InRepository("documentation.md"))
	require.NoError(t, err)
	shown, err := os.ReadFile(harness.InRepository("deploy", "chart", "dashboards", "receiver.json"))
	require.NoError(t, err)
	metrics := regexp.MustCompile(`(?m)^### (otelcol_\w+)$`).FindAllStringSubmatch(string(documentation), -1)
	require.NotEmpty(t, metrics)
	for _, metric := range metrics {
		assert.True(t, regexp.MustCompile(metric[1]+`(\(\w+\)\?)?(_bucket)?\\"`).Match(shown), metric[1])
	}
}
