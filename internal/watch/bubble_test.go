// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/queue"
	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// observer collects the reports of streams.
type observer struct {
	mu      sync.Mutex
	causes  []watch.Cause
	errs    []error
	answers int
	of      map[string]bool // the namespaces of the streams that reported
}

func (*observer) Arrived() {}

func (*observer) Withdrawn() {}

func (o *observer) Answered(namespace string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers++
	o.noteLocked(namespace)
}

func (o *observer) noteLocked(namespace string) {
	if o.of == nil {
		o.of = map[string]bool{}
	}
	o.of[namespace] = true
}

func (o *observer) Restarting(namespace string, cause watch.Cause, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.noteLocked(namespace)
	o.causes = append(o.causes, cause)
	o.errs = append(o.errs, err)
}

func (*observer) WentBack(string, uint64, uint64) {}

func (o *observer) seen() []watch.Cause {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.causes)
}

func (o *observer) answersSeen() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.answers
}

func (o *observer) lastError() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.errs[len(o.errs)-1]
}

func clientOf(t *testing.T, api *apitest.Server) rest.Interface {
	t.Helper()
	client, err := kubeclient.Events(&rest.Config{Host: api.URL, Transport: api})
	require.NoError(t, err)
	return client
}

// start runs a stream that puts into queue, in a bubble, until the test ends.
func start(t *testing.T, api *apitest.Server, queue *queue.Queue, config watch.Settings) *observer {
	t.Helper()
	o := &observer{}
	if config.Observer == nil {
		config.Observer = o
	}
	config.Client, config.Taker, config.Pages = clientOf(t, api), queue, semaphore.NewWeighted(1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		watch.New(config).Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return o
}

// changes takes what is in the queue, as texts such as "listed a" or "began". Changes of a stream
// of one namespace begin with its name.
func changes(queue *queue.Queue) (words []string) {
	kinds := map[watch.Kind]string{
		watch.KindListBegan: "began", watch.KindListed: "listed", watch.KindListEnded: "ended", watch.KindChanged: "changed",
		watch.KindDeleted: "deleted", watch.KindExisting: "existing", watch.KindWentBack: "went back",
	}
	synctest.Wait()
	for batch := queue.Take(nil); len(batch) > 0; batch = queue.Take(nil) {
		for _, c := range batch {
			word := kinds[c.Kind]
			if c.Namespace != "" {
				word = c.Namespace + " " + word
			}
			if c.Event != nil {
				word += fmt.Sprintf(" %s=%d", c.Event.Name, c.Event.Count)
			}
			if c.Kind == watch.KindListEnded {
				word += " at " + c.ResourceVersion
			}
			words = append(words, word)
		}
		synctest.Wait()
	}
	return words
}

func event(name, message string) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Message: message}
}

func counted(name string, count int32) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Count: count}
}
