// SPDX-License-Identifier: Apache-2.0

package election

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

type authType string

type apiConfig struct {
	AuthType authType
	Context  string
}

type fullConfig struct {
	apiConfig
	LeaseNamespace, LeaseName                 string
	LeaseDuration, RenewDuration, RetryPeriod time.Duration
}

type sharedConfig struct {
	*apiConfig
	LeaseName     int
	LeaseDuration string
	RenewDuration time.Duration
}

type extension[C any] struct{ config C }

func TestTheConfigurationOfTheElectorIsRead(t *testing.T) {
	full := fullConfig{apiConfig{"kubeConfig", "prod"}, "observability", "my-lease", 30 * time.Second, 20 * time.Second, time.Second}
	want := ElectorConfig{"observability", "my-lease", "kubeConfig", "prod", 30 * time.Second, 20 * time.Second}
	defaults := ElectorConfig{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second}
	for name, tt := range map[string]struct {
		extension any
		want      ElectorConfig
	}{
		"pointers":                       {&extension[*fullConfig]{&full}, want},
		"values":                         {extension[fullConfig]{full}, want},
		"nil":                            {nil, defaults},
		"a nil extension":                {(*extension[*fullConfig])(nil), defaults},
		"a nil configuration":            {&extension[*fullConfig]{}, defaults},
		"no configuration":               {struct{}{}, defaults},
		"no struct":                      {7, defaults},
		"the configuration is no struct": {extension[string]{"x"}, defaults},
		"an empty configuration":         {&extension[*fullConfig]{&fullConfig{}}, defaults},
		"fields of other kinds, and an embedded pointer that is nil": {&extension[*sharedConfig]{&sharedConfig{RenewDuration: -1}}, defaults},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tt.want, ElectorConfigOf(tt.extension)) })
	}
}
