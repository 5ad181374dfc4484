// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func second(after int) time.Time { return noon.Add(time.Duration(after) * time.Second) }

// happening is an occurrence of an Event, in seconds after noon.
type happening struct {
	at        int
	object    string // KIND/NAME; the name of a pod or a ReplicaSet implies the owners
	reason    string
	message   string
	warning   bool
	count     int64
	namespace string // empty: shop
	change    func(resource pcommon.Map, record plog.LogRecord)
}

// owners are the kinds of owners by the kind of the object, the nearest first.
var owners = map[string][]string{"Pod": {"replicaset.apps", "deployment.apps"}, "ReplicaSet": {"deployment.apps"}}

// logs returns a record as the receiver emits it.
func (h happening) logs(t testing.TB) plog.Logs {
	t.Helper()
	kind, name, _ := strings.Cut(h.object, "/")
	version := map[string]string{"Deployment": "apps/v1", "ReplicaSet": "apps/v1"}[kind]
	top, topKind, topVersion, chain := name, kind, cmp.Or(version, "v1"), []any{}
	for _, owner := range owners[kind] {
		top = top[:strings.LastIndex(top, "-")]
		topKind, topVersion, chain = "Deployment", "apps/v1", append(chain, owner+"/"+top)
	}
	logs := plog.NewLogs()
	resource := logs.ResourceLogs().AppendEmpty()
	attributes := resource.Resource().Attributes()
	require.NoError(t, attributes.FromRaw(map[string]any{
		"k8s.cluster.uid": "cluster", "k8s.namespace.name": cmp.Or(h.namespace, "shop"), "k8s.object.name": name, "k8s.object.uid": "uid-" + name,
		"k8s.object.kind": kind, "k8s.object.api_version": cmp.Or(version, "v1"), "k8s.owner.chain": chain,
		"k8s.workload.api_version": topVersion, "k8s.workload.kind": topKind, "k8s.workload.name": top, "k8s.workload.uid": "uid-" + top,
	}))
	if kind == "Node" {
		attributes.Remove("k8s.namespace.name")
	}
	if kind == "Pod" && h.reason != "Scheduled" {
		attributes.PutStr("k8s.container.name", "app")
		attributes.PutStr("k8s.node.name", "node-0")
	}
	scope := resource.ScopeLogs().AppendEmpty()
	scope.Scope().SetName("github.com/kubeevents/kubeeventsreceiver")
	record := scope.LogRecords().AppendEmpty()
	record.SetEventName("k8s.event")
	record.SetTimestamp(pcommon.NewTimestampFromTime(second(h.at)))
	record.SetSeverityText(map[bool]string{true: "Warning", false: "Normal"}[h.warning])
	record.Body().SetStr(h.message)
	uid := strings.Map(func(r rune) rune { return map[bool]rune{true: '-', false: r}[r == '/' || r == ' '] }, h.object+" "+h.reason+" "+fmt.Sprint(len(h.message)))
	require.NoError(t, record.Attributes().FromRaw(map[string]any{
		"k8s.event.uid": uid, "log.record.uid": fmt.Sprint(uid, "-", max(1, h.count)), "k8s.event.reason": h.reason,
		"k8s.event.count": max(1, h.count), "k8s.event.occurrences": 1, "k8s.owner.resolution": "complete",
	}))
	if h.change != nil {
		h.change(attributes, record)
	}
	return logs
}

// imageChange is a Deployment whose new image does not exist, five minutes after it began to run with the old one.
func imageChange() []happening {
	return []happening{
		{at: 0, object: "Deployment/checkout", reason: "ScalingReplicaSet", message: "Scaled up replica set checkout-aaa from 0 to 1"},
		{at: 0, object: "ReplicaSet/checkout-aaa", reason: "SuccessfulCreate", message: "Created pod: checkout-aaa-1"},
		{at: 0, object: "Pod/checkout-aaa-1", reason: "Scheduled", message: "Successfully assigned shop/checkout-aaa-1 to node-0"},
		{at: 1, object: "Pod/checkout-aaa-1", reason: "Pulling", message: `Pulling image "app:1.0"`},
		{at: 3, object: "Pod/checkout-aaa-1", reason: "Pulled", message: `Successfully pulled image "app:1.0" in 2s (2s including waiting)`},
		{at: 4, object: "Pod/checkout-aaa-1", reason: "Started", message: "Container started"},
		{at: 300, object: "Deployment/checkout", reason: "ScalingReplicaSet", message: "Scaled up replica set checkout-bbb from 0 to 1"},
		{at: 300, object: "ReplicaSet/checkout-bbb", reason: "SuccessfulCreate", message: "Created pod: checkout-bbb-1"},
		{at: 300, object: "Pod/checkout-bbb-1", reason: "Scheduled", message: "Successfully assigned shop/checkout-bbb-1 to node-0"},
		{at: 301, object: "Pod/checkout-bbb-1", reason: "Pulling", message: `Pulling image "app:1.1-typo"`},
		{at: 303, object: "Pod/checkout-bbb-1", reason: "Failed", message: `Failed to pull image "app:1.1-typo": not found`, warning: true},
		{at: 310, object: "Pod/quiet-ccc-1", reason: "Started", message: "Container started"},
	}
}

// clock is a board's clock. A test sets it.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

// boardOf returns a board that has the records, a minute after the last one.
func boardOf(t testing.TB, story ...happening) *board {
	t.Helper()
	end := 0
	for _, h := range story {
		end = max(end, h.at)
	}
	b := newBoard((&clock{second(end + 60)}).now)
	for _, h := range story {
		b.add(h.logs(t))
	}
	return b
}

// viewOf returns what a viewer sees, without the lock.
func viewOf(b *board) *view { return &view{model: b.model, now: b.clock().UTC()} }

// everything is the filter of an address without parameters.
func everything(t testing.TB) filter {
	t.Helper()
	f, err := filterFrom(nil)
	require.NoError(t, err)
	return f
}
