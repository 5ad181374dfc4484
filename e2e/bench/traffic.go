// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// traffic is recorders that write events about a cluster's pods at a given rate, and note in a sink
// when. The same size gives the same traffic each time.
type traffic struct {
	cluster *cluster
	sink    *sink
	size    size
	start   time.Time
}

// step is one write of a recorder.
type step struct {
	at     int  // its place among the writes of all recorders
	repeat bool // an event is counted up, rather than a new one made
}

// plan deals the writes out to the recorders, with the repeats as evenly among them as can be. A
// recorder writes in turn, so that it never repeats what has not been made.
func plan(sz size) [writers][]step {
	var steps [writers][]step
	due := 0 // repeats
	for i := range sz.observations {
		due += (i+1)*sz.updates/sz.observations - i*sz.updates/sz.observations
		mine := &steps[i%writers]
		repeat := due > 0 && len(*mine) > 0
		if repeat {
			due--
		}
		*mine = append(*mine, step{i, repeat})
	}
	return steps
}

// run writes all of it, and returns how many writes a second there were.
func (t *traffic) run(ctx context.Context) (perSecond float64, err error) {
	t.start = time.Now()
	var recorders sync.WaitGroup
	var errs [writers]error
	for i, steps := range plan(t.size) {
		recorders.Go(func() {
			r := &recorder{traffic: t, random: rand.New(rand.NewPCG(1, uint64(i)))}
			errs[i] = r.run(ctx, steps)
		})
	}
	recorders.Wait()
	return float64(t.size.observations) / time.Since(t.start).Seconds(), errors.Join(errs[:]...)
}

// recorder is one producer of events.
type recorder struct {
	*traffic
	random *rand.Rand
	recent []*corev1.Event // what it may repeat
}

func (r *recorder) run(ctx context.Context, steps []step) error {
	for _, s := range steps {
		time.Sleep(time.Until(r.start.Add(time.Duration(s.at) * time.Second / time.Duration(r.size.perSecond))))
		if err := r.write(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (r *recorder) write(ctx context.Context, s step) error {
	now := time.Now()
	if s.repeat {
		return r.count(ctx, r.recent[r.random.IntN(len(r.recent))], now)
	}
	pod := r.cluster.pods[s.at%len(r.cluster.pods)]
	e := kubeletEvent(fmt.Sprintf("%s.%x-%d", pod.Name, r.start.UnixNano(), s.at), pod, now)
	r.sink.note(e.Name, 1, now)
	_, err := r.cluster.client.CoreV1().Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
	const most = 10
	r.recent = append(r.recent, e)
	r.recent = r.recent[max(0, len(r.recent)-most):]
	return err
}

// count raises the count of an event. Recorders patch; for the API server a whole object is less
// work, for watchers it is the same.
func (r *recorder) count(ctx context.Context, e *corev1.Event, now time.Time) error {
	e.Count++
	e.LastTimestamp = metav1.NewTime(now)
	r.sink.note(e.Name, int64(e.Count), now)
	_, err := r.cluster.client.CoreV1().Events(e.Namespace).Update(ctx, e, metav1.UpdateOptions{})
	return err
}
