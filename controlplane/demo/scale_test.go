// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/client-go/rest"
)

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// TestScalingGoesOn when the API server does not answer, and as seldom as a controller may report it.
func TestScalingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Duration
		start := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		config := &rest.Config{Host: "http://api", Transport: transport(func(*http.Request) (*http.Response, error) {
			if asked = append(asked, time.Since(start)); len(asked) == 3 {
				stop()
			}
			return nil, errors.New("connection lost")
		})}
		assert.ErrorIs(t, scaleUpAndDown(ctx, config), context.Canceled)
		assert.Equal(t, []time.Duration{firstScaling, firstScaling + scaleInterval, firstScaling + 2*scaleInterval}, asked)
	})
}
