// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

// hints has fixes for keys of other systems. docs/migrate.md maps most of them.
var hints = map[string]string{
	"cacheSize":             "write owners: {cache_size: …}",
	"dedup_window":          "write dedup_interval",
	"drop":                  "write exclude_reasons, exclude_kinds or exclude_namespaces, with globs",
	"field_selector":        "write namespaces, event_types, include_reasons or include_kinds",
	"forward_to":            "name the exporters in service.pipelines",
	"include_initial_state": "write start_at: beginning",
	"interval":              "write collection_interval for the metric, or dedup_interval for records",
	"k8s_api_config":        "remove it, and write auth_type, kubeconfig and context one level higher",
	"kubeQPS":               "write kube_api_qps",
	"leaderElection":        "write k8s_leader_elector, with the name of an extension",
	"match":                 "write include_reasons, include_kinds, event_types or namespaces, with globs",
	"maxEventAgeSeconds":    "write start_at: end, which is the default, or start_at: beginning",
	"mode":                  "remove it; the receiver always watches",
	"objects":               "remove it; the receiver watches events, and nothing else",
	"omitLookup":            "write owners: {enabled: false}",
	"operators":             "remove it, and use processors, such as transform",
	"resource_version":      "remove it, and write storage: file_storage, the name of a storage extension",
	"route":                 "write include_reasons, exclude_reasons, event_types and others of the filters, with globs",
}
