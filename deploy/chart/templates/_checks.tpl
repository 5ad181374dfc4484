{{/*
Wrong values: the error has a line for each, with the value, its key, and what to write instead. Types, lists of
choices and unknown keys are in values.schema.json, which helm compares first.
*/}}
{{- define "kube-events.checkValues" -}}
{{- $wrong := print (include "kube-events.renamed" .) (include "kube-events.invalid" .) (include "kube-events.addresses" .) -}}
{{- /* Values that contradict each other are a second step: the first mistake is often their cause. */ -}}
{{- with $wrong | default (include "kube-events.contradictions" .) -}}{{- fail (print "\n" (trimSuffix "\n" .)) -}}{{- end -}}
{{- end -}}

{{/* Values that other charts have. The schema permits them, so that they get here. */}}
{{- define "kube-events.renamed" -}}
{{- range $path, $instead := include "kube-events.renames" . | fromYaml -}}
{{- $parent := $.Values -}}
{{- $names := splitList "." $path -}}
{{- range initial $names -}}{{- $parent = get $parent . | default dict -}}{{- end -}}
{{- if hasKey $parent (last $names) -}}{{- printf "%s: this chart has no such value: write %s\n" $path $instead -}}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kube-events.renames" -}}
affinities: affinity
annotations: deploymentAnnotations, podAnnotations or commonAnnotations
args: extraArgs
autoscaling: nothing, because only the leader works
clusterRole: rbac.extraRules
config.kube_events: config.receivers.kube_events
containerSecurityContext: securityContext
deploymentStrategy: strategy
endpoint: otlp.endpoint
env: extraEnv
envFrom: extraEnvFrom
existingSecret: backend.secret, or otlp.secretHeaders
exporters: config.exporters
extensions: config.extensions
extraDeploy: extraObjects
extraEnvs: extraEnv
extraEnvsFrom: extraEnvFrom
extraInitContainers: initContainers
extraManifests: extraObjects
headers: otlp.headers
image.registry: global.imageRegistry, or the registry in image.repository
imagePullPolicy: image.pullPolicy
imagePullSecrets: image.pullSecrets
ingress: page.hosts, and an Ingress for the Service RELEASE-page in extraObjects
labels: commonLabels
leaderElection: mode
logLevel: "extraArgs: [--set=service.telemetry.logs.level=debug]"
metrics: podMonitor or serviceMonitor
namespace: namespaces for what is watched, and --namespace for the release
namespaceOverride: --namespace of helm
networkPolicy.ingress: networkPolicy.from
otlp.insecure: http:// in otlp.endpoint
otlp.tls.insecure: http:// in otlp.endpoint
pdb: podDisruptionBudget
persistence: mode=single, and storage
podMonitor.additionalLabels: podMonitor.labels
podSecurityContext.runAsUser: runAsUser
processors: config.processors, and their names in extraProcessors
prometheusRule.additionalLabels: prometheusRule.labels
rbac.rules: rbac.extraRules
receivers: config.receivers
replicaCount: replicas
secretName: backend.secret, or otlp.secretHeaders
service: config.service for the Collector's; the chart adds a Service for page.hosts and serviceMonitor
serviceAccount.automount: nothing, because the Deployment mounts the token
serviceMonitor.additionalLabels: serviceMonitor.labels
sidecars: extraContainers
storage.accessMode: storage.accessModes
storage.storageClass: storage.storageClassName
updateStrategy: strategy
volumeMounts: extraVolumeMounts
volumes: extraVolumes
watchNamespaces: namespaces
{{- end -}}

{{/* Values that do not match, or match what they must not: a text, each item of a list, or each key of a map. */}}
{{- define "kube-events.invalid" -}}
{{- range $rule := include "kube-events.patterns" . | fromYamlArray -}}
{{- range $path := $rule.values -}}
{{- $value := $.Values -}}
{{- range splitList "." $path -}}{{- $value = get ($value | default dict) . -}}{{- end -}}
{{- if kindIs "map" $value -}}{{- $value = keys $value | sortAlpha -}}{{- else if not (kindIs "slice" $value) -}}{{- $value = list $value -}}{{- end -}}
{{- range $value -}}
{{- $text := toString (kindIs "invalid" . | ternary "" .) -}}
{{- if and $text (not (and (regexMatch ($rule.pattern | default "") $text) (not (and $rule.not (regexMatch $rule.not $text))))) -}}
{{- printf "%s: %q is not valid: write %s\n" $path $text $rule.write -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $known := list -}}
{{- range (.Files.Get "rules/kube-events.yaml" | fromYaml).groups -}}
{{- range .rules -}}{{- if .alert -}}{{- $known = append $known .alert -}}{{- end -}}{{- end -}}
{{- end -}}
{{- range $name := keys .Values.prometheusRule.alerts | sortAlpha -}}
{{- if not (has $name $known) -}}{{- printf "prometheusRule.alerts: %q is no alert of the chart: write one of %s\n" $name (join ", " $known) -}}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kube-events.patterns" -}}
- values: [podMonitor.interval, podMonitor.scrapeTimeout, serviceMonitor.interval, serviceMonitor.scrapeTimeout, prometheus.scrapeInterval]
  pattern: '^([1-9][0-9]{0,4}ms|([1-9][0-9]?|1[0-9][0-9]|2[0-3][0-9]|240)s|[1-4]m)$'
  write: a time of at most 4m, such as 30s, because the exporter of the metric forgets series after 5m
- values: [prometheusRule.interval]
  pattern: '^(([1-9][0-9]?|1[0-9][0-9]|2[0-3][0-9]|240)s|[1-4]m)$'
  write: a time of at most 4m, such as 1m, because the rules read each other's results, which are valid for 5m
- values: [rollouts.idleTimeout]
  pattern: '^([1-9][0-9]{1,3}s|[1-9][0-9]{0,2}m|([1-9]|1[0-9]|2[0-4])h)$'
  write: a time from 10s to 24h, such as 5m
- values: [resources.limits.memory]
  pattern: '^((6[4-9]|[7-9][0-9]|[1-9][0-9]{2,6})Mi|[1-9][0-9]{0,3}Gi)$'
  write: Mi or Gi without a fraction, from 64Mi on, such as 512Mi
- values: [storage.size]
  pattern: '^([1-9][0-9]*|[0-9]+\.[0-9]*[1-9])(Mi|Gi|Ti)$'
  write: Mi, Gi or Ti, such as 1Gi
- values: [podDisruptionBudget.minAvailable, podDisruptionBudget.maxUnavailable]
  pattern: '^[0-9]+%?$'
  write: a number or a percentage, such as 1 or 50%
- values: [namespaces, podMonitor.namespace, serviceMonitor.namespace, prometheusRule.namespace, lokiRule.namespace, dashboards.namespace]
  pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'
  write: the name of a namespace, such as team-a; it has no globs
- values: [nameOverride, fullnameOverride]
  pattern: '^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$'
  write: at most 40 lower-case letters, digits and hyphens, such as kube-events
- values: [commonLabels, podLabels, serviceAccount.labels, podMonitor.labels, serviceMonitor.labels, prometheusRule.labels, lokiRule.labels, dashboards.labels]
  not: '^app\.kubernetes\.io/(name|instance|version)$'
  write: another label, because the chart sets this one; nameOverride changes app.kubernetes.io/name
- values: [clusterName]
  not: '\$'
  write: the name itself; only config.receivers.kube_events.cluster_name can have ${env:NAME}
- values: [config]
  pattern: '^(receivers|processors|exporters|connectors|extensions|service|kube_events)$'
  write: receivers, processors, exporters, connectors, extensions or service; the receiver's options are in config.receivers.kube_events
- values: [otlp.headers, otlp.secretHeaders]
  pattern: '^[A-Za-z0-9-]+$'
  write: a name of letters, digits and hyphens, such as X-Scope-OrgID
- values: [image.repository]
  not: '@|:[^/]*$'
  write: it without a tag or digest, which are image.tag and image.digest
- values: [image.tag]
  not: ':'
  write: a tag, such as v1; a digest is image.digest
- values: [image.digest]
  pattern: '^sha256:[0-9a-f]{64}$'
  write: "sha256: and 64 hexadecimal digits; a tag is image.tag"
- values: [global.imageRegistry]
  pattern: '^[A-Za-z0-9.\[][^\s/]*(/[^\s/]+)*$'
  write: a registry without https:// and without a slash at the end, such as registry.example.com/mirror
- values: [page.hosts]
  pattern: '^[A-Za-z0-9.-]+$'
  write: a name without https://, port and path, such as events.example.com
- values: [runbookURL, prometheusRule.grafanaURL]
  pattern: '^https?://[^/\s{}]+[^\s{}#]*$'
  write: a URL, such as https://grafana.example.com
- values: [prometheusRule.extraLabels]
  pattern: '^[a-zA-Z_][a-zA-Z0-9_./-]*$'
  write: the name of a tag, such as team
- values: [dashboards.dataSourceRegex]
  pattern: '^/.*/[a-z]*$'
  write: a regular expression between slashes, such as /prod/
- values: [dashboards.lokiSelector]
  pattern: '^[a-zA-Z_]\w*(=|!=|=~|!~)`[^`"\\]*`(, *[a-zA-Z_]\w*(=|!=|=~|!~)`[^`"\\]*`)*$'
  write: matchers without braces, with values between backticks, such as job=`events`
{{- end -}}

{{/* The addresses to which an OTLP exporter sends. */}}
{{- define "kube-events.addresses" -}}
{{- include "kube-events.address" (list "otlp.endpoint" .Values.otlp.endpoint "otlp.protocol" .Values.otlp.protocol) -}}
{{- include "kube-events.address" (list "rollouts.endpoint" .Values.rollouts.endpoint "otlp.protocol" .Values.otlp.protocol) -}}
{{- range $name, $backend := .Values.additionalBackends -}}
{{- $path := printf "additionalBackends.%s" $name -}}
{{- if not (regexMatch "^[a-z][a-z0-9-]{0,39}$" $name) -}}
{{- printf "additionalBackends: %q is not valid: write a name of lower-case letters, digits and hyphens, such as new\n" $name -}}
{{- else if has $name (list "problems" "rollouts") -}}
{{- printf "additionalBackends: %q is a name of the chart's own: write another one, such as new\n" $name -}}
{{- end -}}
{{- if not $backend.endpoint -}}{{- printf "%s has no endpoint: write http://HOST:PORT, or https://HOST:PORT with TLS\n" $path -}}{{- end -}}
{{- include "kube-events.address" (list (print $path ".endpoint") $backend.endpoint (print $path ".protocol") ($backend.protocol | default "http")) -}}
{{- end -}}
{{- end -}}

{{/* What is wrong with an address: (list PATH ADDRESS PATH_OF_PROTOCOL PROTOCOL). */}}
{{- define "kube-events.address" -}}
{{- $address := index . 1 -}}
{{- $key := printf "%s: %q" (index . 0) $address -}}
{{- $protocol := index . 2 -}}
{{- $grpc := eq (index . 3) "grpc" -}}
{{- if not $address -}}
{{- else if not (regexMatch "^https?://[^/\\s]+\\S*$" $address) -}}
{{- printf "%s is not a valid URL: write http://HOST:PORT, or https://HOST:PORT with TLS\n" $key -}}
{{- else if and (not $grpc) (regexMatch "/v1/(logs|metrics|traces)/?$" $address) -}}
{{- printf "%s: the exporter appends /v1/logs, /v1/metrics and /v1/traces: remove the end of the path\n" $key -}}
{{- else if and (not $grpc) (regexMatch "://[^/]*:4317(/|$)" $address) -}}
{{- printf "%s: port 4317 is for OTLP over gRPC: set %s=grpc, or write the port for HTTP, such as 4318\n" $key $protocol -}}
{{- else if and $grpc (regexMatch "://[^/]*:4318(/|$)" $address) -}}
{{- printf "%s: port 4318 is for OTLP over HTTP: set %s=http, or write the port for gRPC, such as 4317\n" $key $protocol -}}
{{- else if and $grpc (not (regexMatch "://[^/]+:[0-9]+$" $address)) -}}
{{- printf "%s: OTLP over gRPC needs a port, and no path: write %s\n" $key (regexReplaceAll "^(https?://[^/]*?)(:[0-9]*)?(/.*)?$" $address "${1}:4317") -}}
{{- end -}}
{{- end -}}

{{/* Values that contradict each other. */}}
{{- define "kube-events.contradictions" -}}
{{- $ha := eq .Values.mode "ha" -}}
{{- $several := gt (int .Values.replicas) 1 -}}
{{- if and .Values.details.configMaps (not .Values.details.enabled) -}}
{{- println "details.configMaps is true, but details.enabled is false: set details.enabled=true, or details.configMaps=false" -}}
{{- end -}}
{{- if and $several (not $ha) -}}
{{- println (printf "replicas is %d, but mode=%s has no leader election, so each replica would emit everything: set mode=ha or replicas=1" (int .Values.replicas) .Values.mode) -}}
{{- end -}}
{{- if and (not $ha) .Values.strategy (ne (.Values.strategy.type | default "RollingUpdate") "Recreate") -}}
{{- println (printf "strategy.type is not Recreate, but with mode=%s two Collectors must not run at the same time: remove strategy, or set mode=ha" .Values.mode) -}}
{{- end -}}
{{- if ne .Values.mode "single" -}}
{{- if .Values.storage.existingClaim -}}
{{- println (printf "storage.existingClaim is set, but mode=%s uses no volume: set mode=single, or remove storage.existingClaim" .Values.mode) -}}
{{- end -}}
{{- if or .Values.storage.storageClassName .Values.storage.annotations -}}
{{- println (printf "storage.storageClassName or storage.annotations is set, but mode=%s uses no volume: set mode=single, or remove them" .Values.mode) -}}
{{- end -}}
{{- end -}}
{{- $preset := include "kube-events.preset" . | fromYaml -}}
{{- with .Values.backend.preset -}}
{{- if and (or $preset.keys (not (or $.Values.otlp.endpoint $preset.endpoint))) (not $.Values.backend.secret) -}}
{{- $keys := $preset.keys | default $preset.optionalKeys -}}
{{- println (printf "backend.preset=%s needs %s: set backend.secret to the name of a Secret with the keys: %s%s" . (ternary "credentials" "an endpoint" (not (empty $preset.keys))) (join ", " $keys) (ternary "" ", endpoint; or set otlp.endpoint" (or (not (empty $.Values.otlp.endpoint)) (hasKey $preset "endpoint")))) -}}
{{- end -}}
{{- if and (ne . "otlp") (ne $.Values.otlp.protocol "http") -}}
{{- println (printf "backend.preset=%s uses OTLP over HTTP: remove otlp.protocol" .) -}}
{{- end -}}
{{- if and $.Values.otlp.signals (not (hasKey $preset "metrics")) (has "metrics" $.Values.otlp.signals) -}}
{{- println (printf "backend.preset=%s accepts no metrics: set otlp.signals={logs}, and prometheus.enabled=true for the metric" .) -}}
{{- end -}}
{{- else -}}
{{- if .Values.backend.secret -}}{{- println "backend.secret is set without backend.preset: set backend.preset, such as otlp" -}}{{- end -}}
{{- end -}}
{{- if and .Values.prometheus.enabled (has "metrics" (include "kube-events.signals" . | fromJsonArray)) (not .Values.otlp.signals) -}}
{{- println "prometheus.enabled and otlp or backend both offer the metric, and a Prometheus that gets both counts each occurrence twice: set otlp.signals={logs}, or otlp.signals={logs,metrics} if they are different places" -}}
{{- end -}}
{{- if .Values.namespaces -}}
{{- $clusterScoped := include "kube-events.clusterScoped" . | fromYaml -}}
{{- range $rule := .Values.rbac.extraRules -}}
{{- range $group := $rule.apiGroups -}}
{{- range $rule.resources -}}
{{- if has . (get $clusterScoped $group | default list) -}}
{{- println (printf "rbac.extraRules has %s, which is in no namespace, but with namespaces there are only Roles, which cannot permit it: remove it from rbac.extraRules, or remove namespaces" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.page -}}
{{- if and .hosts (not .enabled) -}}
{{- println "page.hosts is set without the page: set page.enabled=true" -}}
{{- end -}}
{{- if and .hosts (not .htpasswdSecret) -}}
{{- println "page.hosts publishes the page, which shows all events: set page.htpasswdSecret to the name of a Secret with the key htpasswd" -}}
{{- end -}}
{{- if and .htpasswdSecret (not .hosts) -}}
{{- println "page.htpasswdSecret has no effect without page.hosts, because the page is on the loopback interface: set page.hosts, or remove it" -}}
{{- end -}}
{{- if and .hosts $several -}}
{{- println "page.hosts publishes the page of one pod, and with several replicas this may be a standby: set replicas=1" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.rollouts.endpoint (not .Values.rollouts.enabled) -}}
{{- println "rollouts.endpoint is set, but there are no traces: set rollouts.enabled=true, or remove it" -}}
{{- end -}}
{{- if and .Values.rollouts.enabled (not .Values.rollouts.endpoint) (or (not .Values.otlp.endpoint) .Values.backend.preset) -}}
{{- println "rollouts.enabled has no backend for traces: set rollouts.endpoint (such as http://jaeger-collector.observability:4318), or otlp.endpoint without backend.preset" -}}
{{- end -}}
{{- if and (include "kube-events.usesTLS" .) (hasPrefix "http://" .Values.otlp.endpoint) -}}
{{- println "otlp.tls is set, but otlp.endpoint begins with http://: write https://, or remove otlp.tls" -}}
{{- end -}}
{{- if and .Values.additionalBackends (not (include "kube-events.sends" .)) -}}
{{- println "additionalBackends is in addition to the backend that must get everything: set otlp.endpoint or backend.preset" -}}
{{- end -}}
{{- if and .Values.podMonitor.enabled .Values.serviceMonitor.enabled -}}
{{- println "podMonitor.enabled and serviceMonitor.enabled would scrape each pod twice: enable one of them" -}}
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
