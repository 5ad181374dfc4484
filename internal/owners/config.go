// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/extract"
	"github.com/kubeevents/kubeeventsreceiver/internal/text"
	"github.com/kubeevents/kubeeventsreceiver/internal/userconfig"
	"github.com/kubeevents/kubeeventsreceiver/resolver"
)

// Config configures the lookup of owner chains. The processor kube_owners has the same options.
type Config struct {
	// Enabled turns owner lookups on. Default: true.
	Enabled bool `mapstructure:"enabled"`
	// MaxDepth is the maximum number of owners above the involved object. Default: 10.
	MaxDepth int `mapstructure:"max_depth"`
	// LookupTimeout limits the time that an event waits for its owners. Default: 2s.
	LookupTimeout time.Duration `mapstructure:"lookup_timeout"`
	// CacheSize is the maximum number of objects in the cache. Default: 100000.
	CacheSize int `mapstructure:"cache_size"`
	// CacheTTL is the time after which the next use of an object reads it again, and for which a
	// deleted object stays known after its last use. Default: 10m.
	CacheTTL time.Duration `mapstructure:"cache_ttl"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	lookups := resolver.DefaultSettings()
	return Config{
		Enabled:       true,
		MaxDepth:      lookups.MaxDepth,
		LookupTimeout: lookups.LookupTimeout,
		CacheSize:     lookups.CacheSize,
		CacheTTL:      lookups.CacheTTL,
	}
}

// Check returns what is wrong with each value, and the fix.
func (c Config) Check() error {
	return errors.Join(
		userconfig.Within("owners.max_depth", c.MaxDepth, 100),
		userconfig.Above0("owners.lookup_timeout", c.LookupTimeout, "2s"),
		userconfig.Within("owners.cache_size", c.CacheSize, 10_000_000),
		userconfig.Above0("owners.cache_ttl", c.CacheTTL, "10m"),
	)
}

// NewResolver returns a resolver that keeps what the rules extract. If the account may only list single
// namespaces, no list is of the whole cluster.
func (c Config) NewResolver(api *rest.Config, extractor *extract.Extractor, namespacesOnly bool, observer resolver.Observer) (*resolver.Resolver, error) {
	return resolver.New(api, resolver.Settings{
		MaxDepth:           c.MaxDepth,
		LookupTimeout:      c.LookupTimeout,
		CacheSize:          c.CacheSize,
		CacheTTL:           c.CacheTTL,
		ListNamespacesOnly: namespacesOnly,
		Trim:               trim(text.Keys{Label: extractor.KeepLabel, Annotation: extractor.KeepAnnotation, First: extractor.KeepFirst}),
		Observer:           observer,
	})
}

// trim bounds what is kept of objects. Anybody may write any texts into owner references, labels and
// annotations.
func trim(keys text.Keys) func(*metav1.PartialObjectMetadata) {
	return func(meta *metav1.PartialObjectMetadata) {
		meta.Labels, meta.Annotations = keys.Entries(meta.Labels, meta.Annotations)
		for _, field := range []*string{&meta.Namespace, &meta.Name, &meta.GenerateName} {
			*field = text.Value(*field)
		}
		meta.UID = types.UID(text.Value(string(meta.UID)))
		for i := range meta.OwnerReferences {
			owner := &meta.OwnerReferences[i]
			for _, field := range []*string{&owner.APIVersion, &owner.Kind, &owner.Name} {
				*field = text.Value(*field)
			}
			owner.UID = types.UID(text.Value(string(owner.UID)))
		}
	}
}
