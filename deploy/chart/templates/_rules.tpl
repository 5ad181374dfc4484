{{/*
What the receiver needs to read: events, and the metadata of the objects that they are about and of
their owners. A Role in one namespace does not get the kinds that have no namespace.
*/}}
{{- define "kube-events.rules" -}}
{{- $clusterWide := not .Values.namespaces -}}
- apiGroups: [""]
  resources: [events]
  verbs: [get, list, watch]
# The cluster's identity (k8s.cluster.uid), and labels of Namespaces (from: namespace).
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get{{ if $clusterWide }}, list{{ end }}]
# The objects that the cluster's own controllers write events about, and the owners of such objects.
- apiGroups: [""]
  resources:
    - endpoints
    - persistentvolumeclaims
    - pods
    - replicationcontrollers
    - resourcequotas
    - serviceaccounts
    - services
    {{- if $clusterWide }}
    - nodes
    - persistentvolumes
    {{- end }}
  verbs: [get, list]
{{- if and .Values.details.enabled .Values.details.configMaps }}
# When they changed, and by which manager: details.configMaps.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get]
{{- end }}
- apiGroups: [apps]
  resources: [{{ if .Values.details.enabled }}controllerrevisions, {{ end }}daemonsets, deployments, replicasets, statefulsets]
  verbs: [get, list]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list]
- apiGroups: [batch]
  resources: [cronjobs, jobs]
  verbs: [get, list]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list]
- apiGroups: [networking.k8s.io]
  resources: [ingresses, networkpolicies{{ if $clusterWide }}, ingressclasses, ipaddresses, servicecidrs{{ end }}]
  verbs: [get, list]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims{{ if $clusterWide }}, resourceslices{{ end }}]
  verbs: [get, list]
# Groups of pods that are scheduled together. In Kubernetes 1.36, they are alpha.
- apiGroups: [scheduling.k8s.io]
  resources: [podgroups, workloads]
  verbs: [get, list]
{{- if $clusterWide }}
- apiGroups: [storage.k8s.io]
  resources: [storageclasses, volumeattachments]
  verbs: [get, list]
{{- end }}
{{- end -}}

{{/* Rules without verbs, with the verbs of a lookup: get and list. */}}
{{- define "kube-events.lookupRules" -}}
{{- $rules := list -}}
{{- range . -}}
{{- $rules = append $rules (merge (dict) . (dict "verbs" (list "get" "list"))) -}}
{{- end -}}
{{- toYaml $rules -}}
{{- end -}}

{{/* Binds the Collector to a ClusterRole: (list $ NAME). */}}
{{- define "kube-events.clusterRoleBinding" -}}
{{- $name := index . 1 -}}
{{- with index . 0 -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  {{- include "kube-events.metadata" (list . dict dict) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "kube-events.serviceAccountName" . }}
    namespace: {{ .Release.Namespace | toYaml }}
{{- end -}}
{{- end -}}
