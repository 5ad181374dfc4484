// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/incident"
)

// filter has what a viewer has chosen. It restricts all answers.
type filter struct {
	incident.Query           // its times are zero unless the viewer chose them
	Minutes        int       // how far back the answer looks; 0: From and Until say it
	Limit          int       // of events
	Since          time.Time // of the problems and changes that a connector remembers; zero: none are wanted
}

// The values of minutes, the default first, and of type, and the bounds of limit.
var (
	minutesOffered = []int{60, 30, 10, 5}
	types          = []string{"Normal", "Warning"}
)

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// parameters are those of addresses and the arguments of tools. Each sets a part of the filter.
var parameters = map[string]func(f *filter, value string) error{
	"namespace": func(f *filter, value string) error { f.Namespace = value; return nil },
	"workload":  func(f *filter, value string) error { f.Workload = value; return nil },
	"reason":    func(f *filter, value string) error { f.Reason = value; return nil },
	"manifest":  func(f *filter, value string) error { f.Manifest = value; return nil },
	"from":      func(f *filter, value string) error { return setTime(&f.From, value) },
	"since":     func(f *filter, value string) error { return setTime(&f.Since, value) },
	"until":     func(f *filter, value string) error { return setTime(&f.Until, value) },
	"before":    func(f *filter, value string) error { return setTime(&f.Until, value) },
	"time":      func(f *filter, value string) error { return setTime(&f.Until, value) },
	"type": func(f *filter, value string) error {
		i := slices.IndexFunc(types, func(name string) bool { return strings.EqualFold(name, value) })
		if i < 0 {
			return errors.New("it can be " + strings.Join(types, " or "))
		}
		f.Type = types[i]
		return nil
	},
	"minutes": func(f *filter, value string) (err error) {
		if f.Minutes, err = strconv.Atoi(value); err != nil || !slices.Contains(minutesOffered, f.Minutes) {
			return errors.New("it can be 5, 10, 30 or 60")
		}
		return nil
	},
	"limit": func(f *filter, value string) (err error) {
		if f.Limit, err = strconv.Atoi(value); err != nil || f.Limit < 1 || f.Limit > maxLimit {
			return fmt.Errorf("it can be a number from 1 to %d", maxLimit)
		}
		return nil
	},
}

// maxValue is the number of bytes of a value. Names, and reasons, are shorter.
const maxValue = 512

// addressed are the parameters of all addresses. Tools have other names for until. Only
// problems and changes have since: a connector remembers them.
var addressed = []string{"from", "limit", "manifest", "minutes", "namespace", "reason", "type", "until", "workload"}

// checkNames returns an error if the address of an answer does not take a parameter.
func checkNames(query url.Values, answer string) error {
	taken := addressed
	if answer == "problems" || answer == "changes" {
		taken = append(slices.Clone(addressed), "since")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(taken, name) {
			return fmt.Errorf("%.100q is not a parameter: use %s", name, strings.Join(taken, ", "))
		}
	}
	return nil
}

// filterFrom reads parameters, all of which are known. An empty value is one that was not chosen. The error names the
// parameter.
func filterFrom(query url.Values) (filter, error) {
	f := filter{Limit: defaultLimit}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		value := query.Get(name)
		switch {
		case len(query[name]) > 1:
			return f, fmt.Errorf("%s is there %d times: choose one value", name, len(query[name]))
		case len(value) > maxValue:
			return f, fmt.Errorf("%s is longer than %d bytes", name, maxValue)
		case value == "":
			continue
		}
		if err := parameters[name](&f, value); err != nil {
			return f, fmt.Errorf("%s is %.100q: %w", name, value, err)
		}
	}
	return f, f.settle(query)
}

// settle chooses the time of a filter. The error names parameters that contradict each other.
func (f *filter) settle(query url.Values) error {
	ends := slices.DeleteFunc([]string{"before", "time", "until"}, func(name string) bool { return query.Get(name) == "" })
	switch isChosen := f.chosenTime(); {
	case !f.Since.IsZero() && (f.Reason != "" || f.Type != "" || f.Manifest != ""):
		return errors.New("since goes together with namespace and workload only: what is remembered has no reason, type and manifest")
	case !f.From.IsZero() && !f.Until.IsZero() && !f.From.Before(f.Until):
		return fmt.Errorf("from is %s: it must be earlier than %s", f.From.Format(time.RFC3339), ends[0])
	case isChosen && f.Minutes != 0:
		return fmt.Errorf("minutes is %d, and %s chooses another time: remove one of them", f.Minutes, append(ends, "from")[0])
	case !isChosen && f.Minutes == 0:
		f.Minutes = minutesOffered[0]
	}
	return nil
}

// setTime reads a time. That of a form without a script has no seconds and no time zone.
func setTime(to *time.Time, value string) error {
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		at, err = time.Parse("2006-01-02T15:04", value)
	}
	if at = at.UTC(); err != nil || at.Year() < 0 || at.Year() > 9999 { // JSON has no other years.
		return errors.New("it can be a time such as 2026-01-02T15:04:05Z")
	}
	if *to = at; !at.IsZero() && at.Unix() < 0 { // Some programs send the zero time for what is not chosen.
		*to = time.Unix(0, 0).UTC()
	}
	return nil
}

func (f filter) chosenTime() bool { return !f.From.IsZero() || !f.Until.IsZero() }

// at returns the query at a time: what happened in the last minutes, or in the chosen time.
func (f filter) at(now time.Time) incident.Query {
	q := f.Query
	if f.Minutes > 0 {
		q.From = now.Add(-time.Duration(f.Minutes) * time.Minute)
	}
	return q
}

// Chosen reports whether the filter excludes something of the last hour.
func (f filter) Chosen() bool { return f != filter{Minutes: minutesOffered[0], Limit: f.Limit} }

// Address returns the address of the page with this filter. It is relative: the page may be behind
// a proxy that serves it under a path. It is the same for filters that choose the same.
func (f filter) Address() string {
	query := url.Values{}
	for name, value := range map[string]string{
		"namespace": f.Namespace, "workload": f.Workload, "reason": f.Reason, "type": f.Type, "manifest": f.Manifest,
		"from": timeIn(f.From), "until": timeIn(f.Until),
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.Minutes != 0 && f.Minutes != minutesOffered[0] {
		query.Set("minutes", strconv.Itoa(f.Minutes))
	}
	if len(query) == 0 {
		return "."
	}
	return "?" + query.Encode()
}

func timeIn(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format(time.RFC3339)
}

// To returns the address of a workload, in the same time.
func (f filter) To(workload string) string {
	return filter{Query: incident.Query{Workload: workload, From: f.From, Until: f.Until}, Minutes: f.Minutes}.Address()
}

// Days returns the address of the page of 30 days, of the same namespace.
func (f filter) Days() string {
	if f.Namespace == "" {
		return "days"
	}
	return "days?" + url.Values{"namespace": {f.Namespace}}.Encode()
}

// WithReason returns the address with another reason.
func (f filter) WithReason(reason string) string {
	f.Reason = reason
	return f.Address()
}
