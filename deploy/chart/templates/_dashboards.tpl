{{/* The JSON of a dashboard with the names of the metric in Prometheus: (list $ JSON). */}}
{{- define "kube-events.dashboard" -}}
{{- $root := index . 0 -}}
{{- if eq $root.Values.metricName "k8s_event_occurrences_total" -}}
{{- index . 1 -}}
{{- else -}}
{{- $dashboard := index . 1 | fromJson -}}
{{- range $dashboard.panels -}}
{{- if eq (dig "datasource" "type" "" .) "prometheus" -}}
{{- include "kube-events.queries" (list $root (.targets | default list)) -}}
{{- if include "kube-events.hasDots" $root -}}
{{- $_ := set . "transformations" (include "kube-events.dots" (toJson (.transformations | default list)) | fromJsonArray) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "kube-events.queries" (list $root $dashboard.templating.list) -}}
{{- include "kube-events.queries" (list $root ($dashboard.annotations.list | default list)) -}}
{{- toPrettyJson $dashboard -}}
{{- end -}}
{{- end -}}

{{/* Changes what Prometheus is asked, and the text that shows its labels: (list $ OBJECTS). */}}
{{- define "kube-events.queries" -}}
{{- $root := index . 0 -}}
{{- range $object := index . 1 -}}
{{- if eq (dig "datasource" "type" "" .) "prometheus" -}}
{{- range list "expr" "query" "definition" -}}
{{- if hasKey $object . -}}{{- $_ := set $object . (include "kube-events.promQL" (list $root (get $object .))) -}}{{- end -}}
{{- end -}}
{{- if include "kube-events.hasDots" $root -}}
{{- range list "legendFormat" "titleFormat" "textFormat" -}}
{{- if hasKey $object . -}}{{- $_ := set $object . (include "kube-events.dots" (get $object .)) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
