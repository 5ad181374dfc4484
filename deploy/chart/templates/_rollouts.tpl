{{/*
What the value `rollouts` adds to the configuration: (list $ CONFIG). All records go through the
connector, in addition to where they go without it.
*/}}
{{- define "kube-events.rollouts" -}}
{{- $config := index . 1 -}}
{{- with index . 0 -}}
{{- $exporter := printf "otlp_%s/rollouts" .Values.otlp.protocol -}}
{{- $logs := get ($config.service.pipelines | default dict) "logs" | default (dict "receivers" (list "kube_events") "processors" (concat (list "memory_limiter") .Values.extraProcessors.logs) "exporters" list) -}}
connectors:
  kube_incidents:
    idle_timeout: {{ .Values.rollouts.idleTimeout }}
    max_rollouts: {{ int .Values.rollouts.maxRollouts }}
    {{- if eq .Values.mode "single" }}
    # Open rollouts survive a restart.
    storage: file_storage
    {{- end }}
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
    logs:
      receivers: {{ toJson $logs.receivers }}
      processors: {{ toJson $logs.processors }}
      exporters: {{ append $logs.exporters "kube_incidents" | toJson }}
    traces:
      receivers: [kube_incidents]
      processors: [memory_limiter]
      exporters: [{{ $exporter }}]
{{- end -}}
{{- end -}}
