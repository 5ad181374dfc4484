// SPDX-License-Identifier: Apache-2.0

package main

var inResolver = []mutant{
	{
		"remembers for an hour that an object was not found", "resolver/cache.go",
		"settledFailure = time.Minute",
		"settledFailure = time.Hour",
	},
	{
		"remembers for an hour that the API server failed", "resolver/cache.go",
		"passingFailure = 5 * time.Second",
		"passingFailure = time.Hour",
	},
	{
		"does not compare the UIDs of owners", "resolver/look.go",
		`case reply.object != nil && (uid == "" || reply.object.UID == uid):`,
		"case reply.object != nil:",
	},
	{
		"takes an object from the cache that has the name alone", "resolver/cache.go",
		`case r.known() && (uid == "" || r.UID == uid):`,
		"case r.known():",
	},
	{
		"looks for the owner of a cluster-scoped object in a namespace", "resolver/search.go",
		`	case s.dependent.Namespace == "":
		// A cluster-scoped object can't have an owner in a namespace.
		return address{}, false
`,
		`	case s.dependent.Namespace == "":
		namespace = defaultNamespace
`,
	},
	{
		"follows the first owner instead of the controller", "resolver/object.go",
		`	if chosen == nil {
		chosen = &references[0]
	}`,
		`	chosen = &references[0]`,
	},
	{
		"takes the first of several owners for the only one", "resolver/object.go",
		"ambiguous := chosen == nil && len(references) > 1",
		"ambiguous := false",
	},
	{
		"follows a cycle of owners", "resolver/climb.go",
		`	case c.hasUID(up.uid):
		c.resolution = Cycle
`,
		"",
	},
	{
		"follows one owner fewer than max_depth", "resolver/climb.go",
		"len(c.objects) > c.maxDepth",
		"len(c.objects) >= c.maxDepth",
	},
	{
		"takes the last known owner for the workload", "resolver/chain.go",
		"return c.Resolution == Complete || c.Resolution == Ambiguous",
		"return c.Resolution != Cycle",
	},
	{
		"forgets a deleted object at once", "resolver/cache.go",
		"if r != nil && r.known() && failure == NotFound && c.now()-r.used > c.ttl {",
		"if r != nil && r.known() && failure == NotFound {",
	},
	{
		"asks for a known object again after a second", "resolver/cache.go",
		`	if failure == "" {
		return c.ttl
	}`,
		`	if failure == "" {
		return time.Second
	}`,
	},
	{
		"remembers nothing", "resolver/cache.go",
		"c.now()-r.checked >= c.lifetime(r.failure) || c.forgottenLocked(r)",
		"c.now()-r.checked >= 0 || c.forgottenLocked(r)",
	},
	{
		"takes what a lagging cache lacks for gone", "resolver/reader.go",
		"if isAboutPath(err) || failureOf(err) != NotFound &&",
		"if err != nil || failureOf(err) != NotFound &&",
	},
	{
		"takes a lagging list for proof", "resolver/listing.go",
		"l.end(of, func() { of.unserved = isAboutPath(err) })",
		"l.end(of, func() { of.unserved, of.proves = isAboutPath(err), of.whole })",
	},
	{
		"takes a list that began before for proof", "resolver/listing.go",
		`	if of.late[name] {
		return found, found.object != nil && found.proves(uid)
	}
`,
		"",
	},
	{
		"takes an answer to an older question for its own", "resolver/ask.go",
		"case !call.value.proves(uid) && !s.repeated:",
		"case false:",
	},
	{
		"takes the first page of objects for all", "resolver/listing.go",
		`of.whole = page.Continue == ""`,
		"of.whole = true",
	},
	{
		"waits for owners without a limit", "resolver/resolver.go",
		"ctx, cancel := context.WithTimeoutCause(ctx, r.lookupTimeout, errLookupTimeout)",
		"ctx, cancel := context.WithTimeoutCause(ctx, 100*r.lookupTimeout, errLookupTimeout)",
	},
	{
		"takes one refused lookup for a refusal of everything", "resolver/failure.go",
		`case apierrors.IsForbidden(err):
		return Forbidden`,
		`case apierrors.IsForbidden(err):
		return NotFound`,
	},
	{
		"takes 503 for an object that does not exist", "resolver/failure.go",
		"case apierrors.IsNotFound(err), ",
		"case apierrors.IsServiceUnavailable(err), apierrors.IsNotFound(err), ",
	},
	{
		"believes for ever that a kind is not served", "resolver/kinds.go",
		`		lifetime = unservedLifetime
`,
		`		lifetime = 24 * time.Hour
`,
	},
	{
		"finds no kind of another group without an API version", "resolver/search.go",
		`if s.want.APIVersion != "" || s.everywhere || s.blocked() {`,
		`if s.want.APIVersion != "" || s.everywhere || s.blocked() || s.want.Kind != "Pod" {`,
	},
	{
		"does not know the groups that kinds have left", "resolver/apiversion.go",
		`if gv.Group != "extensions" {`,
		`if gv.Group != "" || gv.Version != "" {`,
	},
	{
		"asks only the version that a reference names", "resolver/kinds.go",
		`		if found != nil || err != nil {
			return found, err
		}
	}
	return k.inOtherVersions`,
		`		return found, err
	}
	return k.inOtherVersions`,
	},
	{
		"takes the UID in a kubelet's event of a node for real", "resolver/search.go",
		"if k.name == coreNode {",
		"if false && k.name == coreNode {",
	},
	{
		"leaves requests under way when it is closed", "resolver/background.go",
		`	b.cancel()
	b.running.Wait()
`,
		"",
	},
	{
		"leaves the connections for owners open", "lifecycle.go",
		`	if r.resolver != nil {
		r.resolver.Close()
	}
`,
		"",
	},
	{
		"hands out the same chain for all pods of a batch", "receiver.go",
		`		ref := event.Involved(observations[i].Event)
		at, ok`,
		`		ref := event.Involved(observations[i].Event)
		ref.Name, ref.UID = "", ""
		at, ok`,
	},
	{
		"caches an object under its kind's version", "resolver/look.go",
		"s.object = found.object.servedAs(k.apiVersion)",
		"s.object = found.object.servedAs(s.want.APIVersion)",
	},
	{
		"takes an owner's label before the pod's", "internal/extract/extract.go",
		`	for _, o := range objects {
		if !r.from(o) {`,
		`	for i := range objects {
		o := objects[len(objects)-1-i]
		if !r.from(o) {`,
	},
	{
		"keeps no labels of owners", "internal/extract/extract.go",
		"r.append(tags, objects, labels)",
		"r.append(tags, objects[:1], labels)",
	},
	{
		"gives up a request that nobody waits for", "resolver/calls.go",
		`	left.waiters--
	if left.waiters == 0 {
		left.cancel()`,
		`	left.waiters--
	if left.waiters >= 0 {
		left.cancel()`,
	},
	{
		"asks for all owners one after the other", "resolver/config.go",
		"defaultConcurrency   = 16",
		"defaultConcurrency   = 1",
	},
	{
		"does not look again for the kind of an object when its path is gone",
		"resolver/failure.go",
		`return details == nil || details.Name == "" ||`,
		"return false && details == nil ||",
	},
	{
		"takes an expired token for a missing permission", "resolver/failure.go",
		`case apierrors.IsForbidden(err):
		return Forbidden`,
		`case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return Forbidden`,
	},
	{
		"keeps a refusal for ever", "resolver/refusals.go",
		"return last.count >= r.limit && r.now() < last.until",
		"return last.count >= r.limit",
	},
	{
		"follows new pods without saying that it misses some", "resolver/following.go",
		"if change == watch.Added || known {",
		"if known {",
	},
	{
		"overwrites a pod with an older state of it", "resolver/cache.go",
		"if known != nil && known.known() && known.checked > asked {",
		"if false {",
	},
	{
		"takes a list from a lagging cache for proof that an object was replaced",
		"resolver/listing.go",
		`return found, uid == "" || found.object.UID == uid`,
		"return found, true",
	},
	{
		"takes an answer for one to its next question", "resolver/look.go",
		`	if s.ticket != nil {
		return false
	}
`,
		"",
	},
	{
		"follows new pods after it is closed", "resolver/following.go",
		"context.WithCancel(f.reader.gate.background.ctx)",
		"context.WithCancel(context.Background())",
	},
	{
		"keeps the place of a request that nobody waits for", "resolver/gate.go",
		"defer func() { <-g.places }()",
		`defer func() {
			if wanted.Err() == nil {
				<-g.places
			}
		}()`,
	},
}

var inConversion = []mutant{
	{
		"uses one log.record.uid for two counts", "internal/logrecord/logrecord.go",
		`return string(ev.UID) + "-" + strconv.FormatInt(event.Count(ev), 10)`,
		`return string(ev.UID) + "-" + strconv.FormatInt(min(event.Count(ev), 100), 10)`,
	},
	{
		"takes the first time of an event for the newest", "internal/event/event.go",
		"firstRepresentable(ev.LastTimestamp.Time, ev.EventTime.Time, ",
		"firstRepresentable(ev.EventTime.Time, ev.LastTimestamp.Time, ",
	},
	{
		"puts records of different pods under one resource", "internal/logrecord/logrecord.go",
		`	said.UID = cmp.Or(said.UID, found.UID)
`,
		`	said.UID = ""
	said.Name = said.Kind
`,
	},
	{
		"puts records with different containers under one resource",
		"internal/logrecord/logrecord.go",
		`		container:  event.ContainerName(o.Event),
`,
		"",
	},
	{
		"puts records of different resolutions under one resource",
		"internal/logrecord/logrecord.go",
		`		resolution: o.Chain.Resolution,
`,
		"",
	},
	{
		"puts records with different ends of the chain under one resource",
		"internal/logrecord/logrecord.go",
		`		last:       referenceTo(objects[len(objects)-1]),
`,
		"",
	},
	{
		"writes the event's namespace for the involved object's",
		"internal/logrecord/logrecord.go",
		`	said.Namespace = found.Namespace
`,
		`	said.Namespace = o.Event.Namespace
`,
	},
	{
		"takes a warning for information", "internal/logrecord/logrecord.go",
		`return plog.SeverityNumberWarn
`,
		`return plog.SeverityNumberInfo
`,
	},
	{
		"writes the wrong reporting controller", "internal/event/event.go",
		`	if ev.ReportingController != "" {
		return ev.ReportingController
	}
	return ev.Source.Component`,
		`	return ev.Source.Component`,
	},
	{
		"writes the kubelet's node as that of any reporter", "internal/event/event.go",
		`if ReportingController(ev) != "kubelet" {`,
		`if ReportingController(ev) == "" {`,
	},
	{
		"writes no container", "internal/logrecord/logrecord.go",
		`	put.String("k8s.container.name", event.ContainerName(o.Event))
`,
		"",
	},
	{
		"writes the time of delivery as the time of observation",
		"internal/logrecord/logrecord.go",
		"event.UnixNano(o.SeenAt)",
		"event.UnixNano(time.Now())",
	},
	{
		"writes the pod as its own workload", "internal/logrecord/logrecord.go",
		"if end := chain.End(); end != nil {",
		"if end := chain.Objects[0]; end != nil {",
	},
	{
		"writes a pod's owner as its workload", "internal/logrecord/logrecord.go",
		"if end := chain.End(); end != nil {",
		"if end := chain.Objects[min(1, len(chain.Objects)-1)]; chain.EndKnown() {",
	},
	{
		"writes the chain of owners upside down", "internal/logrecord/logrecord.go",
		"names[i] = convention.QualifiedName(owner)",
		"names[len(owners)-1-i] = convention.QualifiedName(owner)",
	},
	{
		"writes all occurrences instead of the new ones", "internal/logrecord/logrecord.go",
		`attributes.PutInt("k8s.event.occurrences", o.Occurrences)`,
		`attributes.PutInt("k8s.event.occurrences", event.Count(ev))`,
	},
}

var inFilters = []mutant{
	{
		"takes a glob for a plain text", "internal/filter/filter.go",
		`		ok, _ := path.Match(glob, name)
		return ok
`,
		`		ok, _ := path.Match(name, glob)
		return ok
`,
	},
	{
		"asks for the first of several types alone", "internal/filter/filter.go",
		"if len(f.Types) != 1 {",
		"if len(f.Types) == 0 {",
	},
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
		"compares exclude_namespaces with the event's namespace", "internal/filter/filter.go",
		`namespace := ev.InvolvedObject.Namespace
`,
		`namespace := ev.Namespace
`,
	},
	{
		"filters the type in the API server alone", "internal/filter/filter.go",
		"if len(f.Types) > 0 && !slices.Contains(f.Types, ev.Type) {",
		"if len(f.Types) > 2 && !slices.Contains(f.Types, ev.Type) {",
	},
	{
		"ignores the reasons to exclude", "internal/filter/filter.go",
		"if matches(f.ExcludeReasons, ev.Reason) {",
		"if len(f.ExcludeReasons) == 1 && matches(f.ExcludeReasons, ev.Reason) {",
	},
	{
		"watches the first of several namespaces", "config.go",
		`	return c.Namespaces
`,
		`	return c.Namespaces[:1]
`,
	},
}

var inLifecycle = []mutant{
	{
		"never reports that it has recovered", "status.go",
		`	delete(s.failing, part)
	s.logger.Info`,
		`	s.logger.Info`,
	},
	{
		"reports that all is well when one of several parts works again", "status.go",
		`	delete(s.failing, part)
	s.logger.Info`,
		`	clear(s.failing)
	s.logger.Info`,
	},
	{
		"reports its status to the first pipeline alone", "status.go",
		`	for _, host := range s.hosts {
`,
		`	for _, host := range s.hosts[:1] {
`,
	},
	{
		"does not wait for its work at shutdown", "lifecycle.go",
		`	case <-r.life.done:
		return nil
`,
		`	case <-r.life.done:
		return nil
	default:
		return nil
`,
	},
	{
		"gives deliveries no time at shutdown", "lifecycle.go",
		"shutdownGrace = 5 * time.Second",
		"shutdownGrace = 0 * time.Second",
	},
	{
		"waits for a hanging pipeline at shutdown", "lifecycle.go",
		"grace := time.AfterFunc(shutdownGrace, r.life.cancelWork)",
		"grace := time.AfterFunc(time.Hour, r.life.cancelWork)",
	},
	{
		"makes a receiver of its own for each pipeline", "factory.go",
		`	s.byConfig[config] = r
`,
		"",
	},
	{
		"does not wait to know its cluster", "lifecycle.go",
		`	r.awaitCluster(stop)
`,
		"",
	},
	{
		"never knows its cluster after a failure", "internal/cluster/cluster.go",
		`		if err == nil {
			settled()
			return
		}
`,
		`		settled()
		if err == nil || ctx.Err() == nil {
			return
		}
`,
	},
	{
		"asks for its cluster without a pause", "internal/cluster/cluster.go",
		"case <-time.After(pause):",
		"case <-time.After(pause / 1000):",
	},
	{
		"does not close the storage", "saving.go",
		`	if err := r.saving.store.Close(ctx); err != nil {`,
		`	if err := ctx.Err(); err != nil {`,
	},
}
