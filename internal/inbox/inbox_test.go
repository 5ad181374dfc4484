// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

func change(message string) watch.Change {
	return watch.Change{Kind: watch.Changed, Event: &corev1.Event{Message: message}}
}

func messages(batch []watch.Change) (found []string) {
	for _, c := range batch {
		if c.Event == nil {
			found = append(found, "end of the listing")
			continue
		}
		found = append(found, c.Event.Message)
	}
	return found
}

func signalled(i *Inbox) bool {
	select {
	case <-i.Signal():
		return true
	default:
		return false
	}
}

func TestWhoTakesIsWokenWhenNothingMoreIsAtHandAndForAFullInbox(t *testing.T) {
	i := New(16)
	i.Flush()
	assert.False(t, signalled(i), "there is nothing")
	for n := range 16 {
		require.NoError(t, i.Put(t.Context(), change(strconv.Itoa(n))))
		assert.Equal(t, n >= 14, signalled(i), "change %d", n)
	}
	assert.Len(t, i.Take(nil), 16)
	assert.False(t, signalled(i))
	require.NoError(t, i.Put(t.Context(), change("next")))
	i.Flush()
	assert.True(t, signalled(i))
}

func TestTheEndOfAListingEndsABatch(t *testing.T) {
	i := New(16)
	require.NoError(t, i.Put(t.Context(), change("a")))
	assert.False(t, i.Full())
	require.NoError(t, i.Put(t.Context(), watch.Change{Kind: watch.ListEnded}))
	require.NoError(t, i.Put(t.Context(), change("b")))
	assert.True(t, i.Full(), "waiting brings nothing more into the batch")
	assert.True(t, signalled(i))
	assert.Equal(t, []string{"a", "end of the listing"}, messages(i.Take(nil)))
	assert.True(t, signalled(i), "something is left")
	assert.False(t, i.Full())
	assert.Equal(t, []string{"b"}, messages(i.Take(nil)))
	assert.Empty(t, i.Take(nil))
}

func TestAFullInboxLetsNobodyIn(t *testing.T) {
	i := New(16)
	large := strings.Repeat("x", 10*weighty)
	require.NoError(t, i.Put(t.Context(), change(large)))
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, i.Put(short, change(large)), context.DeadlineExceeded, "messages weigh")
	assert.True(t, signalled(i), "what is there has to make room")
	require.NoError(t, i.Put(t.Context(), change("small")))
	assert.Len(t, i.Take(nil), 2)
	require.NoError(t, i.Put(t.Context(), change(strings.Repeat("x", 100*weighty))), "one that is larger than the inbox fits an empty one")
}

func TestAStreamThatFloodsDoesNotStarveAnother(t *testing.T) {
	i := New(16)
	ctx, cancel := context.WithCancel(t.Context())
	var streams sync.WaitGroup
	defer streams.Wait()
	defer cancel()
	streams.Go(func() {
		for i.Put(ctx, change("flood")) == nil {
			continue
		}
	})
	require.Eventually(t, i.Full, 10*time.Second, time.Millisecond)
	put := make(chan error)
	streams.Go(func() { put <- i.Put(ctx, change("drop")) })
	time.Sleep(20 * time.Millisecond) // so that it stands in line
	var seen []string
	for range 3 {
		seen = append(seen, messages(i.Take(nil))...)
		time.Sleep(5 * time.Millisecond)
	}
	require.NoError(t, <-put)
	seen = append(seen, messages(i.Take(nil))...)
	assert.Contains(t, seen[:min(len(seen), 3*16)], "drop")
}
