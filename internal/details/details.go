// SPDX-License-Identifier: Apache-2.0

// Package details reads what a few Events do not say from the object they are about: why a container ended,
// and what a new revision of a workload changed, by which tool and manager.
//
// An object is read about once for each restart or revision. Nothing is watched. Of what is read, the
// values of environment variables, arguments, commands, annotations and ConfigMaps do not leave this
// package. Secrets are never read.
package details

import (
	"context"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Settings select what is read. Callers must set all of them.
type Settings struct {
	// ContainerStatus adds why a container ended, TemplateChanges what a revision changed. ConfigMaps
	// adds, to the former, which ConfigMap of the pod changed last.
	ContainerStatus, TemplateChanges, ConfigMaps bool
	Timeout                                      time.Duration // how long a batch waits
	Observer                                     Observer
}

// Details adds details to observations. Its methods must not be called concurrently.
type Details struct {
	settings Settings
	reader   *reader
	slots    *semaphore.Weighted // for questions

	pods        *lru.Cache[types.NamespacedName, *pod]      // the last state of each
	revisions   *lru.Cache[types.UID, compared]             // of StatefulSets and DaemonSets
	replicaSets *lru.Cache[types.NamespacedName, compared]  // that were compared
	configMaps  *lru.Cache[types.NamespacedName, configMap] // the last changes of each
	flights     singleflight.Group                          // of ConfigMaps
}

// remembered bounds each of the memories above. Beyond it, an object may be read once more.
const remembered = 5_000

// New returns Details for the API server of config; nil if nothing is to be read. It sends no request.
// The error is about config.
func New(config *rest.Config, settings Settings) (*Details, error) {
	if !settings.ContainerStatus && !settings.TemplateChanges {
		return nil, nil
	}
	reader, err := newReader(config, settings.Observer, settings.Timeout)
	if err != nil {
		return nil, fmt.Errorf("no client for details: %w", err)
	}
	return &Details{
		settings: settings, reader: reader, slots: semaphore.NewWeighted(questionsAtOnce),
		pods: newMemory[types.NamespacedName, *pod](), revisions: newMemory[types.UID, compared](),
		replicaSets: newMemory[types.NamespacedName, compared](), configMaps: newMemory[types.NamespacedName, configMap](),
	}, nil
}

func newMemory[K comparable, V any]() *lru.Cache[K, V] {
	memory, _ := lru.New[K, V](remembered) // The size is above 0.
	return memory
}

// answer returns what a read says about one Event; nil: nothing.
type answer func(*corev1.Event) *observation.Details

// question is what Events of a batch need to know about one object.
type question struct {
	of     []int // indexes of the observations
	events []*corev1.Event
	answer answer
}

// Add adds details to the observations whose Event calls for them, as far as they are known before the
// timeout, or before the context ends. A nil Details adds nothing.
func (d *Details) Add(ctx context.Context, observations []observation.Observation) {
	if d == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.settings.Timeout)
	defer cancel()
	var reads sync.WaitGroup
	questions := map[subject]*question{}
	for i := range observations {
		about, ok := d.subjectOf(observations[i].Event)
		if !ok {
			continue
		}
		if questions[about] == nil {
			questions[about] = &question{}
		}
		one := questions[about]
		one.of, one.events = append(one.of, i), append(one.events, observations[i].Event)
	}
	for about, one := range questions {
		reads.Go(func() { one.answer = d.ask(ctx, about, one.events) })
	}
	reads.Wait()
	for _, one := range questions {
		for _, i := range one.of {
			observations[i].Details = one.answer(observations[i].Event)
		}
	}
}

// Close ends the reads that no batch waits for.
func (d *Details) Close() {
	if d != nil {
		d.reader.close()
	}
}

// subject is an object that a question is about.
type subject struct {
	kind, namespace, name string
	uid                   types.UID // empty: that of any object with the name
}

func (s subject) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: s.name}
}

// The reasons of Events that call for details. A Killing and an Evicted come before the container ends, so
// its status does not show the end yet.
var (
	restarts = map[string]bool{"BackOff": true, "Created": true, "Started": true}
	// https://github.com/kubernetes/api/blob/master/batch/v1/types.go, JobReason
	failedJobs = map[string]bool{
		"BackoffLimitExceeded": true, "DeadlineExceeded": true, "PodFailurePolicy": true,
		"FailedIndexes": true, "MaxFailedIndexesExceeded": true,
	}
)

// subjectOf returns the object that is read for an Event. ok is false if the Event does not call for a read.
// It calls for none if it is stored in another namespace than that of the object it is about.
func (d *Details) subjectOf(ev *corev1.Event) (about subject, ok bool) {
	involved := ev.InvolvedObject
	about = subject{involved.Kind, involved.Namespace, involved.Name, involved.UID}
	if involved.Namespace != ev.Namespace || len(validation.IsDNS1123Subdomain(involved.Name)) > 0 {
		return about, false
	}
	switch involved.Kind {
	case "Pod":
		about.uid = ""
		return about, d.settings.ContainerStatus && restarts[ev.Reason] && event.ContainerName(ev) != "" && d.isRepeated(ev)
	case "Job":
		return about, d.settings.ContainerStatus && failedJobs[ev.Reason]
	case "Deployment":
		about.kind, about.uid = "ReplicaSet", ""
		about.name, ok = scaledUp(ev)
	case "ReplicaSet":
		about.uid = ""
		ok = ev.Reason == "SuccessfulCreate"
	case "StatefulSet", "DaemonSet":
		ok = ev.Reason == "SuccessfulCreate"
	}
	return about, ok && d.settings.TemplateChanges
}

// isRepeated reports whether a container of the Event's pod has ended before.
func (d *Details) isRepeated(ev *corev1.Event) bool {
	if ev.Reason == "BackOff" {
		return isOfRestart(ev)
	}
	known, ok := d.pods.Peek(types.NamespacedName{Namespace: ev.InvolvedObject.Namespace, Name: ev.InvolvedObject.Name})
	return event.Count(ev) > 1 || ok && known.UID == ev.InvolvedObject.UID
}

// questionsAtOnce bounds the questions that are asked at once.
const questionsAtOnce = 16

// ask reads what Events need to know about their subject, as soon as there is a slot for the question. If each of
// its reads waited for a slot, the first reads of all questions would come before the last one of any.
func (d *Details) ask(ctx context.Context, about subject, events []*corev1.Event) answer {
	if d.slots.Acquire(ctx, 1) != nil {
		return failed(resolver.ResolutionTimeout) // It was not asked, which shows nothing.
	}
	defer d.slots.Release(1)
	switch about.kind {
	case "Pod":
		return d.askPod(ctx, about, events)
	case "Job":
		return d.askJob(ctx, about)
	case "ReplicaSet":
		return d.askReplicaSet(ctx, about, events)
	default:
		return d.askWorkload(ctx, about, events)
	}
}
