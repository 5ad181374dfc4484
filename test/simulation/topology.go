// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"time"
)

// Topology is how an environment differs from one API server and one receiver in two pipelines
// whose processors change nothing. The zero value is that environment.
type Topology struct {
	Signals        Signals
	EventBookmarks bool // watches of events have bookmarks
	// SlowStart is how long the elector runs before the receivers start: it may lead by then. SlowStop
	// is how long another component takes to stop, for which the elector waits before it calls them.
	SlowStart, SlowStop time.Duration
}

// Signals are the pipelines that name the receiver.
type Signals string

// The pipelines.
const (
	BothSignals Signals = ""
	OnlyLogs    Signals = "only logs"
	OnlyMetrics Signals = "only metrics"
)

// RetryPlan is retry_on_failure; zero: the default.
type RetryPlan struct {
	Disabled                         bool
	Initial, MaxInterval, MaxElapsed time.Duration
}

// givesUp reports whether records may be dropped that the pipeline rejects with a retryable error.
func (r RetryPlan) givesUp() bool { return r.Disabled || r.MaxElapsed > 0 }

func (r RetryPlan) settings() map[string]any {
	set := map[string]any{"enabled": !r.Disabled, "max_elapsed_time": r.MaxElapsed.String()}
	if r.Initial > 0 {
		set["initial_interval"] = r.Initial.String()
	}
	if r.MaxInterval > 0 {
		set["max_interval"] = r.MaxInterval.String()
	}
	return set
}

// addTopology draws each part with a source of its own: most environments have none of them.
func (p *Plan) addTopology() {
	p.addPipelines()
	p.EventBookmarks = chance(draw(p.Seed, "bookmarks", 0), 4)
	p.addBlip()
	p.addLaggingStream()
	p.addHangingMetrics()
	p.addSlowList()
	p.lastUntilFaultsEnd()
}

func (p *Plan) addPipelines() {
	r := draw(p.Seed, "pipelines", 0)
	if chance(r, 8) {
		p.Signals = oneOf(r, OnlyLogs, OnlyMetrics)
	}
	if chance(r, 6) {
		p.Retry = randomRetry(r)
	}
	if p.Signals == OnlyMetrics {
		p.Exporters = 0
		p.drop(func(f Fault) bool { return f.Kind.isOfPipelines() })
	}
}

func randomRetry(r *rand.Rand) RetryPlan {
	return RetryPlan{
		Disabled:    chance(r, 3),
		Initial:     oneOf(r, 0, 50*time.Millisecond, 20*time.Second),
		MaxInterval: oneOf(r, 20*time.Second, 40*time.Second),
		MaxElapsed:  oneOf(r, 0, 0, between(r, time.Second, time.Minute)),
	}
}

// addHangingMetrics lets the metrics pipeline hang, perhaps at the shutdown, too.
func (p *Plan) addHangingMetrics() {
	r := draw(p.Seed, "metrics hang", 0)
	if p.Signals == OnlyLogs || !chance(r, 8) {
		return
	}
	from := between(r, calm, p.Active)
	p.Faults = append(p.Faults, Fault{
		Kind: MetricsHangs, Replica: everyone, From: from,
		To: oneOf(r, forever, from+between(r, time.Second, time.Minute)),
	})
}

// addBlip lets storage fail, and work again within one shutdown.
func (p *Plan) addBlip() {
	r := draw(p.Seed, "blip", 0)
	if !p.Storage || !chance(r, 6) {
		return
	}
	at, replica := between(r, calm, p.Active), r.IntN(p.Replicas)
	begins := at + between(r, -2*time.Second, 500*time.Millisecond)
	p.Faults = append(p.Faults,
		Fault{
			Kind: oneOf(r, StorageUnwritable, StorageUnwritable, StorageAnswerLost),
			From: begins, To: at + between(r, 500*time.Millisecond, 5*time.Second), Replica: replica,
		},
		Fault{Kind: Restarted, Replica: replica, From: at, To: at + between(r, 0, 10*time.Second)})
}

// addLaggingStream lets the stream of one namespace be behind the other one's when the process dies.
func (p *Plan) addLaggingStream() {
	r := draw(p.Seed, "lagging stream", 0)
	if len(p.Watched) == 0 || !chance(r, 2) {
		return
	}
	at, lasts := between(r, calm, p.Active), between(r, 2*time.Second, 30*time.Second)
	p.Faults = append(p.Faults,
		Fault{
			Kind: APIRefuses, Resource: "events", Namespace: oneOf(r, p.Watched...), Status: 503,
			From: at, To: at + lasts, Replica: everyone,
		},
		Fault{Kind: ConnectionsCut, From: at, To: at, Replica: everyone},
		Fault{
			Kind: Killed, Replica: r.IntN(p.Replicas), From: at + between(r, 0, lasts),
			To: at + lasts + time.Second,
		})
}

// addSlowList lets replicas list many new events, so slowly that the leader delivers some of them and
// notes its progress before the list ends.
func (p *Plan) addSlowList() {
	r := draw(p.Seed, "slow list", 0)
	if !p.Elector || p.Namespaces > fewNamespaces || !chance(r, 4) {
		return
	}
	at := between(r, calm, p.Active)
	listed := at + 10*time.Second
	p.Faults = append(p.Faults,
		Fault{Kind: APIRefuses, Resource: "events", Status: 503, From: at, To: listed, Replica: everyone},
		Fault{Kind: ConnectionsCut, From: at, To: at, Replica: everyone},
		Fault{Kind: Compaction, From: listed - time.Second, To: listed - time.Second, Replica: everyone},
		Fault{Kind: SlowNetwork, Delay: between(r, 5*time.Millisecond, 20*time.Millisecond), From: listed, To: at + time.Minute, Replica: everyone})
	for _, app := range []int{0, len(p.Apps) - 1} { // Lists have another order than versions.
		p.Producers = append(p.Producers, ProducerPlan{
			Style: HandMade, App: app, Start: at, Gap: 10 * time.Millisecond, Writes: 150, Reason: "Storm", Type: "Warning",
		})
	}
}
