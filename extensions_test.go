// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver_test

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
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
			cfg := harness.ConfigFor(t, api, "")
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

func TestAnErrorOfTheStorageHasTheFixOfItsCause(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"a full disk":             {&fs.PathError{Op: "write", Path: "/var/db", Err: syscall.ENOSPC}, "no space left on device; free disk space"},
		"a missing permission":    {&fs.PathError{Op: "open", Path: "/var/db", Err: syscall.EACCES}, "permission denied; make its directory and files writable"},
		"a read-only file system": {&fs.PathError{Op: "open", Path: "/var/db", Err: syscall.EROFS}, "make its directory and files writable"},
		"a missing directory":     {&fs.PathError{Op: "open", Path: "/var/db", Err: syscall.ENOENT}, "create its directory"},
		"a locked file":           {errors.New("timeout"), "timeout; give each Collector its own directory"},
		"a damaged file":          {errors.New("invalid database"), "invalid database; if a file in its directory is damaged, remove the file"},
	} {
		cfg := harness.ConfigFor(t, apitest.New(t), "")
		id := component.MustNewID("disk")
		cfg.Storage = &id
		r, err := kubeeventsreceiver.NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		require.NoError(t, err)
		extensions := map[component.ID]component.Component{id: brokenStorage{noStorage{}, tt.err}}
		err = r.Start(t.Context(), &harness.Host{Extensions: extensions})
		require.ErrorContains(t, err, `storage: "disk" cannot be opened: `, name)
		require.ErrorContains(t, err, tt.want, name)
		require.NoError(t, r.Shutdown(t.Context()))
	}
}

// brokenStorage is a storage extension that cannot open its file.
type brokenStorage struct {
	noStorage
	err error
}

func (s brokenStorage) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return nil, s.err
}

type noStorage struct {
	component.StartFunc
	component.ShutdownFunc
}

func TestALeaderElectorThatIsNotThere(t *testing.T) {
	api := apitest.New(t)
	extensions := map[component.ID]component.Component{component.MustNewID("disk"): harness.NewDisk()}
	for id, want := range map[string]string{
		"gone": `k8s_leader_elector: "gone" is not among the extensions that run; add it`,
		"disk": `k8s_leader_elector: "disk" is not a leader elector`,
	} {
		cfg := harness.ConfigFor(t, api, "")
		elector := component.MustNewID(id)
		cfg.LeaderElector, cfg.ProgressConfigMap = &elector, "ns/progress"
		r, err := kubeeventsreceiver.NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.ErrorContains(t, r.Start(t.Context(), &harness.Host{Extensions: extensions}), want)
		require.NoError(t, r.Shutdown(t.Context()))
	}
}

func TestEachReceiverOfAnElectorHasItsOwnProgress(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.NewReplica(t, api, nil, "")
		cfg := harness.ConfigFor(t, api, "")
		elector := component.MustNewID("vote")
		cfg.LeaderElector, cfg.ProgressConfigMap = &elector, harness.ProgressNamespace+"/"+harness.ProgressName
		r, err := kubeeventsreceiver.NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.ErrorContains(t, r.Start(t.Context(), p.Host),
			`progress_config_map: "observability/kube-events-progress" is also that of another receiver of k8s_leader_elector: "vote"; give each receiver its own`)
		require.NoError(t, r.Shutdown(t.Context()))
	})
}

// The ID of a receiver may have letters that Kubernetes does not allow in names.
func TestTheDefaultOfTheProgressMustBeAName(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		p := harness.NewReplica(t, api, nil, "")
		for name, want := range map[string]string{
			"Prod_1/b": "", "Köln": `progress_config_map: its default "default/kube-events-leader-kube-events.köln"`, "a:b": "cannot be the name of a ConfigMap; write NAMESPACE/NAME",
		} {
			cfg := harness.ConfigFor(t, api, "")
			elector := component.MustNewID("vote")
			cfg.LeaderElector = &elector
			settings := receivertest.NewNopSettings(metadata.Type)
			settings.ID = component.NewIDWithName(metadata.Type, name)
			r, err := kubeeventsreceiver.NewFactory().CreateLogs(t.Context(), settings, cfg, consumertest.NewNop())
			require.NoError(t, err)
			if err := r.Start(t.Context(), p.Host); want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want)
			}
			require.NoError(t, r.Shutdown(t.Context()))
		}
	})
}

// hangingDisk is a storage whose calls of one kind do not return, whatever their context says.
type hangingDisk struct {
	*harness.Disk
	call     string
	released chan struct{}
}

func (d *hangingDisk) wait(call string) {
	if call == d.call {
		<-d.released
	}
}

func (d *hangingDisk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}

func (d *hangingDisk) Get(ctx context.Context, key string) ([]byte, error) {
	d.wait("get")
	return d.Disk.Get(ctx, key)
}

func (d *hangingDisk) Set(ctx context.Context, key string, value []byte) error {
	d.wait("set")
	return d.Disk.Set(ctx, key, value)
}

func (d *hangingDisk) Close(context.Context) error {
	d.wait("close")
	return nil
}

// Exporters are shut down later, and must not wait for it.
func TestShutdownDoesNotWaitForStorageThatHangs(t *testing.T) {
	for _, call := range []string{"get", "set", "close"} {
		t.Run(call, func(t *testing.T) {
			harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
				released := make(chan struct{})
				defer close(released)
				id := component.MustNewID("disk")
				host := &harness.Host{Extensions: map[component.ID]component.Component{id: &hangingDisk{harness.NewDisk(), call, released}}}
				cfg := harness.ConfigFor(t, api, "start_at: beginning")
				cfg.Storage = &id
				r, err := kubeeventsreceiver.NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, &harness.Pipeline{})
				require.NoError(t, err)
				require.NoError(t, r.Start(t.Context(), host))
				api.Put(harness.Event("a", 1))
				harness.Settle()
				began := time.Now()
				_ = r.Shutdown(context.Background())
				assert.Less(t, time.Since(began), 20*time.Second)
			})
		})
	}
}

func TestStorageThatHangsChangesNothingButTheStatus(t *testing.T) {
	harness.InBubble(t, func(t *testing.T, api *apitest.Server) {
		released := make(chan struct{})
		id := component.MustNewID("disk")
		host := &harness.Host{Extensions: map[component.ID]component.Component{id: &hangingDisk{harness.NewDisk(), "set", released}}}
		cfg := harness.ConfigFor(t, api, "start_at: beginning")
		cfg.Storage = &id
		logs := &harness.Pipeline{}
		r, err := kubeeventsreceiver.NewFactory().CreateLogs(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, logs)
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), host))
		for n := range int32(10) {
			api.Put(harness.Event("a", n+1))
			harness.Settle()
			assert.Len(t, logs.Names(), int(n+1))
		}
		_, text := host.Status()
		assert.Contains(t, text, "storage")
		close(released)
		harness.Settle()
		assert.False(t, host.Fails())
		require.NoError(t, r.Shutdown(context.Background()))
	})
}
