// SPDX-License-Identifier: Apache-2.0

package incidentsconnector

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/kubeevents/kubeeventsreceiver/distribution/internal/record"
	"github.com/kubeevents/kubeeventsreceiver/internal/userconfig"
)

// Config is the configuration of the connector.
type Config struct {
	// IdleTimeout is the time that a rollout that is not complete waits for news. After it, its
	// spans are delivered, as incomplete.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`

	// SettleTime is the time that a part of a trace waits for news after it is over.
	SettleTime time.Duration `mapstructure:"settle_time"`

	// MaxRollouts bounds the memory: 64 KiB for each. Beyond it, the connector forgets revisions of the namespace
	// that takes the most: first one that was delivered, and had no news for the longest time.
	MaxRollouts int `mapstructure:"max_rollouts"`

	// Stamp passes the records to the connector's output of logs, with trace ids, in addition to problems and changes.
	Stamp bool `mapstructure:"stamp"`

	// HarmlessReasons are those of warnings that are no failure, in addition to the known ones.
	HarmlessReasons []string `mapstructure:"harmless_reasons"`

	// Storage is the storage extension that rollouts, problems and changes are saved with. Empty: a restart forgets them.
	Storage *component.ID `mapstructure:"storage"`

	// prevent unkeyed literal initialization
	_ struct{}
}

func createDefaultConfig() component.Config {
	return &Config{IdleTimeout: 5 * time.Minute, SettleTime: 10 * time.Second, MaxRollouts: 1000}
}

// Unmarshal reads the configuration. Each error has the key, the value and the fix.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return userconfig.Unmarshal(conf, c, nil) }

// Validate reports settings that cannot work. Each error names the key, the value and the fix.
func (c *Config) Validate() error {
	var errs []error
	if c.IdleTimeout < time.Millisecond {
		errs = append(errs, fmt.Errorf("idle_timeout: %v is below 1ms; set a duration such as 5m", c.IdleTimeout))
	}
	if c.SettleTime != 0 && c.SettleTime < time.Millisecond {
		errs = append(errs, fmt.Errorf("settle_time: %v is below 1ms; set a duration such as 10s, or 0s", c.SettleTime))
	}
	if c.SettleTime > c.IdleTimeout {
		errs = append(errs, fmt.Errorf("settle_time: %v is longer than idle_timeout, which is %v; set a shorter settle_time, or a longer idle_timeout", c.SettleTime, c.IdleTimeout))
	}
	if c.MaxRollouts < 1 {
		errs = append(errs, fmt.Errorf("max_rollouts: %d must be 1 or more; set a number such as 1000", c.MaxRollouts))
	}
	return errors.Join(append(errs, record.CheckHarmless(c.HarmlessReasons))...)
}
