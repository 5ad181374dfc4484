// SPDX-License-Identifier: Apache-2.0

package incident_test

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

var update = flag.Bool("update", false, "write what the stories say now")

// TestStories reads the stories in testdata/stories. Each line is a record: the time in minutes and seconds, the object
// of the Event, its reason (with ! if it is a warning), and its message. After a line that begins with "at", the
// file has what the model says at this time. docs of the format: see parse.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			told := tell(t, string(content))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(told), 0o600))
			}
			assert.Equal(t, string(content), told)
		})
	}
}

var began = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// tell returns the story with what the model says in the place of what the file says.
func tell(t *testing.T, content string) string {
	s := &story{t: t, model: incident.NewModel(began.Add(-incident.Horizon)), namespace: "shop", counts: map[string]int64{}, firsts: map[string]time.Time{}}
	var out strings.Builder
	for line := range strings.Lines(content) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  ") || line == "" && strings.HasSuffix(out.String(), "\n\n") {
			continue // What the model says is written again.
		}
		fmt.Fprintln(&out, line)
		out.WriteString(s.read(line))
	}
	return out.String()
}

// story is a model with what its Events were so far.
type story struct {
	t         *testing.T
	model     *incident.Model
	namespace string
	counts    map[string]int64
	firsts    map[string]time.Time
}

// read reads a line, and returns what the model says if the line asks.
func (s *story) read(line string) string {
	head, rest, _ := strings.Cut(line, " ")
	switch {
	case line == "", strings.HasPrefix(line, "#"):
	case head == "since": // when the model began
		s.model = incident.NewModel(s.at(rest))
	case head == "namespace":
		s.namespace = rest
	case head == "at":
		return s.answer(rest)
	default:
		s.record(s.at(head), rest)
	}
	return ""
}

func (s *story) at(text string) time.Time {
	minutes, seconds, ok := strings.Cut(text, ":")
	require.True(s.t, ok, "%q is no time, such as 4:10", text)
	m, err := strconv.Atoi(minutes)
	require.NoError(s.t, err)
	sec, err := strconv.ParseFloat(seconds, 64)
	require.NoError(s.t, err)
	return began.Add(time.Duration(m)*time.Minute + time.Duration(sec*float64(time.Second)))
}

// about matches CHAIN{CONTAINER}@NODE+RELATED: KIND/NAME, and its owners after a <. A pod without owners belongs to a
// Deployment, as its name says.
var about = regexp.MustCompile(`^([^{@+]+)(?:\{([^}]+)\})?(?:@([^+]+))?(?:\+(.+))?$`)

func (s *story) record(at time.Time, rest string) {
	parts := strings.SplitN(rest, " ", 3)
	require.Len(s.t, parts, 3, "a line is TIME OBJECT REASON MESSAGE: %q", rest)
	match := about.FindStringSubmatch(parts[0])
	require.NotNil(s.t, match, parts[0])
	reason, isWarning := strings.CutPrefix(parts[1], "!")
	event := sum(s.namespace, strings.Join(parts, " "))
	if s.counts[event]++; s.counts[event] == 1 {
		s.firsts[event] = at
	}
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	s.resource(rl.Resource().Attributes(), strings.Split(match[1], "<"), match[2], match[3])
	scope := rl.ScopeLogs().AppendEmpty()
	scope.Scope().SetName("github.com/kubeevents/kubeeventsreceiver")
	r := scope.LogRecords().AppendEmpty()
	r.SetEventName("k8s.event")
	r.SetTimestamp(pcommon.NewTimestampFromTime(at))
	r.SetSeverityText(map[bool]string{true: "Warning", false: "Normal"}[isWarning])
	r.SetSeverityNumber(map[bool]plog.SeverityNumber{true: plog.SeverityNumberWarn, false: plog.SeverityNumberInfo}[isWarning])
	r.Body().SetStr(parts[2])
	a := r.Attributes()
	a.PutStr("k8s.event.reason", reason)
	a.PutStr("k8s.event.type", r.SeverityText())
	a.PutStr("k8s.event.uid", event)
	a.PutStr("log.record.uid", fmt.Sprintf("%s-%d", event, s.counts[event]))
	a.PutInt("k8s.event.count", s.counts[event])
	a.PutInt("k8s.event.occurrences", 1)
	a.PutStr("k8s.owner.resolution", "complete")
	a.PutStr("k8s.event.start_time", s.firsts[event].Format(time.RFC3339Nano))
	if match[4] != "" {
		a.PutStr("k8s.event.related.name", match[4])
	}
	s.model.Add(logs, at)
}

func sum(parts ...string) string {
	of := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(of[:8])
}

var versions = map[string]string{
	"deployment": "apps/v1", "replicaset": "apps/v1", "statefulset": "apps/v1", "daemonset": "apps/v1", "job": "batch/v1", "cronjob": "batch/v1",
	"horizontalpodautoscaler": "autoscaling/v2", "kustomization": "kustomize.toolkit.fluxcd.io/v1",
}

var kinds = map[string]string{
	"deployment": "Deployment", "replicaset": "ReplicaSet", "statefulset": "StatefulSet", "daemonset": "DaemonSet", "job": "Job", "cronjob": "CronJob",
	"pod": "Pod", "node": "Node", "horizontalpodautoscaler": "HorizontalPodAutoscaler", "persistentvolumeclaim": "PersistentVolumeClaim",
}

// resource writes the attributes of an object with this chain: itself, and its owners.
func (s *story) resource(a pcommon.Map, chain []string, container, node string) {
	kind, name, _ := strings.Cut(chain[0], "/")
	name, revision, _ := strings.Cut(name, "#")
	if kind == "pod" && len(chain) == 1 {
		set := name[:strings.LastIndex(name, "-")]
		chain = append(chain, "replicaset/"+set, "deployment/"+set[:strings.LastIndex(set, "-")])
	}
	if kind == "replicaset" && len(chain) == 1 {
		chain = append(chain, "deployment/"+name[:strings.LastIndex(name, "-")])
	}
	a.PutStr("k8s.cluster.uid", "cluster")
	if kind != "node" {
		a.PutStr("k8s.namespace.name", s.namespace)
	}
	version := func(kind string) string {
		if v := versions[kind]; v != "" {
			return v
		}
		return "v1"
	}
	put := func(prefix, kind, name, uid string) {
		a.PutStr(prefix+"api_version", version(kind))
		if k := kinds[kind]; k != "" {
			kind = k
		}
		a.PutStr(prefix+"kind", kind)
		a.PutStr(prefix+"name", name)
		a.PutStr(prefix+"uid", uid)
	}
	uid := "uid-" + s.namespace + "-" + kind + "-" + name + "-" + revision
	put("k8s.object.", kind, name, uid)
	if kind == "pod" {
		a.PutStr("k8s.pod.uid", uid)
		a.PutStr("k8s.pod.name", name)
		if revision != "" {
			a.PutStr("k8s.pod.label.controller-revision-hash", revision)
		}
	}
	owners := a.PutEmptySlice("k8s.owner.chain")
	for _, owner := range chain[1:] {
		kind, name, _ := strings.Cut(owner, "/")
		if group, _, ok := strings.Cut(version(kind), "/"); ok {
			kind += "." + group
		}
		owners.AppendEmpty().SetStr(kind + "/" + name)
	}
	top, topName, _ := strings.Cut(chain[len(chain)-1], "/")
	topName, _, _ = strings.Cut(topName, "#")
	put("k8s.workload.", top, topName, "uid-"+s.namespace+"-"+top+"-"+topName)
	if len(chain) > 1 {
		kind, name, _ := strings.Cut(chain[1], "/")
		put("k8s.owner.", kind, name, "uid-"+s.namespace+"-"+kind+"-"+name)
	}
	if container != "" {
		a.PutStr("k8s.container.name", container)
	}
	if node != "" {
		a.PutStr("k8s.node.name", node)
	}
}

// answer returns what the model says. After the time, the line can have FIELD=VALUE of a query.
func (s *story) answer(line string) string {
	parts := strings.Fields(line)
	now, q := s.at(parts[0]), incident.Query{}
	for _, part := range parts[1:] {
		field, value, _ := strings.Cut(part, "=")
		switch field {
		case "last":
			length, err := time.ParseDuration(value)
			require.NoError(s.t, err)
			q.From = now.Add(-length)
		case "reason":
			q.Reason = value
		case "namespace":
			q.Namespace = value
		case "changes":
			return describeChanges(s.model, q, now)
		default:
			require.Fail(s.t, "a query has last, reason, namespace and changes", part)
		}
	}
	return describe(s.model, q, now)
}

func describeChanges(m *incident.Model, q incident.Query, now time.Time) string {
	var b strings.Builder
	for _, c := range m.Changes(q, now) {
		fmt.Fprintf(&b, "  %s %s: %s\n", clock(c.At, began), c.Kind, c.Text)
	}
	return b.String()
}

func describe(m *incident.Model, q incident.Query, now time.Time) string {
	return describeFrom(m, q, now, began)
}

// describeFrom has times since the start of the story.
func describeFrom(m *incident.Model, q incident.Query, now, start time.Time) string {
	since := func(at time.Time) string { return clock(at, start) }
	var b strings.Builder
	for _, p := range m.Problems(q, now) {
		state := "goes on"
		if !p.Over.IsZero() {
			state = "over since " + since(p.Over) + ": " + p.Because
		}
		container := ""
		if p.Container != "" {
			container = " of " + p.Container
		}
		fmt.Fprintf(&b, "  %s in %s: %s %s%s ×%d since %s, %s\n", p.Key.Top, p.Key.Namespace, p.Class, p.Reason, container, p.Count, since(p.Onset), state)
		for _, at := range p.Earlier {
			fmt.Fprintf(&b, "    earlier: %s\n", since(at))
		}
		for _, text := range p.Scope {
			fmt.Fprintf(&b, "    scope: %s\n", text)
		}
		fmt.Fprintf(&b, "    message: %s\n", p.Message)
		for _, c := range p.Causes {
			fmt.Fprintf(&b, "    cause, %d s before, %s %s: %s\n", int(time.Duration(c.Before).Seconds()), c.Where, c.Kind, c.Text)
		}
		if p.Unknown != "" {
			fmt.Fprintf(&b, "    %s\n", p.Unknown)
		}
		if c := p.LastChange; c != nil {
			fmt.Fprintf(&b, "    last change, %d s before: %s\n", int(time.Duration(c.Before).Seconds()), c.Text)
		}
	}
	if b.Len() == 0 {
		return "  no problem\n"
	}
	return b.String()
}
