// SPDX-License-Identifier: Apache-2.0

// Package harness runs whole receivers in tests: with a simulated API server, in simulated time, with
// storage, a leader elector and pipelines that tests make fail. External test packages of the
// receiver's packages use it.
package harness

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/test/apiserver"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
)

// InBubble runs a test against a simulated API server, without a network and with a simulated clock.
func InBubble(t *testing.T, test func(t *testing.T, api *apitest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewInMemory(t)
		accepted := pipes(make(chan net.Conn))
		server := &http.Server{Handler: api, ReadHeaderTimeout: time.Hour}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = server.Serve(accepted)
		}()
		api.Dial = accepted.dial
		t.Cleanup(func() {
			// A request that Shutdown canceled can still be opening its connection.
			synctest.Wait()
			close(accepted)
			_ = server.Close()
			<-served
			time.Sleep(time.Minute) // What reads the connections notices that they are closed.
		})
		test(t, api)
	})
}

// pipes are connections within the process.
type pipes chan net.Conn

func (p pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := apiserver.Pipe()
	select {
	case p <- far:
		return near, nil
	case <-ctx.Done():
		_ = far.Close() // Else what sends for it would outlive the test.
		return nil, ctx.Err()
	}
}

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error { return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Eventually waits, in a bubble, until the condition holds.
func Eventually(t *testing.T, holds func() bool, message ...any) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 10*time.Minute; {
		if synctest.Wait(); holds() {
			return
		}
		step := time.Millisecond
		if time.Since(began) > time.Second {
			step = 100 * time.Millisecond
		}
		time.Sleep(step)
	}
	require.Fail(t, "it never happened", message...)
}

// Settle waits until all that exists is read, delivered and saved.
func Settle() {
	synctest.Wait()
	time.Sleep(5 * time.Second)
	synctest.Wait()
}

// Event returns an event about a pod that has occurred count times.
func Event(name string, count int32) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.NewTime(time.Now())},
		Count:      count, Reason: "Testing", Type: "Normal",
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod"},
	}
}
