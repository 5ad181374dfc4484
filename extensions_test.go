// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/kubeevents/kubeeventsreceiver"
	"github.com/kubeevents/kubeeventsreceiver/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/test/apitest"
	"github.com/kubeevents/kubeeventsreceiver/test/harness"
)

func TestStorageThatIsNotThere(t *testing.T) {
	api := apitest.New(t)
	for name, tt := range map[string]struct {
		id, want string
		on       component.Component
	}{
		"a missing extension":     {"gone", `storage: "gone" is not among the extensions that run; add it`, harness.NewDisk()},
		"not a storage extension": {"disk", `storage: "disk" is not a storage extension`, &noStorage{}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := harness.ConfigFor(t, api.URL, "")
			id := component.MustNewID(tt.id)
			cfg.Storage = &id
			r, err := kubeeventsreceiver.NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
			require.NoError(t, err)
			extensions := map[component.ID]component.Component{component.MustNewID("disk"): tt.on}
			require.ErrorContains(t, r.Start(t.Context(), &harness.Host{Extensions: extensions}), tt.want)
			require.NoError(t, r.Shutdown(t.Context()))
		})
	}
}

type noStorage struct {
	component.StartFunc
	component.ShutdownFunc
}

func TestALeaderElectorThatIsNotThere(t *testing.T) {
	api := apitest.New(t)
	extensions := map[component.ID]component.Component{component.MustNewID("vote"): &harness.Elector{}, component.MustNewID("disk"): harness.NewDisk()}
	for id, want := range map[string]string{
		"gone": `k8s_leader_elector: "gone" is not among the extensions that run; add it`,
		"disk": `k8s_leader_elector: "disk" is not a leader elector`,
		"vote": `k8s_leader_elector: "vote" does not say which Lease it uses`,
	} {
		cfg := harness.ConfigFor(t, api.URL, "")
		elector := component.MustNewID(id)
		cfg.LeaderElector = &elector
		r, err := kubeeventsreceiver.NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.ErrorContains(t, r.Start(t.Context(), &harness.Host{Extensions: extensions}), want)
		require.NoError(t, r.Shutdown(t.Context()))
	}
}
