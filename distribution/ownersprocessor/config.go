// SPDX-License-Identifier: Apache-2.0

package ownersprocessor

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/kubeevents/kubeeventsreceiver/distribution/ownersprocessor/internal/metadata"
	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/kubeclient"
	"github.com/kubeevents/kubeeventsreceiver/internal/owners"
	"github.com/kubeevents/kubeeventsreceiver/internal/semconv"
	"github.com/kubeevents/kubeeventsreceiver/internal/userconfig"
)

// Config is the configuration of the processor. All options but Wait are those of the receiver kube_events.
type Config struct {
	// Auth is how the processor finds the API server, and how much it asks of it.
	Auth kubeclient.Auth `mapstructure:",squash"`

	// Wait is how long data waits at most for what is not known of its resources.
	Wait time.Duration `mapstructure:"wait"`

	// Owners bounds the lookups. LookupTimeout is the time for which one goes on in the background.
	Owners owners.Config `mapstructure:"owners"`

	// Extract has the labels and annotations that become attributes.
	Extract extract.Config `mapstructure:"extract"`

	// ResourceAttributes switches attributes of the workload and of the direct owner on and off.
	ResourceAttributes metadata.ResourceAttributesConfig `mapstructure:"resource_attributes"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func createDefaultConfig() component.Config {
	lookups := owners.DefaultConfig()
	lookups.LookupTimeout = 10 * time.Second // No data waits for it.
	return &Config{
		Auth:               kubeclient.Auth{Type: kubeclient.AuthServiceAccount, QPS: -1, Burst: 100},
		Wait:               200 * time.Millisecond,
		Owners:             lookups,
		Extract:            extract.Config{Labels: extract.DefaultLabels()},
		ResourceAttributes: metadata.DefaultResourceAttributesConfig(),
	}
}

// Unmarshal reads the configuration. Each error has the key, the value and the fix.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return userconfig.Unmarshal(conf, c, nil) }

// Validate reports settings that cannot work. Each error names the key, the value and the fix.
func (c *Config) Validate() error {
	_, errExtract := c.Extract.CompileWithoutEvents()
	return errors.Join(
		c.Auth.Check(),
		userconfig.ZeroOrAbove("wait", c.Wait, "200ms, or 0s to wait for nothing"),
		c.validateOwners(),
		errExtract,
	)
}

func (c *Config) validateOwners() error {
	errs := c.Owners.Check()
	if !c.Owners.Enabled {
		errs = errors.Join(errs, errors.New("owners.enabled: false would leave nothing to do; remove it, or remove the processor from its pipelines"))
	}
	if c.Wait > c.Owners.LookupTimeout {
		errs = errors.Join(errs, fmt.Errorf("wait: %v is longer than owners.lookup_timeout, which is %v; set a shorter wait, or a longer owners.lookup_timeout", c.Wait, c.Owners.LookupTimeout))
	}
	return errs
}

// disabled returns the resource attributes that are switched off.
func (c *Config) disabled() semconv.Disabled {
	all := c.ResourceAttributes
	return semconv.Disabled{
		"k8s.owner.api_version":    !all.K8sOwnerAPIVersion.Enabled,
		"k8s.owner.chain":          !all.K8sOwnerChain.Enabled,
		"k8s.owner.kind":           !all.K8sOwnerKind.Enabled,
		"k8s.owner.name":           !all.K8sOwnerName.Enabled,
		"k8s.owner.uid":            !all.K8sOwnerUID.Enabled,
		"k8s.workload.api_version": !all.K8sWorkloadAPIVersion.Enabled,
		"k8s.workload.kind":        !all.K8sWorkloadKind.Enabled,
		"k8s.workload.name":        !all.K8sWorkloadName.Enabled,
		"k8s.workload.uid":         !all.K8sWorkloadUID.Enabled,
	}
}
