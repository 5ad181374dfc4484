// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// versionProof is how long the document of a group's version proves that a
	// kind is not in it. It spares asking again for each of many kinds that are
	// looked up together.
	versionProof = time.Second
	// catalogueProof is the same for the catalogue of all groups, which is large.
	catalogueProof = 10 * time.Second
	// catalogueLifetime is how long the catalogue proves which groups have a kind.
	catalogueLifetime = 10 * time.Minute
)

// document is what the API server said of the kinds that it serves, by their
// names.
type document[V any] struct {
	content map[string]V
	asked   time.Duration // when
	err     error         // why there is no content
}

// documents holds the discovery documents that were read. It may be used
// concurrently.
type documents struct {
	discoverer *discoverer
	now        func() time.Duration

	versionReads   *calls[schema.GroupVersion, document[*kind]]
	catalogueReads *calls[struct{}, document[[]*kind]]

	// mu guards all below.
	mu        sync.Mutex
	versions  map[schema.GroupVersion]document[*kind] // of what is served, so no more than that
	catalogue document[[]*kind]                       // content is nil until it was read
}

func newDocuments(b *background, d *discoverer) *documents {
	return &documents{
		discoverer:     d,
		now:            d.now,
		versionReads:   newCalls[schema.GroupVersion, document[*kind]](b),
		catalogueReads: newCalls[struct{}, document[[]*kind]](b),
		versions:       make(map[schema.GroupVersion]document[*kind]),
	}
}

// inVersion returns the kind as one version of a group serves it, or nil.
func (d *documents) inVersion(wanted context.Context, gv schema.GroupVersion, name string) (*kind, error) {
	version, fresh := d.version(gv)
	if found := version.content[name]; found != nil || fresh {
		return found, nil
	}
	version, ok := d.versionReads.wait(wanted, d.versionReads.join(gv, func(wanted context.Context) (document[*kind], bool) {
		return d.readVersion(wanted, gv), true
	}))
	if !ok {
		return nil, errNotSent
	}
	return version.content[name], version.err
}

// inAllGroups returns the kinds of that name in all groups but core.
func (d *documents) inAllGroups(wanted context.Context, name string) ([]*kind, error) {
	all, fresh := d.allGroups()
	found := all.content[name]
	if fresh || (found != nil && d.now()-all.asked < catalogueLifetime) {
		return found, nil
	}
	all, ok := d.catalogueReads.wait(wanted, d.catalogueReads.join(struct{}{}, func(wanted context.Context) (document[[]*kind], bool) {
		return d.readCatalogue(wanted), true
	}))
	if !ok {
		return nil, errNotSent
	}
	return all.content[name], all.err
}

// version returns the document of a group's version, and whether it proves that
// what is not in it is not served.
func (d *documents) version(gv schema.GroupVersion) (version document[*kind], fresh bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	version, known := d.versions[gv]
	return version, known && d.now()-version.asked < versionProof
}

// allGroups returns the catalogue, and whether it proves the same.
func (d *documents) allGroups() (all document[[]*kind], fresh bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.catalogue, d.catalogue.content != nil && d.now()-d.catalogue.asked < catalogueProof
}

func (d *documents) readVersion(wanted context.Context, gv schema.GroupVersion) document[*kind] {
	if version, fresh := d.version(gv); fresh {
		return version
	}
	read := document[*kind]{asked: d.now()}
	read.content, read.err = d.discoverer.version(wanted, gv)
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

func (d *documents) readCatalogue(wanted context.Context) document[[]*kind] {
	if all, fresh := d.allGroups(); fresh {
		return all
	}
	read := document[[]*kind]{asked: d.now()}
	read.content, read.err = d.discoverer.everything(wanted)
	if read.err != nil {
		return read
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.catalogue = read
	return read
}

// invalidate forgets the documents that the kind may have been learned from.
func (d *documents) invalidate(unserved *kind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for gv, version := range d.versions {
		if gv.Group == unserved.resource.Group && version.asked <= unserved.learned {
			delete(d.versions, gv)
		}
	}
	if d.catalogue.asked <= unserved.learned {
		d.catalogue = document[[]*kind]{}
	}
}
