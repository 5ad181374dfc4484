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
{{- include "kube-events.extraEnv" . }}
{{- end -}}

{{/*
The variables of extraEnv. A proxy in them is for the backend, but k8s_leader_elector would also use it
for the API server. So NO_PROXY gets the address of the API server, which the kubelet inserts. The
user's NO_PROXY gets the name no_proxy, which Go reads only without NO_PROXY.
*/}}
{{- define "kube-events.extraEnv" -}}
{{- $variables := dict -}}
{{- range .Values.extraEnv -}}{{- $_ := set $variables .name . -}}{{- end -}}
{{- $proxy := false -}}
{{- range list "HTTPS_PROXY" "https_proxy" "HTTP_PROXY" "http_proxy" -}}
{{- if hasKey $variables . -}}{{- $proxy = true -}}{{- end -}}
{{- end -}}
{{- $own := get $variables "NO_PROXY" | default (get $variables "no_proxy") -}}
{{- range .Values.extraEnv -}}
{{- if not (and $proxy (has .name (list "NO_PROXY" "no_proxy"))) }}
{{ toYaml (list .) }}
{{- end -}}
{{- end -}}
{{- if $proxy -}}
{{- with $own }}
{{ toYaml (list (merge (dict "name" "no_proxy") .)) }}
{{- end }}
# k8s_leader_elector must not use the proxy for the API server.
- name: NO_PROXY
  value: {{ if $own }}$(no_proxy),{{ end }}$(KUBERNETES_SERVICE_HOST)
{{- end -}}
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
{{- if .Values.page.hosts }}
- name: page
  mountPath: /etc/otelcol-page
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
{{- if .Values.page.hosts }}
- name: page
  secret:
    secretName: {{ .Values.page.htpasswdSecret | toYaml }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
