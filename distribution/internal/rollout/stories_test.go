// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/rollout"
)

// TestStories reads the files in testdata/stories: records, an empty line, and the traces of them. A line "now TIME"
// says when the traces are computed; without it, it is a day later.
func TestStories(t *testing.T) {
	for name, s := range allStories(t) {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", "stories", name+".txt")
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			records, want, _ := strings.Cut(string(content), "\n\n")
			got := tree(spansOf(modelOf(s.records), s.options))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(records+"\n\n"+got), 0o600))
				return
			}
			assert.Equal(t, want, got)
		})
	}
}

// told is a story of a file.
type told struct {
	records story
	options rollout.Options
}

func allStories(t testing.TB) map[string]told {
	t.Helper()
	files, err := filepath.Glob("testdata/stories/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string]told{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		records, _, _ := strings.Cut(string(content), "\n\n")
		records, now, hasNow := strings.Cut(records, "\nnow ")
		s := told{storyOf(records), late}
		if hasNow {
			s.options.Now = after(now)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".txt")] = s
	}
	return all
}

// read returns the records of a story.
func read(t testing.TB, name string) story {
	t.Helper()
	s, ok := allStories(t)[name]
	require.True(t, ok, name)
	return s.records
}

// story is a list of records, as the receiver emits them.
type story []plog.Logs

// epoch is when all stories begin.
var epoch = time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)

func after(offset string) time.Time {
	d, err := time.ParseDuration(offset)
	if err != nil {
		panic(err)
	}
	return epoch.Add(d)
}

// storyOf reads records, one a line: TIME OBJECT REASON SETTINGS: MESSAGE. The object is KIND/NAME, with its owners after
// a <; pods and ReplicaSets have the usual ones. A warning has a ! before the reason, and a container is in braces. A
// setting x3/10s is the third occurrence since 10 s. Without a reason, "starts" are the records of a pod that starts.
func storyOf(lines string) (s story) {
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		head, message, _ := strings.Cut(line, ": ")
		fields := strings.Fields(head)
		if fields[2] != "starts" {
			s = append(s, recordOf(after(fields[0]), fields[1:], message))
			continue
		}
		for _, step := range starts {
			own := slices.Concat([]string{fields[1], step.reason}, fields[3:])
			s = append(s, recordOf(after(fields[0]).Add(step.at), own, step.message))
		}
	}
	return s
}

var starts = []struct {
	at              time.Duration
	reason, message string
}{
	{0, "Scheduled", "Successfully assigned shop/POD to worker-1"}, {time.Second, "Pulling{app}", `Pulling image "shop:2"`},
	{3 * time.Second, "Pulled{app}", `Successfully pulled image "shop:2" in 1.9s (2s including waiting). Image size: 1234 bytes.`},
	{3 * time.Second, "Created{app}", "Container created"}, {4 * time.Second, "Started{app}", "Container started"},
}

// recordOf returns the record of an object, a reason and settings.
func recordOf(at time.Time, fields []string, message string) plog.Logs {
	chain := strings.Split(fields[0], "<")
	kind, name, _ := strings.Cut(chain[0], "/")
	chain = ownersOf(kind, name, chain[1:])
	reason, container, _ := strings.Cut(strings.TrimSuffix(fields[1], "}"), "{")
	reason, isWarning := strings.CutPrefix(reason, "!")
	settings := map[string]string{"uid": "uid-" + name, "namespace": "shop", "resolution": "complete", "top": kind + "/" + name, "count": "1"}
	if len(chain) > 0 {
		settings["top"] = topOf(chain[len(chain)-1])
	}
	for _, field := range fields[2:] {
		if key, value, ok := strings.Cut(field, "="); ok {
			settings[key] = value
		} else {
			settings["count"], settings["since"], _ = strings.Cut(strings.TrimPrefix(field, "x"), "/")
		}
	}
	topKind, topName, _ := strings.Cut(settings["top"], "/")
	event := cmp.Or(settings["event"], fmt.Sprintf("%s.%s.%s.%s", settings["uid"], reason, container, message))
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	putAll(rl.Resource().Attributes(), map[string]string{
		"k8s.cluster.uid": "cluster", "k8s.namespace.name": settings["namespace"], "k8s.object.kind": kind, "k8s.object.name": name,
		"k8s.object.uid": settings["uid"], "k8s.object.api_version": map[bool]string{true: "v1", false: "apps/v1"}[kind == "Pod"],
		"k8s.workload.kind": topKind, "k8s.workload.name": topName, "k8s.workload.uid": cmp.Or(settings["topuid"], "uid-"+topName),
		"k8s.pod.label.controller-revision-hash": settings["hash"], "k8s.node.name": settings["node"], "k8s.owner.uid": settings["owner"],
		"k8s.container.name": container[strings.LastIndex(container, ":")+1:],
	})
	if len(chain) > 0 {
		owners := rl.Resource().Attributes().PutEmptySlice("k8s.owner.chain")
		for _, owner := range chain {
			owners.AppendEmpty().SetStr(owner)
		}
	}
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("k8s.event")
	record.SetTimestamp(pcommon.NewTimestampFromTime(at))
	record.Body().SetStr(strings.ReplaceAll(message, "POD", name))
	count := int64(0)
	_, _ = fmt.Sscan(settings["count"], &count)
	record.Attributes().PutInt("k8s.event.count", count)
	since := ""
	if settings["since"] != "" {
		since = after(settings["since"]).Format(time.RFC3339Nano)
	}
	putAll(record.Attributes(), map[string]string{
		"k8s.event.uid": event, "log.record.uid": fmt.Sprintf("%s-%d", event, count), "k8s.event.reason": reason,
		"k8s.event.type": map[bool]string{true: "Warning", false: "Normal"}[isWarning], "k8s.event.start_time": since,
		"k8s.owner.resolution": settings["resolution"], "k8s.object.fieldpath": fieldOf(container),
	})
	return logs
}

func putAll(to pcommon.Map, all map[string]string) {
	for name, value := range all {
		if value != "" {
			to.PutStr(name, value)
		}
	}
}

// ownersOf returns the owners of an object: without owners of its own, those of a pod of a Deployment.
func ownersOf(kind, name string, own []string) (chain []string) {
	if len(own) > 0 || kind != "Pod" && kind != "ReplicaSet" {
		return slices.DeleteFunc(own, func(owner string) bool { return owner == "" })
	}
	for _, owner := range []string{"replicaset.apps/", "deployment.apps/"}[map[string]int{"Pod": 0, "ReplicaSet": 1}[kind]:] {
		name = name[:strings.LastIndex(name, "-")]
		chain = append(chain, owner+name)
	}
	return chain
}

// topOf returns KIND/NAME of the last owner, which has the form of kubectl.
func topOf(owner string) string {
	kind, name, _ := strings.Cut(owner, "/")
	kind, _, _ = strings.Cut(kind, ".")
	for _, known := range []string{"StatefulSet", "DaemonSet", "CronJob", "VirtualMachine"} {
		if strings.EqualFold(known, kind) {
			return known + "/" + name
		}
	}
	return strings.ToUpper(kind[:1]) + kind[1:] + "/" + name
}

func fieldOf(container string) string {
	kind, name, ok := strings.Cut(container, ":")
	switch {
	case container == "":
		return ""
	case !ok:
		return "spec.containers{" + container + "}"
	case kind == "init":
		return "spec.initContainers{" + name + "}"
	}
	return "spec.ephemeralContainers{" + name + "}"
}

// changed returns the records of a story with other attributes.
func (s story) changed(change func(resource, record pcommon.Map)) (all story) {
	for _, logs := range s {
		other := plog.NewLogs()
		logs.CopyTo(other)
		change(other.ResourceLogs().At(0).Resource().Attributes(), other.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes())
		all = append(all, other)
	}
	return all
}
