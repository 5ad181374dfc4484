{{/*
What the values `rollouts` and `problems` add to the configuration: (list $ CONFIG). All records go to the connector,
in addition to where they go without it.
*/}}
{{- define "kube-events.incidents" -}}
{{- $config := index . 1 -}}
{{- with index . 0 -}}
{{- $additional := .Values.additionalBackends -}}
{{- $pipelines := $config.service.pipelines | default dict -}}
{{- $logs := get $pipelines "logs" | default (dict "receivers" (list "kube_events") "processors" (concat (list "memory_limiter") .Values.extraProcessors.logs) "exporters" list) -}}
{{- if and .Values.problems.enabled (eq (toJson $logs.exporters) (toJson (list "event_page"))) }}
exporters:
  nop: {}
{{- end }}
connectors:
  kube_incidents:
    idle_timeout: {{ .Values.rollouts.idleTimeout }}
    max_rollouts: {{ int .Values.rollouts.maxRollouts }}
    {{- if eq .Values.mode "single" }}
    # Open rollouts and problems survive a restart.
    storage: file_storage
    {{- end }}
service:
  pipelines:
    logs:
      receivers: {{ toJson $logs.receivers }}
      processors: {{ toJson $logs.processors }}
      exporters: {{ append $logs.exporters "kube_incidents" | toJson }}
    {{- if .Values.problems.enabled }}
    {{- if $logs.exporters }}
    logs/problems:
      receivers: [kube_incidents]
      processors: {{ toJson $logs.processors }}
      # The page reads problems from the connector: without a backend, nothing else needs their records.
      exporters: {{ without $logs.exporters "event_page" | default (list "nop") | toJson }}
    {{- end }}
    {{- with get $pipelines "metrics" }}
    metrics/problems:
      receivers: [kube_incidents]
      processors: {{ toJson .processors }}
      exporters: {{ toJson .exporters }}
    {{- end }}
    {{- range $name, $_ := $additional }}
    {{- range $signal := list "logs" "metrics" }}
    {{- with get $pipelines (printf "%s/%s" $signal $name) }}
    {{ $signal }}/problems/{{ $name }}:
      receivers: [kube_incidents]
      processors: {{ toJson .processors }}
      exporters: {{ toJson .exporters }}
    {{- end }}
    {{- end }}
    {{- end }}
    {{- end }}
{{- end -}}
{{- end -}}

{{/* What the value `rollouts` adds: the traces. */}}
{{- define "kube-events.rollouts" -}}
{{- $exporter := printf "otlp_%s/rollouts" .Values.otlp.protocol -}}
exporters:
  {{ $exporter }}:
    {{- if .Values.rollouts.endpoint }}
    endpoint: {{ .Values.rollouts.endpoint | replace "$" "$$" | quote }}
    {{- include "kube-events.insecure" (list .Values.rollouts.endpoint .Values.otlp.protocol) | nindent 4 }}
    {{- else }}
    {{- include "kube-events.ownExporter" (list . dict) | fromYaml | toYaml | nindent 4 }}
    {{- end }}
    # Without a queue, the connector knows what the backend has accepted. It retries the rest itself.
    sending_queue: {enabled: false}
    retry_on_failure: {enabled: false}
service:
  pipelines:
    traces:
      receivers: [kube_incidents]
      processors: [memory_limiter]
      exporters: [{{ $exporter }}]
{{- end -}}
