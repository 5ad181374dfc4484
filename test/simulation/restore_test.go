// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// counts writes an event's counts into a server: 2 exist before the first list, 5 are in the
// backup, 8 when it is restored. Then the counts of the moments since follow.
func counts(t *testing.T, kind FaultKind, since map[time.Duration]int32) (least, most int64) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnvironment(plain(storageAlone), Scenario{})
		name := types.NamespacedName{Namespace: namespace(0), Name: counted}
		write := func(count int32) {
			ev := &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
				Count:      count, Type: "Warning",
			}
			_, err := e.server.Update(events, ev)
			if err != nil {
				_, err = e.server.Create(events, ev)
			}
			require.NoError(t, err)
		}
		write(2)
		list := listing{version: e.server.Version()}
		p := &process{replica: e.replicas[0], number: 1, started: time.Now(), observes: time.Now(),
			lists: map[string]lists{"": {begun: list, complete: list}}}
		e.addProcess(p)
		time.Sleep(time.Minute)
		write(5)
		backup := e.server.Backup()
		write(8)
		time.Sleep(time.Minute)
		e.begin(&Fault{Kind: kind}, backup)
		restored := time.Now()
		for _, at := range []time.Duration{10, 60, 90} {
			if count := since[at]; count > 0 {
				time.Sleep(time.Until(restored.Add(at * time.Second)))
				write(count)
			}
		}
		of := func(least bool) int64 {
			from, _ := e.baselines()
			return e.ideal(from, least)[name].totalOrZero()
		}
		least, most = of(true), of(false)
	})
	return least, most
}

func TestWhatIsNewAfterARestore(t *testing.T) {
	// Until the restore, 6 are new.
	for name, tt := range map[string]struct {
		kind        FaultKind
		since       map[time.Duration]int32
		least, most int64
	}{
		"nothing new":              {BackupRestored, nil, 6, 6},
		"below what is remembered": {BackupRestored, map[time.Duration]int32{10: 6, 60: 7, 90: 9}, 6 + 2, 6 + 4},
		"above what is remembered": {BackupRestored, map[time.Duration]int32{10: 10, 90: 11}, 6 + 3, 6 + 6},
		"long after":               {BackupRestored, map[time.Duration]int32{90: 9}, 6 + 4, 6 + 4},
		"another cluster":          {ClusterNew, map[time.Duration]int32{10: 3, 90: 4}, 6 + 1, 6 + 4},
		"another cluster, later":   {ClusterNew, map[time.Duration]int32{90: 4}, 6 + 4, 6 + 4},
	} {
		t.Run(name, func(t *testing.T) {
			least, most := counts(t, tt.kind, tt.since)
			assert.Equal(t, []int64{tt.least, tt.most}, []int64{least, most})
		})
	}
}
