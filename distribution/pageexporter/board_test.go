// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/story"
	"github.com/kubeevents/kubeeventsreceiver/distribution/statusextension"
)

func answerOf(text string) func(*view) ([]byte, error) {
	return func(*view) ([]byte, error) { return []byte(text), nil }
}

// TestRecordsNeverWaitForViewers: what comes while an answer is computed is kept aside, within a bound, and
// what exceeds it is counted.
func TestRecordsNeverWaitForViewers(t *testing.T) {
	b := boardOf("")
	big := story.Logs("0:00 Pod/web-aaa-1 !Odd event=big: " + strings.Repeat("x", 2<<10))[0]
	one := big.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	for one.Len() < 6000 {
		one.At(0).CopyTo(one.AppendEmpty())
	}
	_, err := b.look(t.Context(), "slow", filter{}, func(*view) ([]byte, error) {
		b.add(big) // It would wait for ever.
		b.add(big)
		return nil, nil
	})
	require.NoError(t, err)
	missed := b.own.Load().Missed()
	assert.Positive(t, missed, "more than 16 MiB")
	b.add(story.Logs(unschedulable)[0])
	html := ""
	_, err = b.look(t.Context(), "page", everything(t), func(v *view) ([]byte, error) {
		body, err := v.render("content")
		html = string(body)
		return body, err
	})
	require.NoError(t, err)
	assert.Contains(t, html, "0/3 nodes are available", "what comes afterwards has room")
	assert.Contains(t, html, "x…", "what waited is there for the next viewer")
	assert.Contains(t, html, fmt.Sprint(missed, " records came while the page was busy and were dropped."))
}

func TestViewersShareAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(time.Now)
		count := 0
		look := func(f filter) {
			_, err := b.look(t.Context(), "page", f, func(*view) ([]byte, error) { count++; return nil, nil })
			require.NoError(t, err)
		}
		look(filter{})
		look(filter{})
		assert.Equal(t, 1, count)
		look(filter{Minutes: 5})
		assert.Equal(t, 2, count, "another filter")
		time.Sleep(time.Second)
		look(filter{})
		assert.Equal(t, 2, count, "nothing has happened")
		b.add(story.Logs(unschedulable)[0])
		look(filter{})
		assert.Equal(t, 3, count, "something has")
		b.delivery = func() statusextension.Delivery { return statusextension.Delivery{Failure: "It is a standby."} }
		look(filter{})
		assert.Equal(t, 4, count, "the receiver's status has changed")
		time.Sleep(6 * time.Second)
		look(filter{})
		assert.Equal(t, 5, count, "the time moves on")
		for i := range 100 {
			look(filter{Limit: i})
		}
		assert.LessOrEqual(t, len(b.cache), maxCached)
	})
}

func TestAClockThatIsSetBackMakesAnswersNew(t *testing.T) {
	c := &clock{story.Epoch}
	b := newBoard(c.now)
	_, _ = b.look(t.Context(), "page", filter{}, answerOf("at noon"))
	c.Time = story.Epoch.Add(-time.Hour)
	found, err := b.look(t.Context(), "page", filter{}, answerOf("an hour before"))
	require.NoError(t, err)
	assert.Equal(t, "an hour before", string(found.body))
}

// TestAViewerWhoHasLeftComputesNothing: nobody waits for the answers of those who have left.
func TestAViewerWhoHasLeftComputesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(time.Now)
		left, leave := context.WithCancel(t.Context())
		release := make(chan struct{})
		var waiting sync.WaitGroup
		waiting.Go(func() {
			_, _ = b.look(t.Context(), "slow", filter{}, func(*view) ([]byte, error) { <-release; return nil, nil })
		})
		synctest.Wait()
		for i := range 10 {
			waiting.Go(func() {
				_, err := b.look(left, fmt.Sprint(i), filter{}, func(*view) ([]byte, error) { t.Error("computed"); return nil, nil })
				assert.ErrorIs(t, err, context.Canceled)
			})
		}
		leave()
		synctest.Wait()
		close(release)
		waiting.Wait()
	})
}

// TestASlowLookHoldsNoSharedAnswer, and for a limited time those that are to be made.
func TestASlowLookHoldsNoSharedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(time.Now)
		_, err := b.look(t.Context(), "page", filter{}, answerOf("known"))
		require.NoError(t, err)
		var looking sync.WaitGroup
		looking.Go(func() {
			_, err := b.look(t.Context(), "slow", filter{}, func(v *view) ([]byte, error) {
				for v.ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
				return nil, nil
			})
			assert.ErrorIs(t, err, errSlow)
			assert.ErrorContains(t, err, "choose a namespace, a workload or a shorter time")
		})
		synctest.Wait()
		began := time.Now()
		found, err := b.look(t.Context(), "page", filter{}, answerOf("made again"))
		require.NoError(t, err)
		assert.Equal(t, "known", string(found.body))
		assert.Zero(t, time.Since(began), "it waits for nobody")
		_, err = b.look(t.Context(), "another", filter{}, answerOf(""))
		require.NoError(t, err)
		assert.InDelta(t, maxLook.Seconds(), time.Since(began).Seconds(), 0.1)
		looking.Wait()
	})
}

func TestOneRequestTooManyIsRefused(t *testing.T) {
	b := boardOf("")
	b.requests.Add(maxWaiting)
	for _, path := range []string{"/", "/content", "/api/problems"} {
		status, body := fetch(t, b, path)
		assert.Equal(t, 503, status)
		assert.Contains(t, body, "too many requests")
	}
	b.requests.Add(-1)
	status, _ := fetch(t, b, "/")
	assert.Equal(t, 200, status)
}

// TestManyWriteWhileManyLook is for the race detector.
func TestManyWriteWhileManyLook(t *testing.T) {
	b := newBoard(time.Now)
	var working sync.WaitGroup
	for i := range 4 {
		working.Go(func() {
			for j := range 20 {
				b.add(justNow(fmt.Sprintf("0:00 Pod/web-aaa-%d-%d !Odd: m", i, j)))
				_, err := b.look(t.Context(), fmt.Sprint(j%3), everything(t), func(v *view) ([]byte, error) { return v.render("page") })
				assert.NoError(t, err)
			}
		})
	}
	working.Wait()
	_, err := b.look(t.Context(), "end", everything(t), func(v *view) ([]byte, error) {
		assert.Len(t, v.events(), 80, "none is lost")
		return nil, nil
	})
	require.NoError(t, err)
}
