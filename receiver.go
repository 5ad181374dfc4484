// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"go.opentelemetry.io/collector/receiver"

	"github.com/kubeevents/kubeeventsreceiver/internal/election"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/session"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// eventsReceiver watches events and emits them as logs and as a metric. One serves both pipelines
// of a configuration. It has what lasts as long as the process; a session has the rest.
type eventsReceiver struct {
	session.Process

	config   *Config
	settings receiver.Settings
	life     lifecycle

	extractor *extract.Extractor
	resolver  *resolver.Resolver // nil: owners are not looked up

	electorConfig election.ElectorConfig
	lease         *election.Lease // nil: it is not known which lease the leader is elected by
}
