// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
)

// Reasons of a rollout.
const (
	First    = "first"    // no revision was there before
	Update   = "update"   // it replaces another revision
	Rollback = "rollback" // the revision was active before
	Restart  = "restart"  // an update with the same images, and no other change is known but of annotations
)

// Rollout is one rollout of a workload, in short.
type Rollout struct {
	UID        string // of the workload
	Revision   string
	Controller string // that makes the revision, in the form of kubectl
	Start      int64  // nanoseconds since 1970
	Record     string // log.record.uid of the record that began it; empty: the first pod shows it
	Replaced   string // the revision that it replaces; empty: not known, or none
	Reason     string // empty: not known
	// Images and Former are those of this revision and of the replaced one, by container; empty:
	// not known.
	Images, Former map[string]string
	Template       Template // zero: no record says what it changed
	Outcome        string
	Available      int64 // when something proved that its pods were available; 0: nothing did
	Undone         int64 // when the revision was scaled to zero afterwards; 0: no record shows it
	Done           int64 // when all its pods had started for the first time; 0: they have not
	Closed         int64 // scalings after this time are no part of it
	IsOver         bool  // another one began, or it was taken back
	Final          int64 // from when on the outcome of one that is complete or over stays, as in its trace, if nothing else happens
}

// usual are the default settings of the connector.
var usual = Options{Idle: time.Duration(patience), Settle: 10 * time.Second}

// States returns the rollouts and the pods of a workload, the oldest first. The scheduled runs of a
// CronJob are no rollouts.
func (w *Workload) States(o Options) (rollouts []Rollout, pods []PodState) {
	h := w.history()
	for revision, r := range w.Revisions {
		runs, views := w.runs(h, revision, o)
		for _, x := range runs {
			if !strings.HasPrefix(w.controllerOf(revision), "cronjob.") {
				rollouts = append(rollouts, w.summary(h, x))
			}
		}
		for _, v := range views {
			pods = append(pods, PodState{
				UID: v.uid, Workload: w.UID, Name: v.pod.Name, Revision: revision, Node: v.pod.Node, Began: cmp.Or(v.began, v.start),
				Started: v.startedAt(), Stopped: earliest(v.stopped, w.endOf(r, v.pod)),
			})
		}
	}
	slices.SortFunc(rollouts, func(a, b Rollout) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Revision, b.Revision))
	})
	slices.SortFunc(pods, func(a, b PodState) int { return cmp.Or(cmp.Compare(a.Began, b.Began), cmp.Compare(a.UID, b.UID)) })
	return rollouts, pods
}

func (w *Workload) summary(h history, x *run) Rollout {
	s := Rollout{
		UID: w.UID, Revision: x.revision, Controller: w.controllerOf(x.revision), Start: x.start, Done: x.done(), Closed: x.closed, IsOver: x.until != always, Record: h.recordOf(x.episode), Undone: x.undone,
		Replaced: x.replaced, Images: w.Revisions[x.revision].images(), Outcome: x.outcome(), Available: x.proof,
	}
	if r := w.Revisions[x.replaced]; r != nil {
		s.Former = r.images()
	}
	s.Template = w.templateOf(x.episode)
	if len(x.initial) == 0 || x.proof < x.initial[0].end {
		s.Available = 0
	}
	if s.Outcome == Complete {
		s.Available = max(x.end, s.Available)
	}
	s.Final = max(x.decided, x.end+int64(x.wait(usual)))
	s.Reason = s.reason(x, w.Revisions[x.revision].steps().down(0, x.start) != 0)
	return s
}

// reason returns why the revision was rolled out; empty: no record shows it. The first one has
// nothing to scale down: that is known when a program had time to become ready. A revision returns
// if it was scaled down before.
func (s *Rollout) reason(x *run, returns bool) string {
	hadTime := s.Outcome == Complete && x.now >= x.end+int64(StopWindow)
	switch {
	case IsJob(x.revision):
		return ""
	case x.activation != "", s.Replaced != "" && returns:
		return Rollback
	case s.Template.IsOnlyRestart(), s.Replaced != "" && len(s.Template.Changes) == 0 && len(s.Images) > 0 && maps.Equal(s.Images, s.Former):
		return Restart
	case s.Replaced != "", len(s.Template.Changes) > 0:
		return Update
	case hadTime && x.begins:
		return First
	}
	return ""
}

// templateOf returns what a record says about the template of a rollout, soon after its begin; zero:
// none does.
func (w *Workload) templateOf(e episode) (found Template) {
	controller, nearest := w.controllerOf(e.revision), patience
	for _, uid := range slices.Sorted(maps.Keys(w.Templates)) {
		t := w.Templates[uid]
		isOf := t.Revision == e.revision || t.Revision == "" && t.Controller == controller
		distance := max(t.At-e.start, e.start-t.At)
		if isOf && t.At >= e.start-skew && distance < nearest {
			found, nearest = t, distance
		}
	}
	return found
}

// oldestTemplate returns the record of the template that is forgotten first.
func (w *Workload) oldestTemplate() string {
	return slices.MinFunc(slices.Collect(maps.Keys(w.Templates)), func(a, b string) int {
		return cmp.Or(cmp.Compare(w.Templates[a].At, w.Templates[b].At), cmp.Compare(a, b))
	})
}

// recordOf returns the UID of the record that began a rollout; empty: none that is known.
func (h history) recordOf(e episode) string {
	if e.activation != "" {
		return e.activation
	}
	for _, a := range h.activations {
		if a.revision == e.revision && a.start <= e.start+skew {
			return a.activation
		}
	}
	return ""
}

// replacedBy returns the revision that a rollout replaces: the newest one that had pods when it
// began, or was scaled down in it. Empty: no record shows it.
func (w *Workload) replacedBy(h history, e episode) (found string) {
	latest, until := int64(0), w.nextOf(h, e)
	for _, name := range h.revisions {
		r := w.Revisions[name]
		if name == e.revision || !w.siblings(name, e.revision) || !r.hadPodsBefore(h.stepsOf(r), e.start, until) {
			continue
		}
		since := int64(1)
		for _, other := range h.episodes {
			if other.revision == name && other.start <= e.start {
				since = max(since, other.start)
			}
		}
		if since > latest {
			found, latest = name, since
		}
	}
	return found
}

// hadPodsBefore reports whether the revision had pods when another one began, which was the current
// one until a time.
func (r *Revision) hadPodsBefore(steps steps, at, until int64) bool {
	if steps.down(at, until) != 0 {
		return true
	}
	if _, newest, ok := steps.since(at); ok {
		// A Deployment that recreates its pods scales the revision to zero before it begins another one.
		return newest.To > 0 || newest.At >= at-int64(StopWindow)
	}
	for _, p := range r.Pods {
		if began := r.began(p); began != 0 {
			if began < at {
				return true
			}
			continue
		}
		// One of which only the end is known is older: kubelets report ends only of pods that have run.
		if killed := inOrder(p.Events).with(record.KindStopping).first(); killed >= at-int64(StopWindow) && killed < until {
			return true
		}
	}
	return false
}

// images returns the images of a revision by container, as its kubelets pulled or found them last.
func (r *Revision) images() map[string]string {
	all, times := map[string]string{}, map[string]int64{}
	for _, p := range r.Pods {
		for _, e := range p.Events {
			name, _ := record.PullOf(e.Message)
			if name == "" || e.Container == "" || e.Last < times[e.Container] {
				continue
			}
			if e.Last > times[e.Container] || name > all[e.Container] {
				all[e.Container], times[e.Container] = name, e.Last
			}
		}
	}
	return all
}

// imageChanges returns the images of each container, and those before if they are known and differ.
func (s *Rollout) imageChanges() (all []string) {
	for _, container := range slices.Sorted(maps.Keys(s.Images)) {
		text, former := s.Images[container], s.Former[container]
		if former != "" && former != text {
			text = former + " → " + text
		}
		all = append(all, container+": "+text)
	}
	return all
}

// PodState is the state of a pod: its node, and its times.
type PodState struct {
	UID, Name, Revision, Node string
	Workload                  string // its UID
	Began, Started            int64  // the first start of the last container; 0: no record shows it
	Stopped                   int64  // its deletion, eviction or Killing; 0: it goes on
}

// Replicas returns how many pods each revision has, by its last scaling.
func (w *Workload) Replicas() map[string]int {
	all := map[string]int{}
	for name, r := range w.Revisions {
		if _, s, ok := r.steps().since(always); ok {
			all[name] = s.To
		}
	}
	return all
}
