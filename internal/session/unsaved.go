// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"time"
)

// unsaved is the persistence without storage: it does nothing.
type unsaved struct{}

func (unsaved) beforeDelivery(*batch)                                 {}
func (unsaved) afterDelivery(*batch)                                  {}
func (unsaved) finish(context.Context)                                {}
func (unsaved) next() (never time.Time, acknowledged <-chan struct{}) { return never, nil }
func (unsaved) saveMeanwhile(context.Context)                         {}
func (unsaved) close()                                                {}
