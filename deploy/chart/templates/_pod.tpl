{{/* The variables of the Collector's container, which the pod of `helm test` has, too. */}}
{{- define "kube-events.env" -}}
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- with include "kube-events.goMemoryLimit" . }}
# Go's garbage collector keeps memory below the limit of memory_limiter.
- name: GOMEMLIMIT
  value: {{ . }}
{{- end }}
{{- include "kube-events.backendEnv" . }}
{{- range $header, $secret := .Values.otlp.secretHeaders }}
- name: {{ include "kube-events.headerVariable" $header }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret.name | toYaml }}
      key: {{ $secret.key | toYaml }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The files of the Collector's container, without its storage. */}}
{{- define "kube-events.volumeMounts" -}}
- name: config
  mountPath: /etc/otelcol
  readOnly: true
{{- if .Values.otlp.tls.caSecret.name }}
- name: ca
  mountPath: /etc/otelcol-tls/ca
  readOnly: true
{{- end }}
{{- if .Values.otlp.tls.clientSecret }}
- name: client
  mountPath: /etc/otelcol-tls/client
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kube-events.volumes" -}}
- name: config
  configMap:
    name: {{ include "kube-events.name" . }}
{{- with .Values.otlp.tls.caSecret }}
{{- if .name }}
- name: ca
  secret:
    secretName: {{ .name | toYaml }}
    items:
      - key: {{ .key | toYaml }}
        path: ca.crt
{{- end }}
{{- end }}
{{- with .Values.otlp.tls.clientSecret }}
- name: client
  secret:
    secretName: {{ . | toYaml }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
