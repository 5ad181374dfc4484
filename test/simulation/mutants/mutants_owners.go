// SPDX-License-Identifier: Apache-2.0

package main

var inResolver = []change{
	{
		"does not compare the UIDs of owners", "resolver/chain.go",
		`return uid == "" || o.UID == uid || o.mirrored == uid`,
		"return true",
	},
	{
		"does not know static pods by their hash", "resolver/chain.go",
		` || o.mirrored == uid`,
		"",
	},
	{
		"follows the first owner instead of the controller", "resolver/chain.go",
		`	if chosen == nil {
		chosen = &references[0]
	}`,
		`	chosen = &references[0]`,
	},
	{
		"takes a list that was given up for the whole list", "resolver/flights.go",
		`isWhole := err == nil && page.Continue == ""`,
		"isWhole := err == nil",
	},
	{
		"takes a list from the watch cache for a proof", "resolver/flights.go",
		"isWhole && of.consistent && w.isEarly",
		"isWhole && w.isEarly",
	},
	{
		"waits for a kind that hangs each time", "resolver/circuit.go",
		"return c.failures >= failuresInARow",
		"return false",
	},
	{
		"never tries a kind again that has failed", "resolver/circuit.go",
		"case of.isOpen():\n",
		"case false:\n",
	},
	{
		"reads the kinds for each reference to an invented group", "resolver/internal/kinds/catalogue.go",
		"return c.permits.TokensAt(c.timeLocked()) >= 1",
		"return true",
	},
	{
		"lists the whole cluster for a few objects", "resolver/scope.go",
		"if size <= p.worth*needed {",
		"if true {",
	},
	{
		"does not restore owners", "internal/session/open_checkpoints.go",
		"p.Owners.Restore(s.memory.Objects())",
		"",
	},
}

var inConversion = []change{
	{
		"uses one log.record.uid for two counts", "internal/logrecord/logrecord.go",
		`string(ev.UID) + "-" + strconv.FormatInt(event.Count(ev), 10)`,
		`string(ev.UID) + "-" + strconv.FormatInt(min(event.Count(ev), 100), 10)`,
	},
	{
		"writes the pod as its own workload", "internal/logrecord/logrecord.go",
		"if end := chain.End(); end != nil {",
		"if end := chain.Objects[0]; end != nil {",
	},
}

var inFilters = []change{
	{
		"lets an included reason beat an excluded one", "internal/filter/filter.go",
		`if len(f.IncludeReasons) > 0 && !matches(f.IncludeReasons, ev.Reason) {
		return false
	}`,
		`if len(f.IncludeReasons) > 0 {
		return matches(f.IncludeReasons, ev.Reason)
	}`,
	},
	{
		"filters the type in the API server alone", "internal/filter/filter.go",
		"if len(f.Types) > 0 && !slices.Contains(f.Types, ev.Type) {",
		"if len(f.Types) > 2 && !slices.Contains(f.Types, ev.Type) {",
	},
}

var inLifecycle = []change{
	{
		"never reports that it has recovered", "internal/health/status.go",
		`	delete(s.failing, part)
	s.logger.Info`,
		`	s.logger.Info`,
	},
	{
		"reports its status to the first pipeline alone", "internal/health/status.go",
		`	for _, host := range s.hosts {
`,
		`	for _, host := range s.hosts[:1] {
`,
	},
}
