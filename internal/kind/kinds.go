// SPDX-License-Identifier: Apache-2.0

package kind

// kindsOf has the kinds of each group of Kubernetes, in lower case, as client-go knows them. It is a
// list, because client-go's scheme has the code of all types: 6 MiB of memory and 10 MiB of the
// program.
var kindsOf = map[string]string{
	"": "apigroup apiversions binding componentstatus configmap endpoints event limitrange namespace node persistentvolume " +
		"persistentvolumeclaim pod podstatusresult podtemplate rangeallocation replicationcontroller resourcequota secret " +
		"serializedreference service serviceaccount status",
	"admissionregistration.k8s.io": "mutatingadmissionpolicy mutatingadmissionpolicybinding mutatingwebhookconfiguration " +
		"validatingadmissionpolicy validatingadmissionpolicybinding validatingwebhookconfiguration",
	"apps":                         "controllerrevision daemonset deployment deploymentrollback replicaset scale statefulset",
	"authentication.k8s.io":        "selfsubjectreview tokenrequest tokenreview",
	"authorization.k8s.io":         "localsubjectaccessreview selfsubjectaccessreview selfsubjectrulesreview subjectaccessreview",
	"autoscaling":                  "horizontalpodautoscaler scale",
	"batch":                        "cronjob job",
	"certificates.k8s.io":          "certificatesigningrequest clustertrustbundle podcertificaterequest",
	"coordination.k8s.io":          "lease leasecandidate",
	"discovery.k8s.io":             "endpointslice",
	"events.k8s.io":                "event",
	"extensions":                   "daemonset deployment deploymentrollback ingress networkpolicy replicaset scale",
	"flowcontrol.apiserver.k8s.io": "flowschema prioritylevelconfiguration",
	"internal.apiserver.k8s.io":    "storageversion",
	"networking.k8s.io":            "ingress ingressclass ipaddress networkpolicy servicecidr",
	"node.k8s.io":                  "runtimeclass",
	"policy":                       "eviction poddisruptionbudget",
	"rbac.authorization.k8s.io":    "clusterrole clusterrolebinding role rolebinding",
	"resource.k8s.io":              "deviceclass devicetaintrule resourceclaim resourceclaimtemplate resourcepoolstatusrequest resourceslice",
	"scheduling.k8s.io":            "podgroup priorityclass workload",
	"storage.k8s.io":               "csidriver csinode csistoragecapacity storageclass volumeattachment volumeattributesclass",
	"storagemigration.k8s.io":      "storageversionmigration",
}
