// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"context"
	"sync"
)

// lifecycle lets two pipelines start and shut down the receiver that they share: the first call of
// each counts.
type lifecycle struct {
	start    sync.Once
	startErr error
	stop     sync.Once
	stopErr  error

	cancel context.CancelFunc // nil: not started
	// cancelDrain ends lookups and deliveries that outlast the grace.
	cancelDrain context.CancelFunc
	done        chan struct{} // closed when all work has ended
}
