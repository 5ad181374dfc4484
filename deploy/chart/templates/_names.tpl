{{/* The name of all objects: that of the release, if the release is called kube-events. */}}
{{- define "kube-events.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" (.Release.Name | trunc 28 | trimSuffix "-") .Chart.Name -}}
{{- end -}}
{{- end -}}

{{- define "kube-events.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
{{- end -}}

{{- define "kube-events.labels" -}}
{{ include "kube-events.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{/* A ClusterRole with this label adds its rules to the permissions of the Collector. */}}
{{- define "kube-events.aggregateLabel" -}}
kubeevents.github.io/aggregate-to-{{ include "kube-events.name" . }}
{{- end -}}

{{- define "kube-events.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "kube-events.name" .) -}}
{{- end -}}

{{- define "kube-events.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The lease of the leader election. Its name is also a part of the name of the position's ConfigMap. */}}
{{- define "kube-events.lease" -}}
{{- include "kube-events.name" . }}-leader
{{- end -}}

{{/* The ConfigMaps of the positions: one for each receiver of the configuration. */}}
{{- define "kube-events.positions" -}}
{{- $names := list -}}
{{- range $id, $_ := (include "kube-events.config" . | fromYaml).receivers -}}
{{- if regexMatch "^kube_events(/|$)" $id -}}
{{- $names = append $names (printf "%s-%s" (include "kube-events.lease" $) ($id | replace "_" "-" | replace "/" ".")) -}}
{{- end -}}
{{- end -}}
[{{ join ", " $names }}]
{{- end -}}

{{/* The variable of a header whose value is in a Secret. */}}
{{- define "kube-events.headerVariable" -}}
OTLP_HEADER_{{ . | upper | replace "-" "_" }}
{{- end -}}

{{/* 74 % of the memory limit: Go's garbage collector then keeps memory below memory_limiter's 78 %. */}}
{{- define "kube-events.goMemoryLimit" -}}
{{- $limit := dig "limits" "memory" "" .Values.resources -}}
{{- if $limit -}}
{{- $mib := regexFind "^[0-9]+" $limit | int64 -}}
{{- if hasSuffix "Gi" $limit -}}{{- $mib = mul $mib 1024 -}}{{- end -}}
{{- printf "%dMiB" (div (mul $mib 74) 100) -}}
{{- end -}}
{{- end -}}
