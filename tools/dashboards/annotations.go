// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// ofAnnotation are the labels of an annotation, which its text names.
const ofAnnotation = "k8s_workload_kind, k8s_workload_name, k8s_event_reason"

// annotated is a dashboard with what the SDK does not know: what it requires, and annotations that have
// a text.
type annotated struct {
	Requires []requirement `json:"__requires"`
	dashboard.Dashboard
	Annotations annotations `json:"annotations"`
}

type annotations struct {
	List []annotation `json:"list,omitempty"`
}

// annotation is a query whose results Grafana marks on all panels over time. The SDK does not know the
// fields of Prometheus' annotations.
type annotation struct {
	Step        string `json:"step"`
	TitleFormat string `json:"titleFormat"`
	TextFormat  string `json:"textFormat"`
	dashboard.AnnotationQuery
}

func newAnnotation(name, color, query string) annotation {
	return annotation{
		Step: "60s", TitleFormat: "{{k8s_event_reason}}", TextFormat: "{{k8s_workload_kind}} {{k8s_workload_name}}",
		AnnotationQuery: dashboard.AnnotationQuery{Name: name, Datasource: &metricsSource, Enable: true, IconColor: color, Expr: &query},
	}
}

// recent returns a query of the occurrences since the last step or, if scrapes are further apart, since
// the last scrapes.
func recent(matchers ...string) string {
	return fmt.Sprintf("sum by (%s) (%s) > 0", ofAnnotation, increased("[$__rate_interval]", matchers...))
}

// rollouts returns annotations of the times at which controllers replace or scale pods. The events of an
// autoscaler are about itself, so that the metric does not tell its steps from a rollout.
func rollouts(matchers ...string) annotation {
	ofDeployments := append([]string{`k8s_event_reason=~"ScalingReplicaSet|RolloutUpdated"`}, matchers...)
	ofOthers := append([]string{`k8s_object_kind=~"StatefulSet|DaemonSet"`, `k8s_event_reason=~"SuccessfulCreate|SuccessfulDelete"`}, matchers...)
	return newAnnotation("Rollouts and scaling", normalColor, recent(ofDeployments...)+" or "+recent(ofOthers...))
}

// firstWarnings returns annotations of warnings with a reason that the workload did not have in the
// hour before.
func firstWarnings(matchers ...string) annotation {
	ofWarnings := append([]string{warnings}, matchers...)
	return newAnnotation("First warnings", warningColor, fmt.Sprintf("%s unless sum by (%s) (%s) > 0",
		recent(ofWarnings...), ofAnnotation, increased("[1h] offset $__rate_interval", ofWarnings...)))
}
