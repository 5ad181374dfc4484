// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// The table is that of the k8sattributes processor (v0.160.0, extractPodAttributes in
// internal/kube/client.go), and of OpenTelemetry's conventions, which it implements.
func TestTheServiceOfAPodIsWhatK8sattributesSays(t *testing.T) {
	const otel = "resource.opentelemetry.io/"
	pod := func(labels, annotations values) *resolver.Object {
		return &resolver.Object{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-7d9c-x1", Labels: labels, Annotations: annotations}
	}
	object := func(apiVersion, kind, name string) *resolver.Object {
		return &resolver.Object{APIVersion: apiVersion, Kind: kind, Namespace: "shop", Name: name}
	}
	replicaSet, deployment := object("apps/v1", "ReplicaSet", "web-7d9c"), object("apps/v1", "Deployment", "web")
	gone := &resolver.Object{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "shop", Name: "web-7d9c"}
	hashed := values{"pod-template-hash": "7d9c"}
	for name, test := range map[string]struct {
		chain     []*resolver.Object
		container string
		want      values // without service.namespace, if it is shop
	}{
		"a bare pod":   {[]*resolver.Object{pod(nil, nil)}, "", values{"service.name": "web-7d9c-x1"}},
		"a Deployment": {[]*resolver.Object{pod(hashed, nil), replicaSet, deployment}, "", values{"service.name": "web"}},
		"a ReplicaSet": {[]*resolver.Object{pod(nil, nil), replicaSet}, "", values{"service.name": "web-7d9c"}},
		"a ReplicaSet of a custom resource": {
			[]*resolver.Object{pod(nil, nil), replicaSet, object("argoproj.io/v1alpha1", "Rollout", "web")}, "", values{"service.name": "web-7d9c"},
		},
		"a Deployment that a custom resource owns": {
			[]*resolver.Object{pod(nil, nil), replicaSet, deployment, object("example.com/v1", "App", "shop")}, "", values{"service.name": "web"},
		},
		"a Deployment that is known by the ReplicaSet's name only": {[]*resolver.Object{pod(hashed, nil), gone}, "", values{"service.name": "web"}},
		"a ReplicaSet whose Deployment is deleted":                 {[]*resolver.Object{pod(hashed, nil), replicaSet}, "", values{"service.name": "web"}},
		"a ReplicaSet with another hash":                           {[]*resolver.Object{pod(values{"pod-template-hash": "9c"}, nil), replicaSet}, "", values{"service.name": "web-7d9c"}},
		"a StatefulSet":                                            {[]*resolver.Object{pod(nil, nil), object("apps/v1", "StatefulSet", "db")}, "", values{"service.name": "db"}},
		"a StatefulSet of OpenKruise":                              {[]*resolver.Object{pod(nil, nil), object("apps.kruise.io/v1beta1", "StatefulSet", "db")}, "", values{"service.name": "db"}},
		"a DaemonSet":                                              {[]*resolver.Object{pod(nil, nil), object("apps/v1", "DaemonSet", "agent")}, "", values{"service.name": "agent"}},
		"a CronJob":                                                {[]*resolver.Object{pod(nil, nil), object("batch/v1", "Job", "nightly-29"), object("batch/v1", "CronJob", "nightly")}, "", values{"service.name": "nightly"}},
		"a Job":                                                    {[]*resolver.Object{pod(nil, nil), object("batch/v1", "Job", "once")}, "", values{"service.name": "once"}},
		"a custom resource":                                        {[]*resolver.Object{pod(nil, nil), object("core.strimzi.io/v1", "StrimziPodSet", "kafka")}, "", values{"service.name": "web-7d9c-x1"}},
		"a static pod":                                             {[]*resolver.Object{pod(nil, nil), {APIVersion: "v1", Kind: "Node", Name: "node-1"}}, "", values{"service.name": "web-7d9c-x1"}},
		"an executor of Spark, which the driver's pod owns": {[]*resolver.Object{pod(nil, nil), object("v1", "Pod", "etl-driver"), object("sparkoperator.k8s.io/v1beta2", "SparkApplication", "etl")}, "", values{"service.name": "web-7d9c-x1"}},
		"a pod that a pod of a Deployment owns":             {[]*resolver.Object{pod(nil, nil), object("v1", "Pod", "web"), replicaSet, deployment}, "", values{"service.name": "web-7d9c-x1"}},
		"a worker of LeaderWorkerSet":                       {[]*resolver.Object{pod(nil, nil), object("apps/v1", "StatefulSet", "lws-0"), object("v1", "Pod", "lws-0"), object("apps/v1", "StatefulSet", "lws")}, "", values{"service.name": "lws-0"}},
		"a Job that a pod owns":                             {[]*resolver.Object{pod(nil, nil), object("batch/v1", "Job", "once"), object("v1", "Pod", "runner")}, "", values{"service.name": "once"}},
		"the label name":                                    {[]*resolver.Object{pod(values{"app.kubernetes.io/name": "nginx"}, nil), replicaSet, deployment}, "", values{"service.name": "nginx"}},
		"the label instance comes before it": {
			[]*resolver.Object{pod(values{"app.kubernetes.io/name": "nginx", "app.kubernetes.io/instance": "front"}, nil)}, "", values{"service.name": "front"},
		},
		"a label of the Deployment is not the pod's": {
			[]*resolver.Object{pod(nil, nil), replicaSet, {APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", Labels: values{"app.kubernetes.io/name": "nginx"}}},
			"", values{"service.name": "web"},
		},
		"annotations come before labels": {
			[]*resolver.Object{pod(values{"app.kubernetes.io/instance": "front", "app.kubernetes.io/version": "1"}, values{
				otel + "service.name": "cart", otel + "service.version": "2", otel + "service.namespace": "store",
				otel + "service.instance.id": "cart-1", otel + "team": "a", otel: "no name", "other": "x",
			})}, "app", values{"service.name": "cart", "service.version": "2", "service.namespace": "store", "service.instance.id": "cart-1", "team": "a"},
		},
		"an annotation is no attribute of the receiver": {[]*resolver.Object{pod(nil, values{otel + "k8s.pod.name": "x"})}, "", values{"service.name": "web-7d9c-x1"}},
		"a version":   {[]*resolver.Object{pod(values{"app.kubernetes.io/version": "1.2"}, nil)}, "", values{"service.name": "web-7d9c-x1", "service.version": "1.2"}},
		"a container": {[]*resolver.Object{pod(nil, nil), replicaSet, deployment}, "app", values{"service.name": "web", "service.instance.id": "shop.web-7d9c-x1.app"}},
		"an empty label means nothing, and hides the name": {[]*resolver.Object{pod(values{"app.kubernetes.io/name": ""}, nil)}, "", values{}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := New(Settings{Service: Service{Metadata: serviceAttributes, OTelAnnotations: true}})
			require.NoError(t, err)
			tags := e.Tags(Sources{Chain: test.chain, Known: true, Container: test.container})
			if test.want["service.namespace"] == "" {
				test.want["service.namespace"] = "shop"
			}
			assert.Equal(t, test.want, asMap(tags.Resource))
			assert.Empty(t, tags.Metric, "series belong to workloads")
		})
	}
}

func TestTheServiceOfOtherObjects(t *testing.T) {
	labels := values{"app.kubernetes.io/name": "nginx"}
	deployment := &resolver.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	statefulSet := &resolver.Object{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "shop", Name: "db"}
	for name, test := range map[string]struct {
		chain []*resolver.Object
		want  values
	}{
		"a Deployment": {[]*resolver.Object{deployment}, values{"service.name": "web", "service.namespace": "shop"}},
		"a ReplicaSet": {
			[]*resolver.Object{{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "shop", Name: "web-1", Labels: labels}, deployment},
			values{"service.name": "nginx", "service.namespace": "shop"},
		},
		"a claim of a StatefulSet": {
			[]*resolver.Object{{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data-db-0"}, statefulSet},
			values{"service.name": "db", "service.namespace": "shop"},
		},
		"a claim of a pod's volume": {
			[]*resolver.Object{{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "web-x1-cache"}, {APIVersion: "v1", Kind: "Pod", Name: "web-x1"}, deployment},
			values{"service.name": "web", "service.namespace": "shop"},
		},
		"a Service without labels":  {[]*resolver.Object{{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web"}}, values{"service.namespace": "shop"}},
		"a Node":                    {[]*resolver.Object{{APIVersion: "v1", Kind: "Node", Name: "node-1", Labels: labels}}, values{}},
		"an object that is unknown": {[]*resolver.Object{{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "gone"}, deployment}, values{}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := New(Settings{Service: Service{Metadata: serviceAttributes}})
			require.NoError(t, err)
			assert.Equal(t, test.want, asMap(e.Tags(Sources{Chain: test.chain, Known: name != "an object that is unknown"}).Resource))
		})
	}
}

func TestAServiceHasWhatIsChosen(t *testing.T) {
	pod := &resolver.Object{
		APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web",
		Labels: values{"app.kubernetes.io/version": "1", "team": "a"}, Annotations: values{"resource.opentelemetry.io/x": "y"},
	}
	for name, test := range map[string]struct {
		service Service
		labels  []Rule
		want    values
	}{
		"nothing":            {Service{}, nil, values{}},
		"the name":           {Service{Metadata: []string{ServiceName}}, nil, values{"service.name": "web"}},
		"the version":        {Service{Metadata: []string{ServiceVersion}}, nil, values{"service.version": "1"}},
		"annotations only":   {Service{OTelAnnotations: true}, nil, values{"x": "y"}},
		"a rule's own value": {Service{Metadata: []string{ServiceName}}, []Rule{{TagName: "service.name", Key: "team"}}, values{"service.name": "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := New(Settings{Labels: test.labels, Service: test.service})
			require.NoError(t, err)
			assert.Equal(t, test.want, asMap(e.Tags(Sources{Chain: []*resolver.Object{pod}, Known: true}).Resource))
			for key := range pod.Annotations {
				assert.Equal(t, test.service.OTelAnnotations, e.KeepAnnotation(key))
			}
			assert.True(t, e.KeepAnnotation(Traceparent))
		})
	}
}

func asMap(tags []Tag) values {
	all := values{}
	for _, tag := range tags {
		all[tag.Name] = tag.Value
	}
	return all
}
