// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/watch"
)

func change(message string) watch.Change {
	return watch.Change{Kind: watch.KindChanged, Event: &corev1.Event{Message: message}}
}

func messages(batch []watch.Change) (found []string) {
	for _, c := range batch {
		found = append(found, c.Event.Message)
	}
	return found
}

func signalled(q *Queue) bool {
	select {
	case <-q.Signal():
		return true
	default:
		return false
	}
}

func TestWhatIsReadTogetherIsOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(16)
		for range 2 {
			assert.False(t, signalled(q), "there is nothing")
			began := time.Now()
			for n := range 16 {
				require.NoError(t, q.Put(t.Context(), change(strconv.Itoa(n))))
				time.Sleep(watch.ReadTogether / 16)
			}
			<-q.Signal()
			assert.Equal(t, watch.ReadTogether, time.Since(began), "no change makes the ones before wait longer")
			assert.Len(t, q.Take(nil), 16)
			time.Sleep(2 * watch.ReadTogether)
		}
	})
}

func TestABatchIsBoundedInChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(3)
		for n := range 7 {
			require.NoError(t, q.Put(t.Context(), change(strconv.Itoa(n))))
		}
		time.Sleep(watch.ReadTogether)
		synctest.Wait()
		for _, want := range [][]string{{"0", "1", "2"}, {"3", "4", "5"}, {"6"}} {
			assert.True(t, signalled(q))
			assert.Equal(t, want, messages(q.Take(nil)))
		}
		assert.False(t, signalled(q), "nothing is left")
	})
}

func TestAChangeWeighsMoreThanItsText(t *testing.T) {
	q := New(3)
	require.NoError(t, q.Put(t.Context(), change("")))
	assert.False(t, q.room.TryAcquire(maxBytes-overhead+1))
	require.NoError(t, q.Put(t.Context(), watch.Change{Kind: watch.KindListEnded}))
	assert.False(t, q.room.TryAcquire(maxBytes-2*overhead+1))
}

func TestABatchIsBoundedInBytes(t *testing.T) {
	q := New(100)
	var sizes []int
	for range 4 {
		for range 3 {
			require.NoError(t, q.Put(t.Context(), change(strings.Repeat("x", 1<<20))))
		}
		sizes = append(sizes, len(q.Take(nil)))
	}
	assert.Equal(t, []int{3, 3, 3, 3}, sizes, "3 MiB of messages and what is around them fit 4 MiB")
	require.NoError(t, q.Put(t.Context(), change(strings.Repeat("x", maxBytes))))
	assert.Len(t, q.Take(nil), 1, "a change that is larger than a batch is a batch of its own")
}

func TestChangesThatWaitEnterAsFarAsThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(1000)
		large := strings.Repeat("x", maxBytes-2*overhead)
		require.NoError(t, q.Put(t.Context(), change(large)))
		assert.False(t, signalled(q))
		put := make(chan error, 2)
		for range 2 {
			go func() { put <- q.Put(t.Context(), change(large)) }()
		}
		synctest.Wait()
		assert.True(t, signalled(q), "waiting longer brings nothing more into the batch")
		for entered := 1; entered <= 2; entered++ {
			assert.Len(t, q.Take(nil), 1)
			synctest.Wait()
			assert.Len(t, put, entered)
		}
	})
}

func TestAPutThatIsGivenUpLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(1000)
		require.NoError(t, q.Put(t.Context(), change(strings.Repeat("x", maxBytes/2))))
		ctx, cancel := context.WithCancel(t.Context())
		large, small := make(chan error, 1), make(chan error, 1)
		go func() { large <- q.Put(ctx, change(strings.Repeat("x", maxBytes))) }()
		synctest.Wait()
		go func() { small <- q.Put(t.Context(), change("small")) }()
		synctest.Wait()
		assert.Empty(t, small, "it waits its turn")
		cancel()
		require.ErrorIs(t, <-large, context.Canceled)
		require.NoError(t, <-small)
		assert.Len(t, q.Take(nil), 2)
		assert.Empty(t, q.Take(nil))
		assert.True(t, q.room.TryAcquire(maxBytes), "all room is free")
	})
}

func TestAStreamThatFloodsDoesNotStarveAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(1000)
		ctx, cancel := context.WithCancel(t.Context())
		var streams sync.WaitGroup
		flood := "flood" + strings.Repeat(".", 256<<10)
		streams.Go(func() {
			for q.Put(ctx, change(flood)) == nil {
				continue
			}
		})
		synctest.Wait()
		require.True(t, signalled(q))
		streams.Go(func() { assert.NoError(t, q.Put(ctx, change("drop"))) })
		synctest.Wait()
		seen := messages(q.Take(nil))
		synctest.Wait()
		seen = append(seen, messages(q.Take(nil))...)
		assert.Contains(t, seen, "drop")
		cancel()
		streams.Wait()
	})
}

func TestTheQueueKeepsNothingThatWasTaken(t *testing.T) {
	q := New(2)
	for range 3 {
		require.NoError(t, q.Put(t.Context(), change("x")))
	}
	q.Take(nil)
	require.Len(t, q.changes, 1)
	for _, e := range q.changes[1:3] {
		assert.Nil(t, e.Event)
	}
}
