// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kubeevents/kubeeventsreceiver/controlplane/process"
)

// APIServer is one of the API servers of a control plane. All of them have the same data,
// credentials and certificate.
type APIServer struct {
	cp      *ControlPlane
	number  int
	process *process.Process // nil while it is stopped
}

// APIServers returns the API servers of the control plane.
func (cp *ControlPlane) APIServers() []*APIServer { return slices.Clone(cp.apiServers) }

// StartAPIServer starts the first API server after KillAPIServer, as Start does.
func (cp *ControlPlane) StartAPIServer(ctx context.Context) error { return cp.apiServers[0].Start(ctx) }

// KillAPIServer kills the first API server, as Kill does.
func (cp *ControlPlane) KillAPIServer() error { return cp.apiServers[0].Kill() }

// Address returns the host and port at which the API server listens.
func (s *APIServer) Address() string { return strings.TrimPrefix(s.url(), "https://") }

func (s *APIServer) url() string { return url("https", s.cp.ports.apiServers[s.number]) }

// Start starts the API server after Stop or Kill, with the same port and data. It returns when the
// API server is ready. The arguments take precedence over all others, for this start.
func (s *APIServer) Start(ctx context.Context, arguments ...string) error {
	if err := s.launch(arguments...); err != nil {
		return err
	}
	return s.wait(ctx)
}

func (s *APIServer) launch(arguments ...string) error {
	s.cp.mu.Lock()
	defer s.cp.mu.Unlock()
	if s.process != nil {
		return errors.New("the API server already runs: stop it first")
	}
	log := "kube-apiserver"
	if s.number > 0 {
		log = fmt.Sprintf("kube-apiserver-%d", s.number)
	}
	p, err := process.Start(process.Command{
		Path: s.cp.binary("kube-apiserver"), Args: append(s.cp.apiServerArgs(s.number), arguments...), Log: s.cp.layout.log(log),
		Env: []string{"NO_PROXY=*"}, // an HTTP proxy in the environment cannot reach kubelet
	})
	s.process = p
	return err
}

// wait waits until the API server reports that it is ready.
func (s *APIServer) wait(ctx context.Context) error {
	config := s.cp.RESTConfig()
	config.Host = s.url()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return s.cp.waitUntil(ctx, "the API server to be ready", func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Timeout(time.Second).Do(ctx).Error()
	})
}

// Stop asks the API server to end, as a rolling update does, and returns when it has ended. The
// other programs continue.
func (s *APIServer) Stop() error {
	return s.end(func(p *process.Process) error { return p.Stop(gracePeriod) })
}

// Kill ends the API server as a crash does. The other programs continue.
func (s *APIServer) Kill() error { return s.end((*process.Process).Kill) }

func (s *APIServer) end(end func(*process.Process) error) error {
	s.cp.mu.Lock()
	p := s.process
	s.process = nil
	s.cp.mu.Unlock()
	if p == nil {
		return nil
	}
	return end(p)
}
