// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/harness"
)

// wrong are values in addition to those of a release that works, and what the error says about them: the key, the
// value, and what to write.
type wrong struct {
	values   []string
	expected []string
}

// set is one value.
func set(value string, expected ...string) wrong { return wrong{[]string{value}, expected} }

// TestWrongValues: helm rejects them, and the error names the key, the value, and what to write instead.
func TestWrongValues(t *testing.T) {
	t.Parallel()
	runWrong(t, map[string]wrong{
		"an endpoint without a scheme":           set("otlp.endpoint=gateway:4318", `otlp.endpoint: "gateway:4318" is not a valid URL: write http://HOST:PORT`),
		"an endpoint of gRPC without a scheme":   {[]string{"otlp.endpoint=otel-gateway:4317", "otlp.protocol=grpc"}, []string{`otlp.endpoint: "otel-gateway:4317" is not a valid URL`, "https://HOST:PORT with TLS"}},
		"an endpoint with the path of a signal":  set("otlp.endpoint=http://g:4318/v1/logs", `otlp.endpoint: "http://g:4318/v1/logs"`, "remove the end of the path"),
		"HTTP to the port of gRPC":               set("otlp.endpoint=http://g:4317", `"http://g:4317": port 4317 is for OTLP over gRPC: set otlp.protocol=grpc`, "4318"),
		"HTTP to the port of gRPC, with a path":  set("otlp.endpoint=https://g:4317/otlp", "set otlp.protocol=grpc"),
		"gRPC to the port of HTTP":               {[]string{"otlp.endpoint=http://g:4318", "otlp.protocol=grpc"}, []string{`"http://g:4318": port 4318 is for OTLP over HTTP: set otlp.protocol=http`, "4317"}},
		"gRPC without a port":                    {[]string{"otlp.endpoint=https://g", "otlp.protocol=grpc"}, []string{"OTLP over gRPC needs a port", "write https://g:4317"}},
		"gRPC with a path":                       {[]string{"otlp.endpoint=http://g:4317/otlp", "otlp.protocol=grpc"}, []string{"and no path: write http://g:4317"}},
		"a protocol with its encoding":           set("otlp.protocol=http/protobuf", "'/otlp/protocol'", "'http', 'grpc'"),
		"a signal that events are not":           set("otlp.signals={traces}", "'/otlp/signals/0'", "'logs', 'metrics'"),
		"a header that HTTP does not allow":      set("otlp.headers.X Y=z", `otlp.headers: "X Y" is not valid: write a name of letters, digits and hyphens`),
		"a header in a Secret with such a name":  {[]string{"otlp.secretHeaders.X Y.name=a", "otlp.secretHeaders.X Y.key=b"}, []string{`otlp.secretHeaders: "X Y" is not valid`}},
		"a header whose Secret has no key":       set("otlp.secretHeaders.Authorization.name=backend", "'/otlp/secretHeaders/Authorization'", "missing property 'key'"),
		"TLS without https":                      set("otlp.tls.caSecret.name=ca", "otlp.tls is set, but otlp.endpoint begins with http://: write https://"),
		"a backend that is no preset":            set("backend.preset=newrelic", "'/backend/preset'", "'honeycomb'"),
		"no scheme of another backend":           set("additionalBackends.new.endpoint=new:4318", `additionalBackends.new.endpoint: "new:4318" is not a valid URL`),
		"another backend with the wrong port":    set("additionalBackends.new.endpoint=http://new:4317", "set additionalBackends.new.protocol=grpc"),
		"another backend without an address":     set("additionalBackends.new.protocol=grpc", "additionalBackends.new has no endpoint: write http://HOST:PORT"),
		"another backend with a taken name":      set("additionalBackends.problems.endpoint=http://new", `additionalBackends: "problems" is a name of the chart's own: write another one`),
		"another backend with a wrong name":      set("additionalBackends.New_One.endpoint=http://new", `additionalBackends: "New_One" is not valid: write a name of lower-case letters`),
		"no scheme of the backend for traces":    {[]string{"rollouts.enabled=true", "rollouts.endpoint=jaeger:4318"}, []string{`rollouts.endpoint: "jaeger:4318" is not a valid URL`}},
		"traces over HTTP to the port of gRPC":   {[]string{"rollouts.enabled=true", "rollouts.endpoint=http://jaeger:4317"}, []string{"set otlp.protocol=grpc"}},
		"a time without a unit":                  set("rollouts.idleTimeout=5", "'/rollouts/idleTimeout': got number, want string"),
		"a time that is too short":               set("rollouts.idleTimeout=5s", `rollouts.idleTimeout: "5s" is not valid: write a time from 10s to 24h`),
		"a time that is too long":                set("rollouts.idleTimeout=999999999h", `"999999999h"`, "from 10s to 24h"),
		"no rollouts":                            set("rollouts.maxRollouts=0", "'/rollouts/maxRollouts': minimum: got 0, want 1"),
		"an interval that is too long":           set("podMonitor.interval=5m", `podMonitor.interval: "5m" is not valid: write a time of at most 4m, such as 30s`),
		"a timeout without a unit":               set("serviceMonitor.scrapeTimeout=ten", `serviceMonitor.scrapeTimeout: "ten"`, "such as 30s"),
		"no interval":                            set("prometheus.scrapeInterval=0s", `prometheus.scrapeInterval: "0s"`, "at most 4m"),
		"an interval of rules that is too long":  set("prometheusRule.interval=10m", `prometheusRule.interval: "10m"`, "such as 1m"),
		"a memory limit in powers of ten":        set("resources.limits.memory=512M", `resources.limits.memory: "512M" is not valid: write Mi or Gi without a fraction`),
		"a memory limit with a fraction":         set("resources.limits.memory=1.5Gi", `"1.5Gi"`, "such as 512Mi"),
		"no memory":                              set("resources.limits.memory=0Mi", `"0Mi"`, "from 64Mi on"),
		"a memory limit without a unit":          set("resources.limits.memory=512", "'/resources/limits/memory': got number, want string"),
		"no volume":                              set("storage.size=0Gi", `storage.size: "0Gi" is not valid: write Mi, Gi or Ti, such as 1Gi`),
		"a volume for readers":                   set("storage.accessModes={ReadOnlyMany}", "'/storage/accessModes/0'", "'ReadWriteOncePod'"),
		"a budget that is no number":             set("podDisruptionBudget.minAvailable=half", `podDisruptionBudget.minAvailable: "half"`, "1 or 50%"),
		"a namespace that cannot exist":          set("namespaces={Team_A}", `namespaces: "Team_A" is not valid: write the name of a namespace, such as team-a`),
		"namespaces as a glob":                   set("namespaces={team-*}", `"team-*"`, "it has no globs"),
		"a namespace that is no list":            set("namespaces=team-a", "'/namespaces': got string, want array"),
		"the namespace of a monitor":             set("podMonitor.namespace=Monitoring", `podMonitor.namespace: "Monitoring"`, "such as team-a"),
		"a name that objects cannot have":        set("fullnameOverride=Kube_Events", `fullnameOverride: "Kube_Events" is not valid: write at most 40 lower-case letters`),
		"a name that is too long":                set("nameOverride="+strings.Repeat("a", 41), `nameOverride: "aaa`, "at most 40"),
		"a label that is the chart's":            set(`commonLabels.app\.kubernetes\.io/name=x`, `commonLabels: "app.kubernetes.io/name"`, "write another label", "nameOverride"),
		"a label of rules that is the chart's":   set(`prometheusRule.labels.app\.kubernetes\.io/version=x`, `prometheusRule.labels: "app.kubernetes.io/version"`),
		"a cluster name that is a variable":      set("clusterName=${CLUSTER}", `clusterName: "${CLUSTER}" is not valid: write the name itself`, "config.receivers.kube_events.cluster_name"),
		"an unknown part of a configuration":     set("config.exporter.debug.verbosity=detailed", `config: "exporter" is not valid: write receivers, processors, exporters`),
		"the receiver outside of the receivers":  set("config.kube_events.start_at=end", "config.kube_events: this chart has no such value: write config.receivers.kube_events"),
		"a repository with a tag":                set("image.repository=registry:5000/otelcol:v1", `image.repository: "registry:5000/otelcol:v1"`, "without a tag or digest", "image.tag"),
		"a digest as a tag":                      set("image.tag=sha256:0123", `image.tag: "sha256:0123"`, "a digest is image.digest"),
		"a digest that is a tag":                 set("image.digest=v1", `image.digest: "v1"`, "sha256: and 64 hexadecimal digits"),
		"a registry with a scheme":               set("global.imageRegistry=https://registry.example.com", `global.imageRegistry: "https://registry.example.com"`, "without https://"),
		"a page with a scheme":                   {[]string{"page.enabled=true", "page.hosts={https://events.example.com}", "page.htpasswdSecret=s"}, []string{`page.hosts: "https://events.example.com"`, "such as events.example.com"}},
		"a Grafana without a scheme":             set("prometheusRule.grafanaURL=grafana.example.com", `prometheusRule.grafanaURL: "grafana.example.com"`, "such as https://grafana.example.com"),
		"runbooks without a scheme":              set("runbookURL=wiki/runbooks", `runbookURL: "wiki/runbooks"`, "write a URL"),
		"a tag that no label can be":             set("prometheusRule.extraLabels={9a}", `prometheusRule.extraLabels: "9a"`, "such as team"),
		"a selector with double quotes":          set(`dashboards.lokiSelector=job="events"`, "dashboards.lokiSelector: ", "between backticks, such as job=`events`"),
		"data sources without slashes":           set("dashboards.dataSourceRegex=prod", `dashboards.dataSourceRegex: "prod"`, "such as /prod/"),
		"an alert that does not exist":           set("prometheusRule.alerts.CrashLoop.enabled=false", `prometheusRule.alerts: "CrashLoop" is no alert of the chart: write one of`, "KubeEventsCrashLoop"),
		"a change of an alert that is not there": set("prometheusRule.alerts.KubeEventsStorm.for=5m", "'/prometheusRule/alerts/KubeEventsStorm'", "'for' not allowed"),
		"an integration that does not exist":     set("rbac.integrations={jenkins}", "'/rbac/integrations/0'", "'argo-cd'"),
		"a rule that writes":                     {[]string{"rbac.extraRules[0].apiGroups={x}", "rbac.extraRules[0].resources={y}", "rbac.extraRules[0].verbs={delete}"}, []string{"'/rbac/extraRules/0/verbs/0'", "'get', 'list', 'watch'"}},
		"a rule without resources":               set("rbac.extraRules[0].apiGroups={x}", "'/rbac/extraRules/0'", "missing property 'resources'"),
		"a mode with capital letters":            set("mode=HA", "'/mode'", "'ha', 'single', 'stateless'"),
		"a start that does not exist":            set("startAt=now", "'/startAt'", "'end', 'beginning'"),
		"replicas that are no number":            set("replicas=two", "'/replicas': got string, want integer"),
		"root":                                   set("runAsUser=0", "'/runAsUser': minimum: got 0, want 1"),
		"nodes that do not run Linux":            set(`nodeSelector.kubernetes\.io/os=windows`, "'/nodeSelector/kubernetes.io~1os'", "'linux'"),
		"a name that the metric cannot have":     set("metricName=events", "'/metricName'", "'k8s.event.occurrences'"),
		"a probe that never ends":                set("livenessProbe.periodSeconds=0", "'/livenessProbe/periodSeconds': minimum: got 0, want 1"),
		"no time to stop":                        set("terminationGracePeriodSeconds=9", "'/terminationGracePeriodSeconds': minimum: got 9, want 10"),
		"an unknown value":                       set("replicasCount=3", "'replicasCount' not allowed"),
	})
}

// TestContradictions: each value is right, but not next to another one.
func TestContradictions(t *testing.T) {
	t.Parallel()
	runWrong(t, map[string]wrong{
		"rollouts without a backend":           {[]string{"otlp.endpoint=", "page.enabled=true", "rollouts.enabled=true"}, []string{"rollouts.enabled has no backend for traces", "set rollouts.endpoint"}},
		"all pipelines removed":                set("config.service.pipelines=null", "nothing receives the events"),
		"a processor that does not exist":      set("extraProcessors.logs={transform/mask}", "extraProcessors.logs names transform/mask, which does not exist", "add it to config.processors"),
		"a claim that nothing uses":            set("storage.existingClaim=events", "mode=ha uses no volume", "set mode=single"),
		"a storage class that nothing uses":    {[]string{"mode=stateless", "storage.storageClassName=fast"}, []string{"mode=stateless uses no volume", "set mode=single"}},
		"replicas without leader election":     {[]string{"mode=single", "replicas=2"}, []string{"mode=single has no leader election", "set mode=ha or replicas=1"}},
		"ConfigMaps without details":           {[]string{"details.enabled=false", "details.configMaps=true"}, []string{"details.configMaps is true, but details.enabled is false", "set details.enabled=true"}},
		"an update without leader election":    {[]string{"mode=single", "strategy.type=RollingUpdate"}, []string{"two Collectors must not run at the same time", "set mode=ha"}},
		"nodes for the Roles of namespaces":    {[]string{"namespaces={a}", "rbac.extraRules[0].apiGroups={x,}", "rbac.extraRules[0].resources={pods,nodes}"}, []string{"rbac.extraRules has nodes", "remove namespaces"}},
		"operators of the cluster for Roles":   {[]string{"namespaces={a}", "rbac.extraRules[0].apiGroups={config.openshift.io}", "rbac.extraRules[0].resources={clusteroperators}"}, []string{"rbac.extraRules has clusteroperators"}},
		"the metric twice":                     set("prometheus.enabled=true", "counts each occurrence twice", "set otlp.signals={logs}"),
		"a preset without its Secret":          {[]string{"otlp.endpoint=", "backend.preset=honeycomb"}, []string{"backend.preset=honeycomb needs credentials", "set backend.secret", "the keys: api-key"}},
		"a preset without an endpoint":         {[]string{"otlp.endpoint=", "backend.preset=loki"}, []string{"backend.preset=loki needs an endpoint", "or set otlp.endpoint"}},
		"a Secret without a preset":            set("backend.secret=s", "set backend.preset"),
		"a preset with gRPC":                   {[]string{"otlp.endpoint=", "backend.preset=elastic", "backend.secret=s", "otlp.protocol=grpc"}, []string{"backend.preset=elastic uses OTLP over HTTP"}},
		"metrics for Loki":                     {[]string{"backend.preset=loki", "otlp.signals={logs,metrics}"}, []string{"backend.preset=loki accepts no metrics", "prometheus.enabled=true"}},
		"another backend instead of the first": {[]string{"otlp.endpoint=", "page.enabled=true", "additionalBackends.new.endpoint=http://new"}, []string{"additionalBackends is in addition", "set otlp.endpoint or backend.preset"}},
		"a password without a published page":  {[]string{"page.enabled=true", "page.htpasswdSecret=s"}, []string{"page.htpasswdSecret has no effect", "page.hosts"}},
		"a published page of several replicas": {[]string{"replicas=2", "page.enabled=true", "page.hosts={a.b}", "page.htpasswdSecret=s"}, []string{"page.hosts", "replicas=1"}},
		"a page without a password":            {[]string{"page.enabled=true", "page.hosts={events.example.com}"}, []string{"page.hosts publishes the page", "page.htpasswdSecret"}},
		"an endpoint of traces, but no traces": set("rollouts.endpoint=http://t:4318", "rollouts.endpoint", "rollouts.enabled=true"),
		"two monitors":                         {[]string{"podMonitor.enabled=true", "serviceMonitor.enabled=true"}, []string{"scrape each pod twice", "enable one of them"}},
		"no destination":                       set("otlp.endpoint=", "nothing receives the events: set otlp.endpoint", "prometheus.enabled=true", "page.enabled=true"),
		"problems that go nowhere":             {[]string{"otlp.endpoint=", "problems.enabled=true"}, []string{"nothing receives the events: set otlp.endpoint"}},
		"two contradictions":                   {[]string{"storage.existingClaim=events", "backend.secret=s"}, []string{"set mode=single", "set backend.preset"}},
	})
}

// TestValuesOfOtherCharts: the error has this chart's name for each.
func TestValuesOfOtherCharts(t *testing.T) {
	t.Parallel()
	table := regexp.MustCompile(`(?s)define "kube-events.renames" -}}\n(.*?){{- end`).FindStringSubmatch(harness.Read(t, "deploy", "chart", "templates", "_checks.tpl"))
	require.NotNil(t, table)
	var renames map[string]string
	require.NoError(t, yaml.UnmarshalStrict([]byte(table[1]), &renames))
	for _, name := range []string{"replicaCount", "imagePullSecrets", "extraEnvs", "persistence", "existingSecret", "ingress", "logLevel"} {
		require.Contains(t, renames, name)
	}
	all := map[string]wrong{}
	for path, instead := range renames {
		all[path] = set(path+".x=1", path+": this chart has no such value: write "+instead)
	}
	runWrong(t, all)
}

// TestAllWrongValuesAreReportedAtOnce, each on a line of its own.
func TestAllWrongValuesAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	runWrong(t, map[string]wrong{"three": {
		[]string{"otlp.endpoint=gateway", "replicaCount=2", "storage.size=1GB"},
		[]string{"\notlp.endpoint: ", "\nreplicaCount: ", "\nstorage.size: "},
	}})
}

func runWrong(t *testing.T, all map[string]wrong) {
	t.Helper()
	for name, test := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arguments := []string{"--set", endpoint}
			for _, value := range test.values {
				arguments = append(arguments, "--set", value)
			}
			_, stderr, err := harness.HelmTemplate(t, "kube-events", "observability", arguments...)
			require.Error(t, err)
			for _, part := range test.expected {
				assert.Contains(t, stderr, part)
			}
		})
	}
}
