// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// dashboard is what is needed of Grafana's.
type dashboard struct {
	name   string
	Panels []panel

	Templating  struct{ List []variable }
	Annotations struct{ List []annotation }
}

// annotation is a query whose results Grafana marks on the panels over time.
type annotation struct {
	Name, Expr string
	Datasource struct{ Type string }
}

type panel struct {
	Title, Type string
	Targets     []target
	FieldConfig struct {
		Overrides []struct {
			Properties []struct {
				ID    string
				Value json.RawMessage
			}
		}
	}
	Transformations []struct {
		Options struct{ RenameByName map[string]string }
	}
}

type target struct {
	Expr       string
	Instant    bool
	QueryType  string
	Datasource struct{ Type string }
}

type variable struct {
	Type, Name, Query, AllValue string
	Multi, IncludeAll           bool
}

// choices are what a user chose for the variables. A variable that is not there has All, or its
// default.
type choices map[string][]string

// inQuery is a variable in a query: $name, or ${name:format}.
var inQuery = regexp.MustCompile(`\$(\w+)|\$\{(\w+)(?::(\w+))?\}`)

// interpolate replaces the variables of a query as Grafana does. The format raw is that of a link to
// Explore, which is not escaped for a query.
func (d dashboard) interpolate(query, source string, chosen choices) string {
	return inQuery.ReplaceAllStringFunc(query, func(found string) string {
		match := inQuery.FindStringSubmatch(found)
		name, format := match[1]+match[2], match[3]
		if builtin, known := builtins[name]; known {
			return builtin
		}
		i := slices.IndexFunc(d.Templating.List, func(v variable) bool { return v.Name == name })
		if i < 0 {
			return found
		}
		v := d.Templating.List[i]
		values, isChosen := chosen[name]
		switch {
		case !isChosen && v.IncludeAll:
			return v.AllValue
		case !isChosen:
			return v.Query
		case format == "pipe":
			return strings.Join(values, "|")
		case match[2] != "":
			return strings.Join(values, ",")
		default:
			return v.escaped(source, values)
		}
	})
}

// builtins are Grafana's own variables, for a range of an hour and scrapes every 15 s.
var builtins = map[string]string{
	"__rate_interval": "1m0s", "__range": "3600s", "__auto": "1m", "__from": "0", "__to": "1",
	"metrics": "the Prometheus", "logs": "the Loki",
}

// ofRegexes are characters with a meaning in a regular expression.
var ofRegexes = regexp.MustCompile(`[$^*{}\[\]'+?.()|]`)

// escaped is the text of a variable in the queries of a data source. In regular expressions, it is
// escaped for the expression, and for the string around it.
func (v variable) escaped(source string, values []string) string {
	var all []string
	for _, value := range values {
		if v.Multi || v.IncludeAll {
			value = ofRegexes.ReplaceAllString(strings.ReplaceAll(value, `\`, `\\\\`), `\\$0`)
		} else {
			value = strings.NewReplacer(`\`, `\\`, `'`, `\\'`).Replace(value)
		}
		all = append(all, value)
	}
	if len(all) > 1 && source == "prometheus" {
		return "(" + strings.Join(all, "|") + ")"
	}
	return strings.Join(all, "|")
}

// labelValues is Grafana's own function for variables.
var labelValues = regexp.MustCompile(`^label_values\((.+), ("?[\w.]+"?)\)$`)

// asks returns the query for the choices of a variable, and the label that has them.
func (v variable) asks() (query, label string) {
	if query, found := strings.CutPrefix(v.Query, "query_result("); found {
		return strings.TrimSuffix(query, ")"), v.Name
	}
	match := labelValues.FindStringSubmatch(v.Query)
	return "group by (" + match[2] + ") (" + match[1] + ")", match[2]
}

// explored are the queries of the links from the table to Explore.
func (p panel) explored() (queries []string, err error) {
	for _, override := range p.FieldConfig.Overrides {
		for _, property := range override.Properties {
			if property.ID != "links" {
				continue
			}
			var links []struct{ URL string }
			if err := json.Unmarshal(property.Value, &links); err != nil {
				return nil, err
			}
			for _, link := range links {
				if panes, found := strings.CutPrefix(link.URL, "/explore?schemaVersion=1&panes="); found {
					query, err := exploredQuery(panes)
					if err != nil {
						return nil, err
					}
					queries = append(queries, query)
				}
			}
		}
	}
	return queries, nil
}

func exploredQuery(panes string) (string, error) {
	panes, err := url.QueryUnescape(panes)
	if err != nil {
		return "", err
	}
	var decoded map[string]struct{ Queries []struct{ Expr string } }
	err = json.Unmarshal([]byte(panes), &decoded)
	return decoded["events"].Queries[0].Expr, err
}

// ofRow is a value of the row on which a user clicked.
var ofRow = regexp.MustCompile(`\$\{__data\.fields\.(\w+)\}`)

// inRow replaces the values of a row in a query of a link.
func (p panel) inRow(query string, labels map[string]string) string {
	return ofRow.ReplaceAllStringFunc(query, func(found string) string {
		column := ofRow.FindStringSubmatch(found)[1]
		for _, transformation := range p.Transformations {
			for label, title := range transformation.Options.RenameByName {
				if title == column && labels[label] != "" {
					return labels[label]
				}
			}
		}
		return found
	})
}
