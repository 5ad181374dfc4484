// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// followTick is how often a watch of owners looks whether something has changed.
const followTick = 5 * time.Millisecond

// The resource version of pods and of lists is the time, in microseconds.

func versionAt(at time.Time) string { return strconv.FormatInt(at.UnixMicro(), 10) }

func timeOf(version string) time.Time {
	micros, err := strconv.ParseInt(version, 10, 64)
	if err != nil || micros == 0 {
		return time.Now()
	}
	return time.UnixMicro(micros)
}

// watchOwners streams what becomes of pods after a resource version. Other objects never change.
func (s *Server) watchOwners(w http.ResponseWriter, r *http.Request, t target) {
	stream := newStream(w, r)
	stream.flush()
	over := stream.timeout()
	defer over.Stop()
	tick := time.NewTicker(followTick)
	defer tick.Stop()
	for seen := timeOf(r.URL.Query().Get("resourceVersion")); ; {
		now := time.Now()
		if t.resource == "pods" {
			for _, change := range s.currentFleet().changes(t.namespace, seen, now) {
				stream.write(stream.encoding.frame(change.kind, change.pod))
				s.requests.send(1)
			}
			stream.flush()
		}
		seen = now
		select {
		case <-tick.C:
		case <-over.C:
			return
		case <-r.Context().Done():
			return
		case <-s.closed:
			return
		}
	}
}

// podChange is a message of a watch of pods.
type podChange struct {
	at   time.Time
	kind watch.EventType
	pod  *metav1.PartialObjectMetadata
}

// phase is what becomes of each pod at some time after its creation.
type phase struct {
	kind  watch.EventType
	after time.Duration
}

// phases are the changes to a pod that a watch reports: it is created, bound to a node, running,
// terminating, and deleted.
func (f *Fleet) phases() []phase {
	return []phase{
		{watch.Added, 0},
		{watch.Modified, min(15*time.Millisecond, f.Lifetime)},
		{watch.Modified, min(time.Second, f.Lifetime)},
		{watch.Modified, f.Lifetime - min(time.Second, f.Lifetime)},
		{watch.Deleted, f.Lifetime},
	}
}

// changes are those within a time, in their order. A fleet without a Lifetime has none.
func (f *Fleet) changes(namespace string, after, until time.Time) []podChange {
	var all []podChange
	if f.Lifetime == 0 {
		return nil
	}
	for _, p := range f.phases() {
		for pod := f.createdAfter(after.Add(-p.after)); pod < f.createdAfter(until.Add(-p.after)); pod++ {
			if namespace != "" && f.namespace(f.deploymentOf(pod)) != namespace {
				continue
			}
			at := f.Created(pod).Add(p.after)
			described := f.pod(pod)
			described.ResourceVersion = versionAt(at)
			all = append(all, podChange{at, p.kind, described})
		}
	}
	slices.SortStableFunc(all, func(a, b podChange) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	return all
}

// createdAfter is the first pod that is created after a time; Pods if none is.
func (f *Fleet) createdAfter(at time.Time) int {
	if at.Before(f.Begin) {
		return 0
	}
	return min(f.Pods, int(at.Sub(f.Begin)/f.Every)+1)
}
