// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeevents/kubeeventsreceiver/internal/observation"
)

func TestWhatIsListedIsInTheOrderOfTime(t *testing.T) {
	at := func(name string, hour int) observation.Observation {
		return observation.Observation{Event: &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name}, LastTimestamp: metav1.NewTime(time.Date(2026, 11, 27, hour, 0, 0, 0, time.UTC)),
		}}
	}
	b := &batch{listed: []int{0, 2, 4, 5}, records: []observation.Observation{at("newest", 9), at("watched-late", 8), at("oldest", 1), at("watched-early", 2), at("middle", 5), at("as old", 5)}}
	b.sortListed()
	var names []string
	for _, o := range b.records {
		names = append(names, o.Event.Name)
	}
	assert.Equal(t, []string{"oldest", "watched-late", "middle", "watched-early", "as old", "newest"}, names)
}
