// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// versionFreshFor is how long the document of a group version proves that it does not have a
	// kind. Lookups of many kinds at once then share one request.
	versionFreshFor = time.Second
	// catalogueFreshFor is the same for the catalogue of all groups, which is large.
	catalogueFreshFor = 10 * time.Second
	// catalogueTTL is how long the catalogue proves which groups have a kind.
	catalogueTTL = 10 * time.Minute
)

// document holds the kinds of one discovery document, by name.
type document[V any] struct {
	content     map[string]V
	requestedAt time.Duration // when the request was sent
	err         error         // why there is no content
}

// documents caches the discovery documents. It may be used concurrently.
type documents struct {
	discoverer *discoverer
	now        func() time.Duration

	versionReads   *flight[schema.GroupVersion, document[*kind]]
	catalogueReads *flight[struct{}, document[[]*kind]]

	// mu guards the following.
	mu        sync.Mutex
	versions  map[schema.GroupVersion]document[*kind] // only served ones, so it is bounded
	catalogue document[[]*kind]                       // content is nil until it was read
}

func newDocuments(b *background, d *discoverer) *documents {
	return &documents{
		discoverer:     d,
		now:            d.now,
		versionReads:   newFlight[schema.GroupVersion, document[*kind]](b),
		catalogueReads: newFlight[struct{}, document[[]*kind]](b),
		versions:       make(map[schema.GroupVersion]document[*kind]),
	}
}

// inVersion returns the kind as one version of a group serves it; nil if it does not.
func (d *documents) inVersion(ctx context.Context, gv schema.GroupVersion, name string) (*kind, error) {
	version, fresh := d.version(gv)
	if found := version.content[name]; found != nil || fresh {
		return found, nil
	}
	version, ok := d.versionReads.wait(ctx, d.versionReads.join(gv, func(ctx context.Context) (document[*kind], bool) {
		return d.readVersion(ctx, gv), true
	}))
	if !ok {
		return nil, errNotSent
	}
	return version.content[name], version.err
}

// inAllGroups returns the kinds of that name in all groups except core.
func (d *documents) inAllGroups(ctx context.Context, name string) ([]*kind, error) {
	all, fresh := d.allGroups()
	found := all.content[name]
	if fresh || (found != nil && d.now()-all.requestedAt < catalogueTTL) {
		return found, nil
	}
	all, ok := d.catalogueReads.wait(ctx, d.catalogueReads.join(struct{}{}, func(ctx context.Context) (document[[]*kind], bool) {
		return d.readCatalogue(ctx), true
	}))
	if !ok {
		return nil, errNotSent
	}
	return all.content[name], all.err
}

// version returns the document of a group version. fresh reports whether it proves that a kind that
// it does not have is not served.
func (d *documents) version(gv schema.GroupVersion) (version document[*kind], fresh bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	version, known := d.versions[gv]
	return version, known && d.now()-version.requestedAt < versionFreshFor
}

// allGroups returns the catalogue. fresh has the same meaning as for version.
func (d *documents) allGroups() (all document[[]*kind], fresh bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.catalogue, d.catalogue.content != nil && d.now()-d.catalogue.requestedAt < catalogueFreshFor
}

func (d *documents) readVersion(ctx context.Context, gv schema.GroupVersion) document[*kind] {
	if version, fresh := d.version(gv); fresh {
		return version
	}
	read := document[*kind]{requestedAt: d.now()}
	read.content, read.err = d.discoverer.version(ctx, gv)
	if read.err != nil {
		return read
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(read.content) == 0 {
		delete(d.versions, gv)
	} else {
		d.versions[gv] = read
	}
	return read
}

func (d *documents) readCatalogue(ctx context.Context) document[[]*kind] {
	if all, fresh := d.allGroups(); fresh {
		return all
	}
	read := document[[]*kind]{requestedAt: d.now()}
	read.content, read.err = d.discoverer.everything(ctx)
	if read.err != nil {
		return read
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.catalogue = read
	return read
}

// invalidate drops the documents that the kind may come from.
func (d *documents) invalidate(unserved *kind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for gv, version := range d.versions {
		if gv.Group == unserved.resource.Group && version.requestedAt <= unserved.discoveredAt {
			delete(d.versions, gv)
		}
	}
	if d.catalogue.requestedAt <= unserved.discoveredAt {
		d.catalogue = document[[]*kind]{}
	}
}
