{{/*
Values that contradict each other. Each message names the fix. What a single value may be is in
values.schema.json.
*/}}
{{- define "kube-events.checkValues" -}}
{{- $ha := eq .Values.mode "ha" -}}
{{- $several := gt (int .Values.replicas) 1 -}}
{{- if and $several (not $ha) -}}
{{- fail (printf "replicas is %d, but mode=%s has no leader election, so each replica would emit everything: set mode=ha or replicas=1" (int .Values.replicas) .Values.mode) -}}
{{- end -}}
{{- if and (not $ha) .Values.strategy (ne (.Values.strategy.type | default "RollingUpdate") "Recreate") -}}
{{- fail (printf "strategy.type is not Recreate, but with mode=%s two Collectors must not run at the same time: remove strategy, or set mode=ha" .Values.mode) -}}
{{- end -}}
{{- if ne .Values.mode "single" -}}
{{- if .Values.storage.existingClaim -}}
{{- fail (printf "storage.existingClaim is set, but mode=%s uses no volume: set mode=single, or remove storage.existingClaim" .Values.mode) -}}
{{- end -}}
{{- if or .Values.storage.storageClassName .Values.storage.annotations -}}
{{- fail (printf "storage.storageClassName or storage.annotations is set, but mode=%s uses no volume: set mode=single, or remove them" .Values.mode) -}}
{{- end -}}
{{- end -}}
{{- $preset := include "kube-events.preset" . | fromYaml -}}
{{- with .Values.backend.preset -}}
{{- if and (or $preset.keys (not (or $.Values.otlp.endpoint $preset.endpoint))) (not $.Values.backend.secret) -}}
{{- $keys := $preset.keys | default $preset.optionalKeys -}}
{{- fail (printf "backend.preset=%s needs %s: set backend.secret to the name of a Secret with the keys: %s%s" . (ternary "credentials" "an endpoint" (not (empty $preset.keys))) (join ", " $keys) (ternary "" ", endpoint; or set otlp.endpoint" (or (not (empty $.Values.otlp.endpoint)) (hasKey $preset "endpoint")))) -}}
{{- end -}}
{{- if and (ne . "otlp") (ne $.Values.otlp.protocol "http") -}}
{{- fail (printf "backend.preset=%s uses OTLP over HTTP: remove otlp.protocol" .) -}}
{{- end -}}
{{- if and $.Values.otlp.signals (not (hasKey $preset "metrics")) (has "metrics" $.Values.otlp.signals) -}}
{{- fail (printf "backend.preset=%s accepts no metrics: set otlp.signals={logs}, and prometheus.enabled=true for the metric" .) -}}
{{- end -}}
{{- else -}}
{{- if .Values.backend.secret -}}{{- fail "backend.secret is set without backend.preset: set backend.preset, such as otlp" -}}{{- end -}}
{{- end -}}
{{- if and .Values.prometheus.enabled (has "metrics" (include "kube-events.signals" . | fromJsonArray)) (not .Values.otlp.signals) -}}
{{- fail "prometheus.enabled and otlp or backend both offer the metric, and a Prometheus that gets both counts each occurrence twice: set otlp.signals={logs}, or otlp.signals={logs,metrics} if they are different places" -}}
{{- end -}}
{{- if .Values.namespaces -}}
{{- $clusterScoped := include "kube-events.clusterScoped" . | fromYaml -}}
{{- range $rule := .Values.rbac.extraRules -}}
{{- range $group := $rule.apiGroups -}}
{{- range $rule.resources -}}
{{- if has . (get $clusterScoped $group | default list) -}}
{{- fail (printf "rbac.extraRules has %s, which is in no namespace, but with namespaces there are only Roles, which cannot permit it: remove it from rbac.extraRules, or remove namespaces" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.page -}}
{{- if and .hosts (not .enabled) -}}
{{- fail "page.hosts is set without the page: set page.enabled=true" -}}
{{- end -}}
{{- if and .hosts (not .htpasswdSecret) -}}
{{- fail "page.hosts publishes the page, which shows all events: set page.htpasswdSecret to the name of a Secret with the key htpasswd" -}}
{{- end -}}
{{- if and .htpasswdSecret (not .hosts) -}}
{{- fail "page.htpasswdSecret has no effect without page.hosts, because the page is on the loopback interface: set page.hosts, or remove it" -}}
{{- end -}}
{{- if and .hosts $several -}}
{{- fail "page.hosts publishes the page of one pod, and with several replicas this may be a standby: set replicas=1" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.rollouts.endpoint (not .Values.rollouts.enabled) -}}
{{- fail "rollouts.endpoint is set, but there are no traces: set rollouts.enabled=true, or remove it" -}}
{{- end -}}
{{- if and (eq .Values.otlp.protocol "http") (regexMatch "/v1/(logs|metrics|traces)/?$" .Values.otlp.endpoint) -}}
{{- fail (printf "otlp.endpoint=%s: the exporter appends /v1/logs and /v1/metrics itself: remove the end of the path" .Values.otlp.endpoint) -}}
{{- end -}}
{{- if and .Values.podMonitor.enabled .Values.serviceMonitor.enabled -}}
{{- fail "podMonitor.enabled and serviceMonitor.enabled would scrape each pod twice: enable one of them" -}}
{{- end -}}
{{- end -}}

{{/*
Kinds that are in no namespace, by API group: of Kubernetes, and of the projects in integrations.yaml.
The chart cannot know those of other custom resources.
*/}}
{{- define "kube-events.clusterScoped" -}}
"": [componentstatuses, nodes, persistentvolumes]
admissionregistration.k8s.io:
  - mutatingadmissionpolicies
  - mutatingadmissionpolicybindings
  - mutatingwebhookconfigurations
  - validatingadmissionpolicies
  - validatingadmissionpolicybindings
  - validatingwebhookconfigurations
apiextensions.k8s.io: [customresourcedefinitions]
apiregistration.k8s.io: [apiservices]
certificates.k8s.io: [certificatesigningrequests, clustertrustbundles]
flowcontrol.apiserver.k8s.io: [flowschemas, prioritylevelconfigurations]
networking.k8s.io: [ingressclasses, ipaddresses, servicecidrs]
node.k8s.io: [runtimeclasses]
rbac.authorization.k8s.io: [clusterrolebindings, clusterroles]
resource.k8s.io: [deviceclasses, resourceslices]
scheduling.k8s.io: [priorityclasses]
storage.k8s.io: [csidrivers, csinodes, storageclasses, volumeattachments, volumeattributesclasses]
argoproj.io: [clusteranalysistemplates]
cdi.kubevirt.io: [cdis]
cert-manager.io: [clusterissuers]
config.openshift.io: [clusteroperators, clusterversions]
keda.sh: [clustertriggerauthentications]
machineconfiguration.openshift.io:
  - kubeletconfigs
  - machineconfignodes
  - machineconfigpools
  - machineconfigs
  - machineosbuilds
  - machineosconfigs
operator.openshift.io: [consoles, dnses, networks]
postgresql.cnpg.io: [clusterimagecatalogs]
triggers.tekton.dev: [clusterinterceptors, clustertriggerbindings]
{{- end -}}
