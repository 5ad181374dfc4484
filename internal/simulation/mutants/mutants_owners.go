// SPDX-License-Identifier: Apache-2.0

package main

var inResolver = []mutant{
	{
		"remembers for an hour that an object was not found", "resolver/cache.go",
		"settledFailure = time.Minute", "settledFailure = time.Hour",
	},
	{
		"remembers for an hour that the API server failed", "resolver/cache.go",
		"passingFailure = 5 * time.Second", "passingFailure = time.Hour",
	},
	{
		"does not compare the UIDs of owners", "resolver/look.go",
		"case reply.object != nil && (uid == \"\" || reply.object.UID == uid):", "case reply.object != nil:",
	},
	{
		"takes an object from the cache that has the name alone", "resolver/cache.go",
		"case r.known() && (uid == \"\" || r.UID == uid):", "case r.known():",
	},
	{
		"looks for the owner of a cluster-scoped object in a namespace", "resolver/search.go",
		"\tcase s.dependent.Namespace == \"\":\n\t\t// A cluster-scoped object can't have an owner in a namespace.\n\t\treturn address{}, false\n", "\tcase s.dependent.Namespace == \"\":\n\t\tnamespace = defaultNamespace\n",
	},
	{
		"looks for a cluster-scoped owner in the namespace of what it owns", "resolver/reader.go",
		"if k.namespaced {", "if k.namespaced || in.namespace.Value() == \"\" {",
	},
	{
		"follows the first owner instead of the controller", "resolver/object.go",
		"\tif chosen == nil {\n\t\tchosen = &references[0]\n\t}", "\tchosen = &references[0]",
	},
	{
		"takes the first of several owners for the only one", "resolver/object.go",
		"ambiguous := chosen == nil && len(references) > 1", "ambiguous := false",
	},
	{
		"follows a cycle of owners", "resolver/climb.go",
		"\tcase c.hasUID(up.uid):\n\t\tc.resolution = Cycle\n", "",
	},
	{
		"follows one owner fewer than max_depth", "resolver/climb.go",
		"len(c.objects) > c.maxDepth", "len(c.objects) >= c.maxDepth",
	},
	{
		"takes the last known owner for the workload", "resolver/chain.go",
		"return c.Resolution == Complete || c.Resolution == Ambiguous", "return c.Resolution != Cycle",
	},
	{
		"forgets a deleted object at once", "resolver/cache.go",
		"if r != nil && r.known() && failure == NotFound && c.now()-r.used > c.ttl {", "if r != nil && r.known() && failure == NotFound {",
	},
	{
		"asks for a known object again after a second", "resolver/config.go",
		"defaultCacheTTL      = 10 * time.Minute", "defaultCacheTTL      = 10 * time.Minute / 600",
	},
	{
		"remembers nothing", "resolver/cache.go",
		"c.now()-r.checked >= c.lifetime(r.failure) || c.forgottenLocked(r)", "c.now()-r.checked >= 0 || c.forgottenLocked(r)",
	},
	{
		"takes what a lagging cache lacks for gone", "resolver/reader.go",
		"if cached && askedFor != \"\" {", "if askedFor != \"\" {",
	},
	{
		"takes what a lagging list lacks for gone", "resolver/listing.go",
		"if refusesVersion(err) || err == nil && l.lacksMany(of) {", "if refusesVersion(err) {",
	},
	{
		"takes a lagging list for proof", "resolver/listing.go",
		"l.end(of, func() { of.unserved = isAboutPath(err) })", "l.end(of, func() { of.unserved, of.proves = isAboutPath(err), of.whole })",
	},
	{
		"takes a list that began before for proof", "resolver/listing.go",
		"\tif of.late[name] {\n\t\treturn found, found.object != nil && found.proves(uid)\n\t}\n", "",
	},
	{
		"takes an answer to an older question for its own", "resolver/ask.go",
		"case !call.value.proves(uid) && !s.repeated:", "case false:",
	},
	{
		"takes the first page of objects for all", "resolver/listing.go",
		"of.whole = page.Continue == \"\"", "of.whole = true",
	},
	{
		"waits for owners without a limit", "resolver/resolver.go",
		"ctx, cancel := context.WithTimeoutCause(ctx, r.lookupTimeout, errLookupTimeout)", "ctx, cancel := context.WithTimeoutCause(ctx, 100*r.lookupTimeout, errLookupTimeout)",
	},
	{
		"takes one refused lookup for a refusal of everything", "resolver/failure.go",
		"case apierrors.IsForbidden(err):\n\t\treturn Forbidden", "case apierrors.IsForbidden(err):\n\t\treturn NotFound",
	},
	{
		"takes 503 for an object that does not exist", "resolver/failure.go",
		"case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), apierrors.IsGone(err):", "case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), apierrors.IsGone(err), apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err):",
	},
	{
		"believes for ever that a kind is not served", "resolver/kinds.go",
		"\t\tlifetime = unservedLifetime\n", "\t\tlifetime = 24 * time.Hour\n",
	},
	{
		"finds no kind of another group without an API version", "resolver/search.go",
		"if s.want.APIVersion != \"\" || s.everywhere || s.blocked() {", "if s.want.APIVersion != \"\" || s.everywhere || s.blocked() || s.want.Kind != \"Pod\" {",
	},
	{
		"does not know the groups that kinds have left", "resolver/apiversion.go",
		"if gv.Group != \"extensions\" {", "if gv.Group != \"\" || gv.Version != \"\" {",
	},
	{
		"asks only the version that a reference names", "resolver/kinds.go",
		"\t\tif found != nil || err != nil {\n\t\t\treturn found, err\n\t\t}\n\t}\n\treturn k.inOtherVersions", "\t\treturn found, err\n\t}\n\treturn k.inOtherVersions",
	},
	{
		"takes the UID in a kubelet's event of a node for real", "resolver/search.go",
		"if k.name == coreNode {", "if false && k.name == coreNode {",
	},
	{
		"leaves requests under way when it is closed", "resolver/background.go",
		"\tb.cancel()\n\tb.running.Wait()\n", "",
	},
	{
		"leaves the connections for owners open", "lifecycle.go",
		"\tif r.resolver != nil {\n\t\tr.resolver.Close()\n\t}\n", "",
	},
	{
		"hands out the same chain for all pods of a batch", "receiver.go",
		"\t\tref := event.Involved(observations[i].Event)\n\t\tat, ok", "\t\tref := event.Involved(observations[i].Event)\n\t\tref.Name, ref.UID = \"\", \"\"\n\t\tat, ok",
	},
	{
		"caches an object under its kind's version", "resolver/look.go",
		"s.object = found.object.servedAs(k.apiVersion)", "s.object = found.object.servedAs(s.want.APIVersion)",
	},
	{
		"takes an owner's label before the pod's", "internal/extract/extract.go",
		"\tfor _, o := range objects {\n\t\tif !r.from(o) {", "\tfor i := range objects {\n\t\to := objects[len(objects)-1-i]\n\t\tif !r.from(o) {",
	},
	{
		"keeps no labels of owners", "internal/extract/extract.go",
		"r.append(tags, objects, labels)", "r.append(tags, objects[:1], labels)",
	},
	{
		"gives up a request that nobody waits for", "resolver/calls.go",
		"\tleft.waiters--\n\tif left.waiters == 0 {\n\t\tleft.cancel()", "\tleft.waiters--\n\tif left.waiters >= 0 {\n\t\tleft.cancel()",
	},
	{
		"asks for all owners one after the other", "resolver/config.go",
		"defaultConcurrency   = 16", "defaultConcurrency   = 1",
	},
	{
		"does not look again for the kind of an object when its path is gone", "resolver/failure.go",
		"return details == nil || details.Name == \"\" ||", "return false && details == nil ||",
	},
	{
		"takes an expired token for a missing permission", "resolver/failure.go",
		"case apierrors.IsForbidden(err):\n\t\treturn Forbidden", "case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):\n\t\treturn Forbidden",
	},
	{
		"keeps a refusal for ever", "resolver/refusals.go",
		"return last.count >= r.limit && r.now() < last.until", "return last.count >= r.limit",
	},
	{
		"follows new pods without saying that it misses some", "resolver/following.go",
		"if change == watch.Added || known {", "if known {",
	},
	{
		"overwrites a pod with an older state of it", "resolver/cache.go",
		"if known != nil && known.known() && known.checked > asked {", "if false {",
	},
	{
		"takes a list from a lagging cache for proof that an object was replaced", "resolver/listing.go",
		"return found, uid == \"\" || found.object.UID == uid", "return found, true",
	},
	{
		"takes an answer for one to its next question", "resolver/look.go",
		"\tif s.ticket != nil {\n\t\treturn false\n\t}\n", "",
	},
	{
		"follows new pods after it is closed", "resolver/following.go",
		"context.WithCancel(f.reader.gate.background.ctx)", "context.WithCancel(context.Background())",
	},
	{
		"keeps the place of a request that nobody waits for", "resolver/gate.go",
		"defer func() { <-g.places }()", "defer func() {\n\t\t\tif wanted.Err() == nil {\n\t\t\t\t<-g.places\n\t\t\t}\n\t\t}()",
	},
}

var inConversion = []mutant{
	{
		"uses one log.record.uid for two counts", "internal/logrecord/logrecord.go",
		"return string(ev.UID) + \"-\" + strconv.FormatInt(event.Count(ev), 10)", "return string(ev.UID) + \"-\" + strconv.FormatInt(min(event.Count(ev), 100), 10)",
	},
	{
		"takes the first time of an event for the newest", "internal/event/event.go",
		"firstRepresentable(ev.LastTimestamp.Time, ev.EventTime.Time, ev.FirstTimestamp.Time, ev.CreationTimestamp.Time)", "firstRepresentable(ev.EventTime.Time, ev.FirstTimestamp.Time, ev.LastTimestamp.Time, ev.CreationTimestamp.Time)",
	},
	{
		"puts records of different pods under one resource", "internal/logrecord/logrecord.go",
		"\tsaid.UID = cmp.Or(said.UID, found.UID)\n", "\tsaid.UID = \"\"\n\tsaid.Name = said.Kind\n",
	},
	{
		"puts records with different containers under one resource", "internal/logrecord/logrecord.go",
		"\t\tcontainer:  event.ContainerName(o.Event),\n", "",
	},
	{
		"puts records of different resolutions under one resource", "internal/logrecord/logrecord.go",
		"\t\tresolution: o.Chain.Resolution,\n", "",
	},
	{
		"puts records with different ends of the chain under one resource", "internal/logrecord/logrecord.go",
		"\t\tlast:       referenceTo(objects[len(objects)-1]),\n", "",
	},
	{
		"writes the event's namespace for the involved object's", "internal/logrecord/logrecord.go",
		"\tsaid.Namespace = found.Namespace\n", "\tsaid.Namespace = o.Event.Namespace\n",
	},
	{
		"takes a warning for information", "internal/logrecord/logrecord.go",
		"return plog.SeverityNumberWarn\n", "return plog.SeverityNumberInfo\n",
	},
	{
		"writes the wrong reporting controller", "internal/event/event.go",
		"\tif ev.ReportingController != \"\" {\n\t\treturn ev.ReportingController\n\t}\n\treturn ev.Source.Component", "\treturn ev.Source.Component",
	},
	{
		"writes the kubelet's node as that of any reporter", "internal/event/event.go",
		"if ReportingController(ev) != \"kubelet\" {", "if ReportingController(ev) == \"\" {",
	},
	{
		"writes no container", "internal/logrecord/logrecord.go",
		"\tput.String(\"k8s.container.name\", event.ContainerName(o.Event))\n", "",
	},
	{
		"writes the time of delivery as the time of observation", "internal/logrecord/logrecord.go",
		"event.UnixNano(o.SeenAt)", "event.UnixNano(time.Now())",
	},
	{
		"writes the pod as its own workload", "internal/logrecord/logrecord.go",
		"if end := chain.End(); end != nil {", "if end := chain.Objects[0]; end != nil {",
	},
	{
		"writes a pod's owner as its workload", "internal/logrecord/logrecord.go",
		"if end := chain.End(); end != nil {", "if end := chain.Objects[min(1, len(chain.Objects)-1)]; chain.EndKnown() {",
	},
	{
		"writes the chain of owners upside down", "internal/logrecord/logrecord.go",
		"names[i] = convention.QualifiedName(owner)", "names[len(owners)-1-i] = convention.QualifiedName(owner)",
	},
	{
		"writes all occurrences instead of the new ones", "internal/logrecord/logrecord.go",
		"attributes.PutInt(\"k8s.event.occurrences\", o.Occurrences)", "attributes.PutInt(\"k8s.event.occurrences\", event.Count(ev))",
	},
}

var inFilters = []mutant{
	{
		"takes a glob for a plain text", "internal/filter/filter.go",
		"\t\tok, _ := path.Match(glob, name)\n\t\treturn ok\n", "\t\tok, _ := path.Match(name, glob)\n\t\treturn ok\n",
	},
	{
		"asks for the first of several types alone", "internal/filter/filter.go",
		"if len(f.Types) != 1 {", "if len(f.Types) == 0 {",
	},
	{
		"lets an included reason beat an excluded one", "internal/filter/filter.go",
		"if len(f.IncludeReasons) > 0 && !matches(f.IncludeReasons, ev.Reason) {\n\t\treturn false\n\t}", "if len(f.IncludeReasons) > 0 {\n\t\treturn matches(f.IncludeReasons, ev.Reason)\n\t}",
	},
	{
		"compares exclude_namespaces with the event's namespace", "internal/filter/filter.go",
		"namespace := ev.InvolvedObject.Namespace\n", "namespace := ev.Namespace\n",
	},
	{
		"filters the type in the API server alone", "internal/filter/filter.go",
		"if len(f.Types) > 0 && !slices.Contains(f.Types, ev.Type) {", "if len(f.Types) > 2 && !slices.Contains(f.Types, ev.Type) {",
	},
	{
		"ignores the reasons to exclude", "internal/filter/filter.go",
		"if matches(f.ExcludeReasons, ev.Reason) {", "if len(f.ExcludeReasons) == 1 && matches(f.ExcludeReasons, ev.Reason) {",
	},
	{
		"watches the first of several namespaces", "config.go",
		"\treturn c.Namespaces\n", "\treturn c.Namespaces[:1]\n",
	},
}

var inLifecycle = []mutant{
	{
		"never reports that it has recovered", "status.go",
		"\tdelete(s.failing, part)\n\ts.logger.Info", "\ts.logger.Info",
	},
	{
		"reports that all is well when one of several parts works again", "status.go",
		"\tdelete(s.failing, part)\n\ts.logger.Info", "\tclear(s.failing)\n\ts.logger.Info",
	},
	{
		"reports its status to the first pipeline alone", "status.go",
		"\tfor _, host := range s.hosts {\n", "\tfor _, host := range s.hosts[:1] {\n",
	},
	{
		"does not wait for its work at shutdown", "lifecycle.go",
		"\tcase <-r.life.done:\n\t\treturn nil\n", "\tcase <-r.life.done:\n\t\treturn nil\n\tdefault:\n\t\treturn nil\n",
	},
	{
		"gives deliveries no time at shutdown", "lifecycle.go",
		"shutdownGrace = 5 * time.Second", "shutdownGrace = 0 * time.Second",
	},
	{
		"waits for a hanging pipeline at shutdown", "lifecycle.go",
		"grace := time.AfterFunc(shutdownGrace, r.life.cancelWork)", "grace := time.AfterFunc(time.Hour, r.life.cancelWork)",
	},
	{
		"makes a receiver of its own for each pipeline", "factory.go",
		"\ts.byConfig[config] = r\n", "",
	},
	{
		"does not wait to know its cluster", "lifecycle.go",
		"\tr.awaitCluster(stop)\n", "",
	},
	{
		"never knows its cluster after a failure", "internal/cluster/cluster.go",
		"\t\tif err == nil {\n\t\t\tsettled()\n\t\t\treturn\n\t\t}\n", "\t\tsettled()\n\t\tif err == nil || ctx.Err() == nil {\n\t\t\treturn\n\t\t}\n",
	},
	{
		"asks for its cluster without a pause", "internal/cluster/cluster.go",
		"case <-time.After(pause):", "case <-time.After(pause / 1000):",
	},
	{
		"does not close the storage", "saving.go",
		"\tif err := r.saving.store.Close(ctx); err != nil {", "\tif err := ctx.Err(); err != nil {",
	},
}
