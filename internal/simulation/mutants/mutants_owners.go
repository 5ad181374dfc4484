// SPDX-License-Identifier: Apache-2.0

package main

var inResolver = []mutant{
	{
		"does not compare the UIDs of owners", "resolver/fromcache.go",
		`case reply.object != nil && (uid == "" || reply.object.UID == uid):`,
		"case reply.object != nil:",
	},
	{
		"follows the first owner instead of the controller", "resolver/object.go",
		`	if chosen == nil {
		chosen = &references[0]
	}`,
		`	chosen = &references[0]`,
	},
	{
		"takes the first page of objects for all", "resolver/listing.go",
		`of.complete = page.Continue == ""`,
		"of.complete = true",
	},
}

var inConversion = []mutant{
	{
		"uses one log.record.uid for two counts", "internal/logrecord/logrecord.go",
		`return string(ev.UID) + "-" + strconv.FormatInt(event.Count(ev), 10)`,
		`return string(ev.UID) + "-" + strconv.FormatInt(min(event.Count(ev), 100), 10)`,
	},
	{
		"writes the pod as its own workload", "internal/logrecord/logrecord.go",
		"if end := chain.End(); end != nil {",
		"if end := chain.Objects[0]; end != nil {",
	},
}

var inFilters = []mutant{
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

var inLifecycle = []mutant{
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
