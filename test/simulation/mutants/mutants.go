// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// changes are mistakes that a developer could make, by the part of the receiver that they are in.
func changes() []change { return slices.Concat(inWatch, inLoop) }

func mutants() (all []mutant) {
	for _, c := range changes() {
		all = append(all, mutant{change: c})
	}
	return all
}

var inWatch = []change{
	{
		"does not list again after 410 Gone", "internal/watch/stream.go",
		`		s.resourceVersion = ""
		return Expired`,
		`		return Expired`,
	},
	{
		"resumes in the middle of a list that broke off", "internal/watch/connection.go",
		"Change{Kind: kind, Event: &ev}",
		"Change{Kind: kind, Event: &ev, ResourceVersion: ev.ResourceVersion}",
	},
	{
		"restarts a watch without a pause", "internal/watch/stream.go",
		`		pause(ctx, max(delays.Step(), retryAfter(err)))
`,
		`		_ = delays
`,
	},
	{
		"takes the first page of a list for the whole", "internal/watch/connection.go",
		`		next := page.Continue
		if next == "" {`,
		`		next := page.Continue
		if next == "" || next != "" {`,
	},
}

var inLoop = []change{
	{
		"counts what is not delivered as delivered", "internal/loop/session.go",
		`	if len(delivered) < len(b.records) {
`,
		`	if len(delivered) < len(b.records)-len(b.records) {
`,
	},
	{
		"notes progress after a batch that was not delivered", "internal/loop/session.go",
		"	for !s.isUndelivered && drain.Err() == nil {",
		"	for s.progress.Note(); !s.isUndelivered && drain.Err() == nil; {",
	},
	{
		"notes what a window holds", "internal/ledger/ledger.go",
		"		if first := oldest[stream]; first > 0 && isListed {",
		"		if first := oldest[stream]; first > 0 && isListed && len(oldest) == 0 {",
	},
	{
		"saves the counts of events that a window holds", "internal/ledger/snapshot.go",
		"	if windows := l.heldBack[k]; len(windows) > 0 {",
		"	if windows := l.heldBack[k]; len(windows) > 0 && len(windows) < 0 {",
	},
	{
		"keeps the versions of a history that is lost", "internal/watch/version.go",
		"	if now == 0 || now >= s.highest {",
		"	if now == 0 || now > 0 {",
	},
	{
		"forgets a write that failed", "internal/progress/saver.go",
		"		s.signal()\n		return false",
		"		return false",
	},
	{
		"ignores that another leader has noted progress", "internal/progress/configmap.go",
		"leader != \"\" && leader != c.leader",
		"leader != \"\" && leader == \"nobody\"",
	},
}
