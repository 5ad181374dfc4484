// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeevents/kubeeventsreceiver/controlplane"
	"github.com/kubeevents/kubeeventsreceiver/e2e/internal/promtext"
)

// tokenSeconds is how long the tokens of the soak are valid: the shortest time that Kubernetes allows.
// The API server extends the usual tokens to a year, so with those no test would see one expire.
const tokenSeconds = 600

// TestSoak runs for the time in SOAK, such as 1h. One replica with a volume runs all the time, with
// everything on that the chart has, and with tokens that expire, while the API server and the kubelet
// are killed. Of two replicas, one after the other is killed and replaced. At the end, nothing is lost, and the process that ran all the time
// has not restarted.
func TestSoak(t *testing.T) {
	if os.Getenv("SOAK") == "" {
		t.Skip("make soak runs it")
	}
	duration, err := time.ParseDuration(os.Getenv("SOAK"))
	require.NoError(t, err)
	// No event may expire before it is counted.
	c := start(t, controlplane.Options{EventTTL: 2*duration + time.Hour})
	require.NoError(t, c.node.ImportImage(t.Context(), builtImage(t)))
	steady, replicas := c.newRelease(t, "steady", withVolume), c.newRelease(t, "replicas", withReplicas)
	steady.everythingOn()
	steady.profiles()
	for _, r := range []*release{steady, replicas} {
		r.usesShortTokens()
		r.install(t)
	}
	expiring := c.shortToken(t, steady)
	require.NoError(t, c.asks(expiring))

	f := c.newTraffic(t, steady, replicas)
	f.begin(t)
	f.passes(t)
	s := &soak{release: steady, uid: string(steady.pods(t, steady.name)[0].UID)}
	s.run(t, duration, []func(){
		func() { f.passes(t) },
		func() { c.restartAPIServer(t) },
		func() { replicas.killLeader(t) },
		func() { require.NoError(t, c.node.KillKubelet()) },
		func() { replicas.rollOut(t) },
	}, f)
	f.conclude(t, "the API server, the kubelet and the leader's pod killed, and rolling updates, every few minutes")
	s.check(t)
	if duration > tokenSeconds*time.Second {
		assert.True(t, apierrors.IsUnauthorized(c.asks(expiring)), "a token of the beginning has expired")
	}
	c.write(t, "soak", fmt.Sprintf("%s It took %s, with tokens of service accounts that\nexpire after %d s. "+
		"The process of the single replica had at most %.0f MiB of memory (RSS) in the first tenth of the time, and %.0f\nMiB in the last; "+
		"at most %d goroutines in the first, and %d in the last. It reported %d problems and %d changes.",
		c.environment(t), duration, tokenSeconds, s.first().memory, s.last().memory, s.first().goroutines, s.last().goroutines,
		steady.distinct("k8s.problem.id"), steady.distinct("k8s.change.id")))
}

// usesShortTokens mounts a token that expires soon, where kubelet otherwise mounts the usual one.
func (r *release) usesShortTokens() {
	const directory = "/var/run/secrets/kubernetes.io/serviceaccount"
	r.values["extraVolumes"] = []any{values{"name": "account", "projected": values{"sources": []any{
		values{"serviceAccountToken": values{"path": "token", "expirationSeconds": tokenSeconds}},
		values{"configMap": values{"name": "kube-root-ca.crt", "items": []any{values{"key": "ca.crt", "path": "ca.crt"}}}},
		values{"downwardAPI": values{"items": []any{values{"path": "namespace", "fieldRef": values{"fieldPath": "metadata.namespace"}}}}},
	}}}}
	r.values["extraVolumeMounts"] = []any{values{"name": "account", "mountPath": directory, "readOnly": true}}
}

// everythingOn enables what the chart leaves out by default, and what its records can say.
func (r *release) everythingOn() {
	for _, part := range []string{"page", "problems", "rollouts", "prometheus"} {
		r.values[part] = values{"enabled": true}
	}
	r.values["details"] = values{"configMaps": true}
}

// distinct counts the values that an attribute has in the release's records.
func (r *release) distinct(attribute string) int {
	known := map[any]bool{}
	for _, record := range r.backend.Records("k8s.cluster.name", r.name) {
		if value := record.Get(attribute); value != nil {
			known[value] = true
		}
	}
	return len(known)
}

// profiles adds the extension that knows how many goroutines there are.
func (r *release) profiles() {
	config := r.values["config"].(values)
	config["extensions"] = values{"pprof": values{"endpoint": "127.0.0.1:1777"}}
	config["service"] = values{"extensions": []string{"health_check", "health_check/ready", "file_storage", "kube_events_status", "pprof"}}
}

// shortToken is a token like those of the release, that nobody renews.
func (c *cluster) shortToken(t *testing.T, r *release) string {
	t.Helper()
	seconds := int64(tokenSeconds)
	token, err := c.CoreV1().ServiceAccounts(r.name).CreateToken(t.Context(), r.name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return token.Status.Token
}

// asks asks the API server with a token for what its account may read.
func (c *cluster) asks(token string) error {
	config := c.RESTConfig()
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return client.CoreV1().RESTClient().Get().AbsPath("/api/v1/events").Param("limit", "1").Do(context.Background()).Error()
}

// soak observes the process of a release.
type soak struct {
	*release

	uid     string // of the pod
	samples []sample
}

// sample is what a process needs at a moment.
type sample struct {
	memory     float64 // MiB
	goroutines int
}

// run makes one fault after the other happen, and takes samples, until the time is over.
func (s *soak) run(t *testing.T, duration time.Duration, faults []func(), f *traffic) {
	t.Helper()
	pause := time.NewTicker(min(time.Minute, duration/20))
	defer pause.Stop()
	for begin, i := time.Now(), 0; time.Since(begin) < duration; i++ {
		faults[i%len(faults)]()
		f.passes(t)
		s.samples = append(s.samples, s.measure(t))
		t.Logf("after %s: %d occurrences, %+v", time.Since(begin).Round(time.Second), f.load.Total(), s.samples[i])
		<-pause.C
	}
}

// goroutines finds their number in a profile.
var goroutines = regexp.MustCompile(`goroutine profile: total (\d+)`)

func (s *soak) measure(t *testing.T) (result sample) {
	t.Helper()
	pod := &s.pods(t, s.name)[0]
	metrics, err := promtext.Parse([]byte(s.awaitPage(t, pod, 8888, "/metrics", http.StatusOK)))
	require.NoError(t, err)
	result.memory = cmp.Or(metrics.Sum("otelcol_process_memory_rss"), metrics.Sum("otelcol_process_memory_rss_bytes")) / (1 << 20)
	require.Positive(t, result.memory)
	found := goroutines.FindStringSubmatch(s.awaitPage(t, pod, 1777, "/debug/pprof/goroutine?debug=1", http.StatusOK, "total"))
	require.NotNil(t, found)
	result.goroutines, err = strconv.Atoi(found[1])
	require.NoError(t, err)
	return result
}

// first is the most of the first tenth of the samples, and last of the last tenth.
func (s *soak) first() sample { return most(s.samples[:max(1, len(s.samples)/10)]) }
func (s *soak) last() sample  { return most(s.samples[len(s.samples)-max(1, len(s.samples)/10):]) }

func most(samples []sample) (result sample) {
	for _, one := range samples {
		result.memory, result.goroutines = max(result.memory, one.memory), max(result.goroutines, one.goroutines)
	}
	return result
}

// check checks that the process has run all the time, and needs at most half of the chart's limit. The problems and the
// page remember an hour, and no event expires, so it cannot need as much as at the beginning.
func (s *soak) check(t *testing.T) {
	t.Helper()
	pods := s.pods(t, s.name)
	require.Len(t, pods, 1)
	assert.Equal(t, s.uid, string(pods[0].UID), "the same pod")
	assert.Zero(t, pods[0].Status.ContainerStatuses[0].RestartCount)
	t.Logf("memory and goroutines at the beginning %+v, and at the end %+v", s.first(), s.last())
	assert.Less(t, s.last().memory, 256.0)
	assert.Less(t, s.last().goroutines, s.first().goroutines+20)
	t.Logf("problems: %d, changes: %d", s.distinct("k8s.problem.id"), s.distinct("k8s.change.id"))
	assert.Positive(t, s.distinct("k8s.problem.id"), "everything is on")
}
