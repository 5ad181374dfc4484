{{/* The rules for Prometheus, with the changes of prometheusRule.alerts. */}}
{{- define "kube-events.prometheusRules" -}}
{{- $groups := list -}}
{{- range (.Files.Get "rules/kube-events.yaml" | fromYaml).groups -}}
{{- $group := . -}}
{{- $rules := list -}}
{{- range .rules -}}
{{- $change := get $.Values.prometheusRule.alerts (.alert | default "") | default dict -}}
{{- if not (eq (toString $change.enabled) "false") -}}
{{- if .alert -}}
{{- $_ := set . "labels" (mergeOverwrite .labels ($change.labels | default dict)) -}}
{{- if $.Values.prometheusRule.grafanaURL -}}
{{- $path := include "kube-events.dashboardOfAlert" (list $group.name .alert) -}}
{{- $_ := set .annotations "dashboard_url" (print (trimSuffix "/" $.Values.prometheusRule.grafanaURL) $path) -}}
{{- end -}}
{{- end -}}
{{- $rules = append $rules . -}}
{{- end -}}
{{- end -}}
{{- if $rules -}}{{- $groups = append $groups (dict "name" .name "rules" $rules) -}}{{- end -}}
{{- end -}}
{{- toYaml (dict "groups" $groups) -}}
{{- end -}}

{{/*
The path of the dashboard for an alert: (list GROUP ALERT). Prometheus replaces the labels in it. The
value $__all of a variable is the choice All, for an alert that does not have the label.
*/}}
{{- define "kube-events.dashboardOfAlert" -}}
{{- $group := index . 0 -}}
{{- $alert := index . 1 -}}
{{- $cluster := include "kube-events.variable" (list "cluster" "k8s_cluster_name") -}}
{{- if eq $group "kube-events-receiver" -}}
/d/kube-events-receiver?{{ include "kube-events.variable" (list "cluster" "cluster") }}
{{- else if has $alert (list "KubeEventsNewReason" "KubeEventsStorm") -}}
/d/kube-events-overview?{{ $cluster }}&{{ include "kube-events.variable" (list "namespaces" "k8s_namespace_name") }}
{{- else if eq $alert "KubeEventsEvictionThresholdMet" -}}
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
