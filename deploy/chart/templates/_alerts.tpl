{{/* The rules for Prometheus, with the changes of prometheusRule. */}}
{{- define "kube-events.prometheusRules" -}}
{{- $groups := list -}}
{{- range (.Files.Get "rules/kube-events.yaml" | fromYaml).groups -}}
{{- $group := . -}}
{{- $rules := list -}}
{{- range .rules -}}
{{- $rule := . -}}
{{- $change := get $.Values.prometheusRule.alerts (.alert | default "") | default dict -}}
{{- $isReplaced := and $.Values.problems.enabled (has (.alert | default "") (include "kube-events.replacedAlerts" . | fromYamlArray)) -}}
{{- if not (or (eq (toString $change.enabled) "false") (and $isReplaced (ne (toString $change.enabled) "true"))) -}}
{{- $_ := set . "expr" (include "kube-events.promQL" (list $ .expr)) -}}
{{- if .alert -}}
{{- $_ := set . "labels" (mergeOverwrite .labels ($change.labels | default dict)) -}}
{{- if $.Values.prometheusRule.grafanaURL -}}
{{- $path := include "kube-events.dashboardOfAlert" (list $group.name .alert) -}}
{{- $_ := set .annotations "dashboard_url" (print (trimSuffix "/" $.Values.prometheusRule.grafanaURL) $path) -}}
{{- end -}}
{{- range $name, $text := .annotations -}}
{{- $_ := set $rule.annotations $name (include "kube-events.annotation" (list $ $text)) -}}
{{- end -}}
{{- end -}}
{{- $rules = append $rules . -}}
{{- end -}}
{{- end -}}
{{- if $rules -}}
{{- if ne .interval "30m" -}}{{- $_ := set . "interval" ($.Values.prometheusRule.interval | default .interval) -}}{{- end -}}
{{- $groups = append $groups (dict "name" .name "interval" .interval "rules" $rules) -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "groups" $groups) -}}
{{- end -}}

{{/* The alerts of reasons that are problems: KubeEventsProblem says more of them, and ends with them. */}}
{{- define "kube-events.replacedAlerts" -}}
- KubeEventsCrashLoop
- KubeEventsFailedScheduling
- KubeEventsFailedCreate
- KubeEventsImagePullFailure
- KubeEventsContainerNotCreated
- KubeEventsFailedMount
- KubeEventsFailedCreatePodSandBox
- KubeEventsProvisioningFailed
- KubeEventsEvicted
- KubeEventsJobFailed
- KubeEventsAutoscalerWithoutMetrics
- KubeEventsWarningPersists
{{- end -}}

{{/* The rules for Loki, whose labels always have underscores. */}}
{{- define "kube-events.lokiRules" -}}
{{- $tags := "" -}}
{{- range include "kube-events.tags" . | fromJsonArray -}}{{- $tags = printf "%s, %s" $tags (include "kube-events.underscores" .) -}}{{- end -}}
{{- .Files.Get "rules/loki/kube-events.yaml" | trim | replace "log_source=`kube_events`" (include "kube-events.lokiSelector" .) | replace ", tilt_manifest" $tags | replace (include "kube-events.runbooksOfFiles" .) (include "kube-events.runbooks" .) -}}
{{- end -}}

{{/* What selects the events in Loki. Grafana Cloud has no index label of the Collector's own. */}}
{{- define "kube-events.lokiSelector" -}}
{{- $default := ternary "service_name=~`.+`" "log_source=`kube_events`" (eq (.Values.backend.preset | default "") "grafana-cloud") -}}
{{- .Values.dashboards.lokiSelector | default $default -}}
{{- end -}}

{{/*
The tags that all rules keep, as a JSON list: prometheusRule.extraLabels, or the names of the tags
that the receiver extracts into the metric.
*/}}
{{- define "kube-events.tags" -}}
{{- if kindIs "slice" .Values.prometheusRule.extraLabels -}}
{{- toJson .Values.prometheusRule.extraLabels -}}
{{- else -}}
{{- $extract := dig "receivers" "kube_events" "extract" dict .Values.config -}}
{{- $tags := list -}}
{{- if not (hasKey $extract "labels") -}}{{- $tags = append $tags "tilt.manifest" -}}{{- end -}}
{{- range concat ($extract.labels | default list) ($extract.annotations | default list) -}}
{{- $name := .tag_name | default "" -}}
{{- if and $name (not (contains "$" $name)) (not (has (.from | default "nearest") (list "node" "event"))) -}}{{- $tags = append $tags $name -}}{{- end -}}
{{- end -}}
{{- toJson (uniq $tags) -}}
{{- end -}}
{{- end -}}

{{/* A name as Prometheus and Loki write it. */}}
{{- define "kube-events.underscores" -}}
{{- regexReplaceAll "[^a-zA-Z0-9_]" . "_" -}}
{{- end -}}

{{/* Whether labels have dots, as the metric does: VictoriaMetrics, or a translation_strategy of Prometheus 3. */}}
{{- define "kube-events.hasDots" -}}
{{- if contains "." .Values.metricName -}}true{{- end -}}
{{- end -}}

{{/* A query of Prometheus with the names and tags of the values: (list $ QUERY). */}}
{{- define "kube-events.promQL" -}}
{{- $root := index . 0 -}}
{{- $dots := include "kube-events.hasDots" $root -}}
{{- $tags := "" -}}
{{- range include "kube-events.tags" $root | fromJsonArray -}}
{{- $tags = printf "%s, %s" $tags (ternary (quote .) (include "kube-events.underscores" .) (not (empty $dots))) -}}
{{- end -}}
{{- $query := index . 1 | replace ", tilt_manifest" $tags -}}
{{- if $dots -}}
{{- $query = regexReplaceAll "\"?\\b(k8s_(?:cluster|namespace|workload|event|object|problem)_(?:name|uid|kind|reason|type|class))\\b\"?" $query "\"${1}\"" -}}
{{- $query = include "kube-events.dots" $query | replace "k8s_event_occurrences_total{" (printf "{%s, " (quote $root.Values.metricName)) | replace "k8s_problem_active{" "{\"k8s.problem.active\", " | replace "k8s_pod_cpu_usage{" "{\"k8s.pod.cpu.usage\", " | replace "k8s_container_restarts{" "{\"k8s.container.restarts\", " -}}
{{- else -}}
{{- $query = $query | replace "k8s_event_occurrences_total{" (printf "%s{" $root.Values.metricName) -}}
{{- end -}}
{{- $query -}}
{{- end -}}

{{/* Text in which the labels of the metric have dots. */}}
{{- define "kube-events.dots" -}}
{{- regexReplaceAll "\\bk8s_(cluster|namespace|workload|event|object|problem)_(name|uid|kind|reason|type|class)\\b" . "k8s.${1}.${2}" -}}
{{- end -}}

{{/* An annotation: (list $ TEXT). */}}
{{- define "kube-events.annotation" -}}
{{- $root := index . 0 -}}
{{- $text := index . 1 | replace (include "kube-events.runbooksOfFiles" $root) (include "kube-events.runbooks" $root) -}}
{{- if include "kube-events.hasDots" $root -}}
{{- $text = regexReplaceAll "[$]labels[.](k8s_\\w+)" $text "index $$labels \"${1}\"" -}}
{{- $text = include "kube-events.dots" $text -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{- define "kube-events.runbooksOfFiles" -}}
https://github.com/kubeevents/kubeeventsreceiver/blob/main/docs/troubleshooting.md
{{- end -}}

{{/* The page as the dashboards name it. */}}
{{- define "kube-events.runbooksOfVersion" -}}
{{- replace "/main/" (printf "/v%s/" .Chart.AppVersion) (include "kube-events.runbooksOfFiles" .) -}}
{{- end -}}

{{/* The page with a section for each alert: of the version of the chart, unless a value has another one. */}}
{{- define "kube-events.runbooks" -}}
{{- .Values.runbookURL | default (include "kube-events.runbooksOfVersion" .) -}}
{{- end -}}

{{/*
The path of the dashboard for an alert: (list GROUP ALERT). Prometheus replaces the labels in it. The
value $__all of a variable is the choice All, for an alert that does not have the label.
*/}}
{{- define "kube-events.dashboardOfAlert" -}}
{{- $group := index . 0 -}}
{{- $alert := index . 1 -}}
{{- $cluster := include "kube-events.variable" (list "cluster" "cluster") -}}
{{- if eq $group "kube-events-receiver" -}}
/d/kube-events-receiver?{{ $cluster }}
{{- else if has $alert (list "KubeEventsNewReason" "KubeEventsStorm") -}}
/d/kube-events-overview?{{ $cluster }}&{{ include "kube-events.variable" (list "namespaces" "k8s_namespace_name") }}
{{- else if has $alert (list "KubeEventsEvictionThresholdMet" "KubeEventsSystemOOM") -}}
/d/kube-events-node?{{ $cluster }}&var-kind=Node&{{ include "kube-events.variable" (list "object" "k8s_workload_name") }}
{{- else -}}
/d/kube-events-workload?{{ $cluster }}
{{- range $variable, $label := dict "namespace" "k8s_namespace_name" "kind" "k8s_workload_kind" "workload" "k8s_workload_name" -}}
&{{ include "kube-events.variable" (list $variable $label) }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A variable of a dashboard with the value of a label: (list VARIABLE LABEL). */}}
{{- define "kube-events.variable" -}}
var-{{ index . 0 }}={{ printf "{{ with $labels.%s }}{{ urlquery . }}{{ else }}$__all{{ end }}" (index . 1) }}
{{- end -}}
