{{/* The endpoints of a PodMonitor or ServiceMonitor: (list $ MONITOR). */}}
{{- define "kube-events.scrapes" -}}
{{- $monitor := index . 1 -}}
{{- with index . 0 -}}
{{- $relabelings := $monitor.relabelings -}}
{{- with .Values.clusterName -}}
{{- $relabelings = prepend $relabelings (dict "targetLabel" "cluster" "replacement" .) -}}
{{- end -}}
{{- $scrape := dict "interval" $monitor.interval -}}
{{- with $monitor.scrapeTimeout -}}{{- $_ := set $scrape "scrapeTimeout" . -}}{{- end -}}
{{- if $monitor.honorLabels -}}{{- $_ := set $scrape "honorLabels" true -}}{{- end -}}
{{- with $relabelings -}}{{- $_ := set $scrape "relabelings" . -}}{{- end -}}
{{- with $monitor.metricRelabelings -}}{{- $_ := set $scrape "metricRelabelings" . -}}{{- end -}}
# The Collector's own metrics. By the label cluster, the rules tell one cluster from another.
- port: metrics
  {{- toYaml $scrape | nindent 2 }}
{{- if .Values.prometheus.enabled }}
# The occurrences of events.
- port: events
  {{- toYaml $scrape | nindent 2 }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* The interval of the scrapes, if a value says it. */}}
{{- define "kube-events.scrapeInterval" -}}
{{- if .Values.podMonitor.enabled -}}{{- .Values.podMonitor.interval -}}
{{- else if .Values.serviceMonitor.enabled -}}{{- .Values.serviceMonitor.interval -}}
{{- else -}}{{- .Values.prometheus.scrapeInterval -}}{{- end -}}
{{- end -}}
