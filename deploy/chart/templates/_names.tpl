{{/* The name of the application. */}}
{{- define "kube-events.application" -}}
{{- .Values.nameOverride | default .Chart.Name -}}
{{- end -}}

{{/* The name of all objects: that of the release, if the release is called kube-events. */}}
{{- define "kube-events.name" -}}
{{- $application := include "kube-events.application" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains $application .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $application = $application | trunc 24 | trimSuffix "-" -}}
{{- printf "%s-%s" (.Release.Name | trunc (sub 39 (len $application) | int) | trimSuffix "-") $application -}}
{{- end -}}
{{- end -}}

{{- define "kube-events.selector" -}}
app.kubernetes.io/name: {{ include "kube-events.application" . }}
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
{{- end -}}

{{- define "kube-events.labels" -}}
{{ include "kube-events.selector" (index . 0) }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
{{- with merge (dict) (index . 1) (index . 0).Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The labels and annotations of an object, and others: (list $ LABELS ANNOTATIONS). */}}
{{- define "kube-events.metadata" -}}
labels:
  {{- include "kube-events.labels" . | nindent 2 }}
{{- with merge (dict) (index . 2) (index . 0).Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A ClusterRole with this label adds its rules to the permissions of the Collector. */}}
{{- define "kube-events.aggregateLabel" -}}
kubeevents.github.io/aggregate-to-{{ include "kube-events.name" . }}
{{- end -}}

{{- define "kube-events.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "kube-events.name" .) -}}
{{- end -}}

{{- define "kube-events.image" -}}
{{- $repository := .Values.image.repository -}}
{{- with .Values.global.imageRegistry -}}
{{- /* The part before the first slash is a registry if it has a dot or a port, or is localhost. */ -}}
{{- $repository = printf "%s/%s" . (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $repository "") -}}
{{- end -}}
{{- /* A release notes what it pushed: REPOSITORY:TAG@DIGEST. Another registry may have another copy. */ -}}
{{- $released := splitList "@" (index .Chart.Annotations "kubeevents.github.io/image") -}}
{{- $version := printf "%s:%s" $repository .Chart.AppVersion -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else if and (eq $version (first $released)) (not .Values.image.tag) -}}
{{- printf "%s@%s" $version (last $released) -}}
{{- else -}}
{{- printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The Secrets for the registry. A parent chart may write them as names, or as objects. */}}
{{- define "kube-events.pullSecrets" -}}
{{- $secrets := list -}}
{{- range concat .Values.image.pullSecrets .Values.global.imagePullSecrets -}}
{{- if kindIs "map" . -}}{{- $secrets = append $secrets (dict "name" .name) -}}
{{- else -}}{{- $secrets = append $secrets (dict "name" .) -}}{{- end -}}
{{- end -}}
{{- with uniq $secrets -}}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* The lease of the leader election. */}}
{{- define "kube-events.lease" -}}
{{- include "kube-events.name" . }}-leader
{{- end -}}

{{/* The ConfigMaps of the leader's progress: one for each receiver of the configuration, with the receiver's default. */}}
{{- define "kube-events.progress" -}}
{{- $names := list -}}
{{- range $id, $receiver := (include "kube-events.config" . | fromYaml).receivers -}}
{{- with $receiver | default dict -}}
{{- if .progress_config_map -}}{{- $names = append $names (splitList "/" .progress_config_map | last) -}}
{{- else if .k8s_leader_elector -}}{{- $names = append $names (printf "kube-events-leader-%s" ($id | lower | replace "_" "-" | replace "/" ".")) -}}
{{- end -}}
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

{{/* The security context of the pods. */}}
{{- define "kube-events.podSecurityContext" -}}
{{- $context := dict "runAsNonRoot" true "fsGroupChangePolicy" "OnRootMismatch" "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- if not (kindIs "invalid" .Values.runAsUser) -}}
{{- range list "runAsUser" "runAsGroup" "fsGroup" -}}{{- $_ := set $context . (int64 $.Values.runAsUser) -}}{{- end -}}
{{- end -}}
{{- include "kube-events.merge" (list $context (deepCopy .Values.podSecurityContext)) -}}
{{- toYaml $context -}}
{{- end -}}

{{/* The security context of the Collector's container. */}}
{{- define "kube-events.securityContext" -}}
{{- $context := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- include "kube-events.merge" (list $context (deepCopy .Values.securityContext)) -}}
{{- toYaml $context -}}
{{- end -}}

{{/* The strategy of the Deployment. */}}
{{- define "kube-events.strategy" -}}
{{- if .Values.strategy -}}
{{- toYaml .Values.strategy -}}
{{- else if ne .Values.mode "ha" -}}
# Two Collectors without leader election emit everything twice, and cannot share a volume.
type: Recreate
{{- else if gt (int .Values.replicas) 1 -}}
# Replace one replica at a time, so that one of them can lead.
type: RollingUpdate
rollingUpdate:
  maxSurge: 0
  maxUnavailable: 1
{{- else -}}
# The new pod is ready to lead before the old one stops.
type: RollingUpdate
rollingUpdate:
  maxSurge: 1
  maxUnavailable: 0
{{- end -}}
{{- end -}}
