// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter/exportertest"
)

// vote is an elector that a test decides.
type vote struct {
	component.StartFunc
	component.ShutdownFunc

	started func(context.Context)
	stopped func()
}

func (v *vote) SetCallBackFuncs(started func(context.Context), stopped func()) {
	v.started, v.stopped = started, stopped
}

type extensions map[component.ID]component.Component

func (e extensions) GetExtensions() map[component.ID]component.Component { return e }

// startElected starts an exporter that follows an elector of this name.
func startElected(t *testing.T, host extensions) (e *pageExporter, err error) {
	t.Helper()
	factory := NewFactory()
	config := factory.CreateDefaultConfig().(*Config)
	config.Server.NetAddr.Endpoint = "127.0.0.1:0"
	id := component.MustNewID("vote")
	config.LeaderElector = &id
	made, err := factory.CreateLogs(t.Context(), exportertest.NewNopSettings(factory.Type()), config)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, made.Shutdown(context.Background())) })
	return made.(*pageExporter), made.Start(t.Context(), host)
}

func TestAStandbySaysThatItHasNoEvents(t *testing.T) {
	v := &vote{}
	e, err := startElected(t, extensions{component.MustNewID("vote"): v})
	require.NoError(t, err)
	const banner = "This replica is a standby"
	page := func() string {
		text, _ := get(t, "http://"+e.address.String())
		return text
	}
	assert.Contains(t, page(), banner)
	v.started(t.Context())
	assert.NotContains(t, page(), banner)
	v.stopped()
	assert.Contains(t, page(), banner)
	ended, end := context.WithCancel(t.Context())
	end()
	v.started(ended)
	assert.Contains(t, page(), banner, "the term has ended")
}

func TestAnElectorThatDoesNotElect(t *testing.T) {
	for name, host := range map[string]extensions{
		"add it to extensions":    {},
		"is not a leader elector": {component.MustNewID("vote"): struct{ component.Component }{}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := startElected(t, host)
			assert.ErrorContains(t, err, name)
			assert.ErrorContains(t, err, `"vote"`)
		})
	}
}
