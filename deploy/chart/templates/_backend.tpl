{{/* The preset of backends.yaml that backend.preset names, or that of a plain OTLP endpoint. */}}
{{- define "kube-events.preset" -}}
{{- get (.Files.Get "backends.yaml" | fromYaml) (.Values.backend.preset | default "otlp") | toYaml -}}
{{- end -}}

{{/* Whether the Collector sends something by OTLP. */}}
{{- define "kube-events.sends" -}}
{{- if or .Values.otlp.endpoint .Values.backend.preset -}}true{{- end -}}
{{- end -}}

{{/* Which signals: a list. */}}
{{- define "kube-events.signals" -}}
{{- $preset := include "kube-events.preset" . | fromYaml -}}
{{- $signals := list -}}
{{- if include "kube-events.sends" . -}}
{{- range .Values.otlp.signals | default (list "logs" "metrics") -}}
{{- if hasKey $preset . -}}{{- $signals = append $signals . -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $signals -}}
{{- end -}}

{{/* The name of the exporter with this name in a preset, for the protocol. */}}
{{- define "kube-events.exporter" -}}
{{- $name := index . 1 -}}
{{- with index . 0 -}}
{{- $name | replace "otlp_http" (printf "otlp_%s" .Values.otlp.protocol) -}}
{{- end -}}
{{- end -}}

{{/* The parts of the configuration that send, for the signals. */}}
{{- define "kube-events.sending" -}}
{{- $preset := include "kube-events.preset" . | fromYaml -}}
{{- $exporters := dict -}}
{{- range include "kube-events.signals" . | fromJsonArray -}}
{{- range (get $preset .).exporters -}}
{{- $exporter := include "kube-events.ownExporter" (list $ $preset) | fromYaml -}}
{{- if and $.Values.backend.secret $preset.optionalKeys -}}
{{- $_ := set $exporter "headers" (merge ($exporter.headers | default dict) (dict "Authorization" "${literalenv:BACKEND_AUTHORIZATION}")) -}}
{{- end -}}
{{- $changes := dig "config" "exporters" . dict $preset -}}
{{- /* Headers and certificates are for the address in OTLP_ENDPOINT, not for another one. */ -}}
{{- if hasKey $changes "endpoint" -}}{{- $exporter = omit $exporter "headers" "tls" -}}{{- end -}}
{{- include "kube-events.merge" (list $exporter $changes) -}}
{{- $_ := set $exporters (include "kube-events.exporter" (list $ .)) $exporter -}}
{{- end -}}
{{- end -}}
{{- $config := deepCopy (omit $preset.config "exporters") -}}
{{- /* A processor that no pipeline has does nothing, but it would stay in the file. */ -}}
{{- if not (has "metrics" (include "kube-events.signals" . | fromJsonArray)) -}}
{{- range dig "metrics" "processors" list $preset -}}{{- $_ := unset $config.processors . -}}{{- end -}}
{{- end -}}
{{- if not (has "logs" (include "kube-events.signals" . | fromJsonArray)) -}}
{{- range $preset.logs.processors -}}{{- $_ := unset $config.processors . -}}{{- end -}}
{{- end -}}
{{- toYaml (set $config "exporters" $exporters) -}}
{{- end -}}

{{/* What each exporter has: (list $ PRESET). */}}
{{- define "kube-events.ownExporter" -}}
{{- $preset := index . 1 -}}
{{- with index . 0 -}}
endpoint: ${env:OTLP_ENDPOINT{{ if not .Values.otlp.endpoint }}{{ with $preset.endpoint }}:-{{ . }}{{ end }}{{ end }}}
{{ include "kube-events.headers" (list .Values.otlp "") }}
{{ include "kube-events.tls" . }}
# Without a queue, the receiver knows what the backend has accepted. It retries the rest itself.
sending_queue: {enabled: false}
retry_on_failure: {enabled: false}
{{- end -}}
{{- end -}}

{{/* A variable whose value is in a Secret: (list VARIABLE SECRET KEY). */}}
{{- define "kube-events.fromSecret" }}
- name: {{ index . 0 }}
  valueFrom:
    secretKeyRef:
      name: {{ index . 1 | toYaml }}
      key: {{ index . 2 | toYaml }}
{{- end -}}

{{/* The variables of the headers of a backend that are in Secrets: (list BACKEND VARIABLES). */}}
{{- define "kube-events.secretHeaders" -}}
{{- $variables := index . 1 -}}
{{- range $header, $secret := (index . 0).secretHeaders }}
{{- include "kube-events.fromSecret" (list (print $variables (include "kube-events.headerVariable" $header)) $secret.name $secret.key) }}
{{- end }}
{{- end -}}

{{/* The variables of the backend. */}}
{{- define "kube-events.backendEnv" -}}
{{- $preset := include "kube-events.preset" . | fromYaml -}}
{{- with .Values.otlp.endpoint }}
- name: OTLP_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- if .Values.backend.secret }}
{{- if not .Values.otlp.endpoint }}
{{- include "kube-events.fromSecret" (list "OTLP_ENDPOINT" .Values.backend.secret "endpoint") }}
      {{- if $preset.endpoint }}
      optional: true
      {{- end }}
{{- end }}
{{- range concat $preset.keys ($preset.optionalKeys | default list) }}
{{- include "kube-events.fromSecret" (list (printf "BACKEND_%s" (upper . | replace "-" "_")) $.Values.backend.secret .) }}
{{- end }}
{{- end }}
{{- include "kube-events.secretHeaders" (list .Values.otlp "") }}
{{- range $name, $backend := .Values.additionalBackends }}
{{- include "kube-events.secretHeaders" (list $backend (include "kube-events.additionalVariables" $name)) }}
{{- end }}
{{- end -}}
