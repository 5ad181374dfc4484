// SPDX-License-Identifier: Apache-2.0

package details

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeevents/kubeeventsreceiver/internal/event"
	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// pod has the fields of a pod that are kept: no annotations, because a tool may put the whole pod into one, and
// no messages of containers.
type pod struct {
	podMetadata `json:"metadata"`
	Spec        struct {
		Containers     []podContainer `json:"containers"`
		InitContainers []podContainer `json:"initContainers"`
		Ephemeral      []podContainer `json:"ephemeralContainers"`
		Volumes        []struct {
			ConfigMap corev1.LocalObjectReference `json:"configMap"`
		} `json:"volumes"`
	} `json:"spec"`
	Status struct {
		Phase      corev1.PodPhase   `json:"phase"`
		Containers []containerStatus `json:"containerStatuses"`
		Init       []containerStatus `json:"initContainerStatuses"`
		Ephemeral  []containerStatus `json:"ephemeralContainerStatuses"`
	} `json:"status"`

	readAt         time.Time
	usedConfigMaps []string
}

type podMetadata struct {
	Namespace       string                  `json:"namespace"`
	UID             types.UID               `json:"uid"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
}

type containerStatus struct {
	Name         string         `json:"name"`
	RestartCount int32          `json:"restartCount"`
	State        containerState `json:"state"`
	Last         containerState `json:"lastState"`
}

type containerState struct {
	Waiting    *corev1.ContainerStateWaiting `json:"waiting"`
	Running    *corev1.ContainerStateRunning `json:"running"`
	Terminated *endedRun                     `json:"terminated"`
}

type endedRun struct {
	Reason     string      `json:"reason"`
	ExitCode   int32       `json:"exitCode"`
	Signal     int32       `json:"signal"`
	StartedAt  metav1.Time `json:"startedAt"`
	FinishedAt metav1.Time `json:"finishedAt"`
}

// began returns when the run began; a run whose program never started says the epoch.
func (e *endedRun) began() time.Time {
	if e.StartedAt.Unix() <= 0 {
		return e.FinishedAt.Time
	}
	return e.StartedAt.Time
}

type podContainer struct {
	Name    string `json:"name"`
	EnvFrom []struct {
		ConfigMap corev1.LocalObjectReference `json:"configMapRef"`
	} `json:"envFrom"`
	Env []struct {
		From struct {
			ConfigMap corev1.LocalObjectReference `json:"configMapKeyRef"`
		} `json:"valueFrom"`
	} `json:"env"`
	Resources struct {
		Limits corev1.ResourceList `json:"limits"`
	} `json:"resources"`
}

const (
	// sharedFor is how long one read of a pod serves all its Events.
	sharedFor = 2 * time.Second
	// shortestBackOff is the first pause of a kubelet before it starts a container again, syncSlack how much
	// later it may start it, and longRun a run after which it starts it at once.
	// (kubernetes/pkg/kubelet/kubelet.go, backOffPeriod and MaxContainerBackOff; client-go/util/flowcontrol/backoff.go)
	shortestBackOff = 10 * time.Second
	syncSlack       = 15 * time.Second
	longRun         = 10 * time.Minute
)

// isOfRestart reports whether a BackOff is about a container that ended, and not about an image.
func isOfRestart(ev *corev1.Event) bool {
	return strings.HasPrefix(ev.Message, "Back-off restarting failed container")
}

// askPod reads a pod, unless what is known of it has the ends that the Events are about. Some may be of another
// pod of the name.
func (d *Details) askPod(ctx context.Context, about subject, events []*corev1.Event) answer {
	known, ok := d.pods.Get(about.key())
	var failure resolver.Resolution
	isMissing := func(ev *corev1.Event) bool {
		return known.UID != ev.InvolvedObject.UID || !known.container(event.ContainerName(ev)).hasEndBefore(ev)
	}
	if !ok || time.Since(known.readAt) >= sharedFor && slices.ContainsFunc(events, isMissing) {
		known = &pod{readAt: time.Now()}
		failure = d.reader.read(ctx, path{version: "v1", resource: "pods", namespace: about.namespace, name: about.name}, known)
		if failure == "" {
			known.forgetEnvironment()
			d.pods.Add(about.key(), known)
		}
	}
	ended := func(ev *corev1.Event) *observation.Termination {
		if failure != "" || known.UID != ev.InvolvedObject.UID {
			return nil
		}
		return known.ended(ev)
	}
	var configMaps []string
	var notRead resolver.Resolution // of ConfigMaps
	if d.settings.ConfigMaps && slices.ContainsFunc(events, func(ev *corev1.Event) bool { return ended(ev) != nil }) {
		configMaps, notRead = d.changedConfigMaps(ctx, known, event.NewestOccurrence(events[len(events)-1]))
	}
	return func(ev *corev1.Event) *observation.Details {
		one := &observation.Details{Resolution: cmp.Or(failure, notRead)}
		switch one.Ended = ended(ev); {
		case one.Ended != nil:
			one.ConfigMaps = configMaps
		case failure == "" && known.UID != ev.InvolvedObject.UID:
			one.Resolution = resolver.ResolutionNotFound
		}
		return one
	}
}

// container returns the status of a container; one without a state if there is none.
func (p *pod) container(name string) containerStatus {
	for _, all := range [][]containerStatus{p.Status.Containers, p.Status.Init, p.Status.Ephemeral} {
		for _, status := range all {
			if status.Name == name {
				return status
			}
		}
	}
	return containerStatus{}
}

// ended returns how the Event's container ended; nil if the status belongs to another run.
func (p *pod) ended(ev *corev1.Event) *observation.Termination {
	name := event.ContainerName(ev)
	status := p.container(name)
	end := status.endedBefore(ev)
	if end == nil {
		return nil
	}
	return p.termination(name, status.RestartCount, end)
}

func (p *pod) termination(container string, restarts int32, end *endedRun) *observation.Termination {
	t := &observation.Termination{
		Reason: end.Reason, ExitCode: end.ExitCode, Signal: end.Signal, Restarts: restarts,
		StartedAt: end.StartedAt.Time, FinishedAt: end.FinishedAt.Time,
	}
	// A shell, and a container runtime, add the signal to 128.
	if t.Signal == 0 && t.ExitCode > 128 && t.ExitCode <= 128+64 {
		t.Signal = t.ExitCode - 128
	}
	for _, all := range [][]podContainer{p.Spec.Containers, p.Spec.InitContainers, p.Spec.Ephemeral} {
		for _, one := range all {
			if one.Name == container {
				t.MemoryLimit = one.Resources.Limits.Memory().Value()
			}
		}
	}
	return t
}

// endedBefore returns the end of the container's run before an Event; nil if the status does not show it, or
// may be that of another run. Times have whole seconds.
func (c containerStatus) endedBefore(ev *corev1.Event) *endedRun {
	at := event.NewestOccurrence(ev).Truncate(time.Second)
	last := c.backedOff(at)
	if ev.Reason != "BackOff" {
		last = c.endedBeforeStart(at, event.Count(ev) > 1)
	}
	if last != nil && !last.FinishedAt.IsZero() && !last.FinishedAt.After(at) {
		return last
	}
	return nil
}

// backedOff returns the last end before a back-off. If the container runs, the status may be older. The first
// end, and that of a long run, is without a back-off.
func (c containerStatus) backedOff(at time.Time) *endedRun {
	last, end := c.Last.Terminated, c.State.Terminated
	switch {
	case end != nil && !end.StartedAt.After(at):
		if c.RestartCount == 0 || end.FinishedAt.Sub(end.began()) >= longRun || at.Sub(end.FinishedAt.Time) >= shortestBackOff {
			return nil
		}
		last = end
	case c.State.Running != nil && !c.State.Running.StartedAt.After(at), c.State.Waiting != nil && !c.isPaused(at):
		return nil
	}
	// In the second in which the run began, the Event may be of the pause before it. The first two runs have none.
	if last != nil && c.RestartCount > 1 && !last.began().Before(at) {
		return nil
	}
	return last
}

// endedBeforeStart returns the last end before a start. The Event comes after the start, but within the shortest
// pause: on a busy node, the run that it began may have ended, too. Without a pause start only the first restart,
// and one after a long run.
func (c containerStatus) endedBeforeStart(at time.Time, isRestart bool) *endedRun {
	const pause = shortestBackOff - time.Second
	isStart := func(began time.Time) bool { return at.Sub(began) >= -time.Second && at.Sub(began) < pause }
	switch last, end := c.Last.Terminated, c.State.Terminated; {
	case last != nil && c.RestartCount == 1 && !isRestart && isStart(last.began()):
		return nil // The Event may be of that start.
	case end != nil && c.RestartCount == 0:
		if isRestart {
			return end
		}
		return nil
	case end != nil && isStart(end.began()),
		c.State.Running != nil && isStart(c.State.Running.StartedAt.Time),
		c.State.Waiting != nil && c.endsPause(at):
		return last
	case end != nil && at.Sub(end.FinishedAt.Time) < pause:
		return end
	default:
		return nil
	}
}

// hasEndBefore reports whether an earlier status has the end before an Event: in the pause after it, nothing else
// ends.
func (c containerStatus) hasEndBefore(ev *corev1.Event) bool {
	if ev.Reason == "BackOff" {
		return c.isPaused(event.NewestOccurrence(ev))
	}
	return c.endsPause(event.NewestOccurrence(ev))
}

// isPaused reports whether a time falls into the pause after the last end. When it is over, the next run may have
// ended within the second.
func (c containerStatus) isPaused(at time.Time) bool {
	end := c.Last.Terminated
	return c.State.Waiting != nil && end != nil && at.Before(end.FinishedAt.Add(c.backOff()))
}

// endsPause reports whether a start at a time ends the pause after the last end.
func (c containerStatus) endsPause(at time.Time) bool {
	end := c.Last.Terminated
	if c.State.Waiting == nil || end == nil {
		return false
	}
	ends, pause := end.FinishedAt.Add(c.backOff()), c.backOff()
	return !at.Before(ends.Add(-time.Second)) && !at.After(ends.Add(min(pause, syncSlack)))
}

var inBackOff = regexp.MustCompile(`^back-off (\S+) restarting failed container`)

// backOff returns the pause that the status says.
func (c containerStatus) backOff() time.Duration {
	if found := inBackOff.FindStringSubmatch(c.State.Waiting.Message); found != nil {
		if pause, err := time.ParseDuration(found[1]); err == nil {
			return pause
		}
	}
	return shortestBackOff
}

// askJob reads the pods of a Job, for the newest container that failed.
func (d *Details) askJob(ctx context.Context, about subject) answer {
	var pods list[pod]
	failure := resolver.ResolutionNotFound
	if len(validation.IsValidLabelValue(about.name)) == 0 { // Otherwise, no pod can have the label.
		failure = d.reader.read(ctx, path{version: "v1", resource: "pods", namespace: about.namespace, selector: "job-name=" + about.name, fields: "status.phase=Failed"}, &pods)
	}
	if failure != "" {
		pods.Items = nil // They may be a part.
	}
	return func(ev *corev1.Event) *observation.Details {
		return &observation.Details{Resolution: failure, Ended: newestFailure(pods.Items, about.uid, event.NewestOccurrence(ev))}
	}
}

// newestFailure returns how the last container of a Job's failed pods ended before a time; nil: none did.
func newestFailure(pods []pod, job types.UID, at time.Time) (newest *observation.Termination) {
	for i := range pods {
		p := &pods[i]
		if !isOwnedBy(p.OwnerReferences, job) || p.Status.Phase != corev1.PodFailed {
			continue
		}
		for _, status := range slices.Concat(p.Status.Containers, p.Status.Init) {
			end := status.State.Terminated
			if end == nil || end.ExitCode == 0 || end.FinishedAt.After(at) || newest != nil && !end.FinishedAt.After(newest.FinishedAt) {
				continue
			}
			newest = p.termination(status.Name, status.RestartCount, end)
		}
	}
	return newest
}

func isOwnedBy(owners []metav1.OwnerReference, uid types.UID) bool {
	return slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == uid })
}
