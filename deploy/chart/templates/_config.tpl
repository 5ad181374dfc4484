{{/* The Collector's configuration: that of the chart, and what the value `config` changes in it. */}}
{{- define "kube-events.config" -}}
{{- include "kube-events.checkValues" . -}}
{{- $config := include "kube-events.ownConfig" . | fromYaml -}}
{{- if hasKey $config "Error" -}}{{- fail (printf "the chart's own configuration is not valid YAML: %s" $config.Error) -}}{{- end -}}
{{- if include "kube-events.sends" . -}}
{{- $sending := include "kube-events.sending" . | fromYaml -}}
{{- include "kube-events.merge" (list $config $sending) -}}
{{- $_ := set $config.service "extensions" (concat $config.service.extensions (keys ($sending.extensions | default dict) | sortAlpha)) -}}
{{- end -}}
{{- if or .Values.rollouts.enabled (and .Values.problems.enabled (dig "service" "pipelines" dict $config)) -}}
{{- $incidents := include "kube-events.incidents" (list . $config) | fromYaml -}}
{{- if hasKey $incidents "Error" -}}{{- fail (printf "the chart's own configuration of problems is not valid YAML: %s" $incidents.Error) -}}{{- end -}}
{{- include "kube-events.merge" (list $config $incidents) -}}
{{- end -}}
{{- if .Values.rollouts.enabled -}}
{{- $rollouts := include "kube-events.rollouts" . | fromYaml -}}
{{- if hasKey $rollouts "Error" -}}{{- fail (printf "the chart's own configuration of rollouts is not valid YAML: %s" $rollouts.Error) -}}{{- end -}}
{{- include "kube-events.merge" (list $config $rollouts) -}}
{{- end -}}
{{- include "kube-events.merge" (list $config (deepCopy .Values.config)) -}}
{{- if or .Values.page.enabled .Values.rollouts.enabled .Values.problems.enabled -}}{{- include "kube-events.addForRollouts" $config -}}{{- end -}}
{{- range $signal, $names := .Values.extraProcessors -}}
{{- range $names -}}
{{- if not (hasKey $config.processors .) -}}{{- fail (printf "extraProcessors.%s names %s, which does not exist: add it to config.processors" $signal .) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if not (dig "service" "pipelines" dict $config) -}}
{{- fail "nothing receives the events: set otlp.endpoint (such as http://otel-gateway.observability:4318), backend.preset, prometheus.enabled=true, or page.enabled=true" -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/*
Changes a map: (list MAP CHANGES). Maps are merged, everything else is replaced, and null removes a
key. mergeOverwrite cannot set an empty list, and cannot remove.
*/}}
{{- define "kube-events.merge" -}}
{{- $into := index . 0 -}}
{{- range $key, $value := index . 1 -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $into $key -}}
{{- else if and (kindIs "map" $value) (kindIs "map" (get $into $key)) -}}
{{- include "kube-events.merge" (list (get $into $key) $value) -}}
{{- else -}}
{{- $_ := set $into $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Adds what rollouts need and records do not have by default. This is the revision of the pods of
StatefulSets and DaemonSets: without it, nothing shows their rollouts. So a list in the value `config`
does not remove it. It is also the UID of the owner, unless `config` switches it off. Only records have
both: the receiver leaves labels that tell revisions apart out of the metric.
*/}}
{{- define "kube-events.addForRollouts" -}}
{{- $extract := dig "receivers" "kube_events" "extract" dict . -}}
{{- $labels := get $extract "labels" | default list -}}
{{- $known := false -}}
{{- $tag := "k8s.pod.label.controller-revision-hash" -}}
{{- range $labels -}}
{{- if and (eq (.key | default "") "controller-revision-hash") (eq (.tag_name | default $tag) $tag) -}}{{- $known = true -}}{{- end -}}
{{- end -}}
{{- if not $known -}}
{{- $_ := set $extract "labels" (append $labels (dict "key" "controller-revision-hash" "from" "pod")) -}}
{{- $_ := set .receivers.kube_events "extract" $extract -}}
{{- end -}}
{{- $attributes := dig "receivers" "kube_events" "resource_attributes" dict . -}}
{{- if not (get $attributes "k8s.owner.uid") -}}
{{- $_ := set $attributes "k8s.owner.uid" (dict "enabled" true) -}}
{{- $_ := set .receivers.kube_events "resource_attributes" $attributes -}}
{{- end -}}
{{- end -}}

{{- define "kube-events.ownConfig" -}}
{{- $preset := include "kube-events.preset" . | fromYaml -}}
{{- $logs := list -}}
{{- $metrics := list -}}
{{- $logsProcessors := concat (list "memory_limiter" "resource/source") .Values.extraProcessors.logs -}}
{{- $metricsProcessors := concat (list "memory_limiter") .Values.extraProcessors.metrics -}}
{{- $additional := dict "logs" (append $logsProcessors "batch/additional") "metrics" (append $metricsProcessors "batch/additional") -}}
{{- range include "kube-events.signals" . | fromJsonArray -}}
{{- $pipeline := get $preset . -}}
{{- if eq . "logs" -}}
{{- range $pipeline.exporters -}}{{- $logs = append $logs (include "kube-events.exporter" (list $ .)) -}}{{- end -}}
{{- $logsProcessors = concat $logsProcessors $pipeline.processors -}}
{{- else -}}
{{- range $pipeline.exporters -}}{{- $metrics = append $metrics (include "kube-events.exporter" (list $ .)) -}}{{- end -}}
{{- $metricsProcessors = concat $metricsProcessors $pipeline.processors -}}
{{- end -}}
{{- end -}}
{{- if .Values.page.enabled -}}{{- $logs = append $logs "event_page" -}}{{- end -}}
{{- if .Values.prometheus.enabled -}}{{- $metrics = append $metrics "prometheus" -}}{{- end -}}
{{- $extensions := list "health_check" "health_check/ready" -}}
{{- if eq .Values.mode "single" -}}{{- $extensions = append $extensions "file_storage" -}}{{- end -}}
{{- if eq .Values.mode "ha" -}}{{- $extensions = append $extensions "k8s_leader_elector" -}}{{- end -}}
{{- if or .Values.page.enabled .Values.problems.enabled -}}{{- $extensions = append $extensions "kube_events_status" -}}{{- end -}}
{{- if .Values.page.hosts -}}{{- $extensions = append $extensions "basicauth/page" -}}{{- end -}}
receivers:
  kube_events:
    {{- with .Values.clusterName }}
    cluster_name: {{ . | quote }}
    {{- end }}
    {{- if ne .Values.startAt "end" }}
    start_at: {{ .Values.startAt }}
    {{- end }}
    {{- with .Values.namespaces }}
    namespaces: {{ toJson . }}
    {{- end }}
    {{- if .Values.prometheus.enabled }}
    # Not shorter than the interval of the scrapes, which must not miss the zero of a new series.
    collection_interval: {{ include "kube-events.scrapeInterval" . }}
    {{- end }}
    {{- if eq .Values.mode "single" }}
    # A restart loses nothing. A crash repeats at most the last second, with the same log.record.uid.
    storage: file_storage
    {{- else if eq .Values.mode "ha" }}
    # Only the leader emits. It notes its progress, and a new leader continues there.
    k8s_leader_elector: k8s_leader_elector
    progress_config_map: ${env:POD_NAMESPACE}/{{ include "kube-events.lease" . }}-kube-events
    {{- end }}
    {{- if not .Values.details.enabled }}
    details: {enabled: false}
    {{- else if .Values.details.configMaps }}
    details: {config_maps: true}
    {{- end }}
    {{- if or .Values.page.enabled .Values.rollouts.enabled .Values.problems.enabled }}
    extract:
      labels:
        - {tag_name: tilt.manifest, key: tilt-manifest}
    {{- end }}
processors:
  # Rejects data while memory is short. The receiver then retries, and the API server keeps the
  # events.
  memory_limiter:
    check_interval: 1s
    limit_percentage: 78
    spike_limit_percentage: 20
  # An attribute of the records of events, and of problems and changes: other logs do not have it.
  # docs/queries.md makes it an index label of Loki, which the dashboards select.
  resource/source:
    attributes: [{key: log.source, value: kube_events, action: upsert}]
  {{- if .Values.additionalBackends }}
  # Passes each request on as it is, but no error: the receiver does not wait for additionalBackends.
  batch/additional: {timeout: 0s}
  {{- end }}
exporters:
  {{- range $name, $backend := .Values.additionalBackends }}
  {{ include "kube-events.additionalExporter" (list $name $backend) }}:
    endpoint: {{ $backend.endpoint | replace "$" "$$" | quote }}
    {{- include "kube-events.headers" (list $backend (include "kube-events.additionalVariables" $name)) | nindent 4 }}
    {{- include "kube-events.insecure" (list $backend.endpoint ($backend.protocol | default "http")) | nindent 4 }}
    sending_queue: {sizer: bytes, queue_size: 16777216}
  {{- end }}
  {{- if .Values.page.enabled }}
  event_page:
    {{- with .Values.page.hosts }}
    endpoint: ":8090"
    # Programs in the cluster use a name of the Service. NAME.NAMESPACE is not allowed: in a namespace such as dev,
    # it is a domain that anybody can register, and point to this address.
    {{- $service := printf "%s-page" (include "kube-events.name" $) }}
    {{- $svc := printf "%s.%s.svc" $service $.Release.Namespace }}
    allowed_hosts: {{ concat . (list $service $svc (printf "%s.cluster.local" $svc)) | toJson }}
    auth: {authenticator: basicauth/page}
    # Without this header, a browser does not ask for the password.
    response_headers: {WWW-Authenticate: Basic realm="events"}
    {{- else }}
    # Everybody who can connect sees all events. `kubectl port-forward` reaches the loopback interface,
    # other pods do not.
    endpoint: 127.0.0.1:8090
    {{- end }}
  {{- end }}
  {{- if .Values.prometheus.enabled }}
  prometheus:
    endpoint: ":9464"
    without_scope_info: true
  {{- end }}
# An address without a host: on all interfaces, so that the kubelet's probes and
# `kubectl port-forward` reach it, with IPv4 and with IPv6.
extensions:
  # Liveness: whether the Collector runs. An unreachable API server, or a missing permission, must
  # not restart it.
  health_check:
    http: {endpoint: ":13133"}
  # Startup: whether the receiver can watch events. The response names the problem.
  health_check/ready:
    http: {endpoint: ":13134"}
    component_health:
      include_permanent_errors: true
      include_recoverable_errors: true
  {{- if eq .Values.mode "single" }}
  file_storage:
    directory: /var/lib/otelcol
  {{- else if eq .Values.mode "ha" }}
  k8s_leader_elector:
    auth_type: serviceAccount
    lease_name: {{ include "kube-events.lease" . }}
    lease_namespace: ${env:POD_NAMESPACE}
  {{- end }}
  {{- if or .Values.page.enabled .Values.problems.enabled }}
  # Tells the page and kube_incidents whether the receiver works, and whether this pod is a standby.
  kube_events_status: {}
  {{- end }}
  {{- if .Values.page.hosts }}
  # Who may see the page.
  basicauth/page:
    htpasswd: {file: /etc/otelcol-page/htpasswd}
  {{- end }}
service:
  extensions: {{ toJson $extensions }}
  # Both pipelines name the same receiver: they share one watch.
  pipelines:
    {{- with $logs }}
    logs:
      receivers: [kube_events]
      processors: {{ toJson $logsProcessors }}
      exporters: {{ toJson . }}
    {{- end }}
    {{- with $metrics }}
    metrics:
      receivers: [kube_events]
      processors: {{ toJson $metricsProcessors }}
      exporters: {{ toJson . }}
    {{- end }}
    {{- range $name, $backend := .Values.additionalBackends }}
    {{- range $signal := $backend.signals | default (include "kube-events.signals" $ | fromJsonArray) }}
    # Without the processors of a preset, which are for its backend.
    {{ $signal }}/{{ $name }}:
      receivers: [kube_events]
      processors: {{ get $additional $signal | toJson }}
      exporters: [{{ include "kube-events.additionalExporter" (list $name $backend) }}]
    {{- end }}
    {{- end }}
  telemetry:
    logs: {encoding: json, disable_stacktrace: true}
    # The Collector's own metrics.
    metrics:
      readers:
        - pull:
            exporter:
              prometheus: {host: "", port: 8888}
{{- end -}}

{{/* The headers for a backend: (list BACKEND VARIABLES). VARIABLES is the prefix of the variables of its Secrets. */}}
{{- define "kube-events.headers" -}}
{{- $backend := index . 0 -}}
{{- $variables := index . 1 -}}
{{- if or $backend.headers $backend.secretHeaders -}}
headers:
  {{- range $name, $value := $backend.headers }}
  {{ $name }}: {{ $value | replace "$" "$$" | quote }}
  {{- end }}
  {{- range $name, $_ := $backend.secretHeaders }}
  {{ $name }}: ${literalenv:{{ $variables }}{{ include "kube-events.headerVariable" $name }}}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* Whether a value of otlp.tls is set. */}}
{{- define "kube-events.usesTLS" -}}
{{- with .Values.otlp.tls -}}
{{- if or .caSecret.name .clientSecret .serverName .insecureSkipVerify -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kube-events.tls" -}}
{{- include "kube-events.insecure" (list .Values.otlp.endpoint .Values.otlp.protocol) -}}
{{- if include "kube-events.usesTLS" . -}}
tls:
  {{- with .Values.otlp.tls }}
  {{- if .caSecret.name }}
  ca_file: /etc/otelcol-tls/ca/ca.crt
  {{- end }}
  {{- if .clientSecret }}
  cert_file: /etc/otelcol-tls/client/tls.crt
  key_file: /etc/otelcol-tls/client/tls.key
  # The certificate may be renewed while the Collector runs.
  reload_interval: 5m
  {{- end }}
  {{- with .serverName }}
  server_name_override: {{ . | toYaml }}
  {{- end }}
  {{- if .insecureSkipVerify }}
  insecure_skip_verify: true
  {{- end }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* The exporter for gRPC uses TLS, whatever the scheme is: (list ADDRESS PROTOCOL). */}}
{{- define "kube-events.insecure" -}}
{{- if and (hasPrefix "http://" (index . 0)) (eq (index . 1) "grpc") -}}
tls: {insecure: true}
{{- end -}}
{{- end -}}

{{/* The exporter of one of additionalBackends: (list NAME BACKEND). */}}
{{- define "kube-events.additionalExporter" -}}
otlp_{{ (index . 1).protocol | default "http" }}/{{ index . 0 }}
{{- end -}}

{{/* The prefix of the variables of one of additionalBackends. */}}
{{- define "kube-events.additionalVariables" -}}
{{ . | upper | replace "-" "_" }}_
{{- end -}}
