// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

// The tools for agents have the answers of the API, with less in them: an agent pays for each word.
const (
	problemsTold = 10
	changesTold  = 20
	eventsTold   = 20
	recordsTold  = 3 // of a problem or a change
	maxCall      = 64 << 10
)

// chosen has the parameters that all tools of agents have.
type chosen struct {
	Namespace string `json:"namespace,omitempty" jsonschema:"only this namespace; (cluster-scoped) for Nodes and others without one"`
	Minutes   int    `json:"minutes,omitempty" jsonschema:"how far back: 5, 10, 30 or 60 (default)"`
}

type whatChanged struct {
	Workload  string `json:"workload" jsonschema:"name, kind/name or id of a workload, or of a pod or another object that it owns"`
	Time      string `json:"time,omitempty" jsonschema:"what changed before this time, such as 2026-01-02T15:04:05Z; default: now"`
	Namespace string `json:"namespace,omitempty" jsonschema:"of the workload, if several have its name"`
}

type changesBefore struct {
	chosen
	Before string `json:"before,omitempty" jsonschema:"only changes before this time, such as 2026-01-02T15:04:05Z"`
}

type eventsLike struct {
	chosen
	Workload string `json:"workload,omitempty" jsonschema:"name, kind/name or id of a workload, or of a pod or another object that it owns"`
	Reason   string `json:"reason,omitempty"`
	Type     string `json:"type,omitempty" jsonschema:"Warning or Normal"`
	From     string `json:"from,omitempty" jsonschema:"a time such as 2026-01-02T15:04:05Z, instead of minutes"`
	Until    string `json:"until,omitempty" jsonschema:"a time such as 2026-01-02T15:04:05Z"`
	Limit    int    `json:"limit,omitempty" jsonschema:"default 20, at most 1000"`
}

const instructions = `What is wrong in this Kubernetes cluster, and what changed before, from the Events of the last hour.
Begin with the tool problems: each problem has its causes, the likeliest first, or says that no cause is known.
records are log.record.uid of the log records that prove a statement: cite them. records_since is the time from which on records are complete.`

// newAgentsHandler serves the tools over HTTP. It keeps nothing between two calls.
func newAgentsHandler(b *board) http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "kube-events", Title: "Kubernetes events"}, &mcp.ServerOptions{Instructions: instructions})
	addTool(b, server, "problems", "What is wrong, with causes: what goes on first, then what is over.",
		func(v *view, f filter, _ chosen) (any, error) { return v.problemsTold(f), nil })
	addTool(b, server, "what_changed", "The problems of a workload with their causes, and all its changes before a time.",
		func(v *view, f filter, _ whatChanged) (any, error) {
			told := v.problemsTold(f)
			return struct {
				problemsAnswer
				Changes []incident.Change `json:"changes"`
			}{told, v.changesTold(f)}, nil
		})
	addTool(b, server, "changes", "Rollouts, scalings, node conditions, evictions and other changes, the newest first.",
		func(v *view, f filter, _ changesBefore) (any, error) {
			return changesAnswer{v.head(f.at(v.now)), v.changesTold(f)}, nil
		})
	addTool(b, server, "events", "Events in their newest state, the newest first.",
		func(v *view, f filter, _ eventsLike) (any, error) {
			return eventsAnswer{v.head(f.at(v.now)), v.events(f.at(v.now), f.Limit)}, nil
		})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxCall,
		DisableLocalhostProtection: true, // The page checks Host, and knows allowed_hosts.
	})
}

// addTool adds a tool. Its arguments are the parameters of an address, except that a workload can be named.
func addTool[In any](b *board, server *mcp.Server, name, description string, answer func(*view, filter, In) (any, error)) {
	mcp.AddTool(server, &mcp.Tool{Name: name, Description: description, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
			f, err := filterOf(in)
			if err != nil {
				return nil, nil, err
			}
			text, err := b.look(ctx, "tool "+name, f, func(v *view) ([]byte, error) {
				f := f
				if f.Workload, err = v.resolve(f.Namespace, f.Workload); err != nil {
					return nil, err
				}
				told, err := answer(v, f, in)
				if err != nil {
					return nil, err
				}
				return json.Marshal(told)
			})
			if err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, nil
		})
}

// filterOf returns the filter that arguments choose.
func filterOf(arguments any) (filter, error) {
	encoded, err := json.Marshal(arguments)
	if err != nil {
		return filter{}, err
	}
	var values map[string]any
	if err := json.Unmarshal(encoded, &values); err != nil {
		return filter{}, err
	}
	query := url.Values{"limit": {strconv.Itoa(eventsTold)}}
	for name, value := range values {
		if name == "time" {
			name = "before"
		}
		query.Set(name, fmt.Sprint(value))
	}
	return filterFrom(query)
}

// resolve returns the id of a workload with this name, kind/name or id; else that of the workload that owns such an
// object, such as a pod. The error is errNoWorkload, or names several.
func (v *view) resolve(namespace, name string) (id string, err error) {
	if name == "" {
		return "", nil
	}
	isNamed := func(o incident.Object) bool {
		return strings.EqualFold(name, o.Name) || strings.EqualFold(name, o.String()) || strings.EqualFold(name, o.Kind+"/"+o.Name)
	}
	var found, owners []incident.Key
	for _, s := range v.model.At(v.now, incident.Query{}).Workloads() {
		if k := s.Key; namespace != "" && namespace != k.Namespace && k.Namespace != "" {
			continue
		} else if name == k.ID() || isNamed(k.Top) {
			found = append(found, k)
		} else if slices.ContainsFunc(s.Facts, func(f *incident.Fact) bool { return isNamed(f.Object()) }) {
			owners = append(owners, k)
		}
	}
	if len(found) == 0 {
		found = owners
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no workload with the name %.100q, nor an object of one, has an event in the last hour: %w", name, errNoWorkload)
	case 1:
		return found[0].ID(), nil
	}
	candidates, err := json.Marshal(found[:min(changesTold, len(found))])
	if err != nil {
		return "", err
	}
	return "", fmt.Errorf("several workloads have the name %.100q; use the id of one: %s", name, candidates)
}

func (v *view) problemsTold(f filter) problemsAnswer {
	all := newest(v.problems(f.at(v.now)), problemsTold)
	for i := range all {
		p := &all[i]
		p.Records, p.Pods = first(p.Records), first(p.Pods)
		for j := range p.Causes {
			p.Causes[j].Records = first(p.Causes[j].Records)
		}
	}
	return problemsAnswer{v.head(f.at(v.now)), all}
}

func (v *view) changesTold(f filter) []incident.Change {
	all := newest(v.changes(f.at(v.now)), changesTold)
	for i := range all {
		all[i].Records = first(all[i].Records)
	}
	return all
}

func first(records []string) []string { return records[:min(recordsTold, len(records))] }
