// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// unservedLifetime is how long it is believed that a kind is not served, and
	// so how long after its CRD appeared a kind may stay unknown.
	unservedLifetime = 10 * time.Second
	// forGood is longer than any resolver lives. How a kind is served is believed
	// until a request finds that it is not served that way.
	forGood = time.Duration(math.MaxInt64)
	// mostKinds bounds what is remembered of kinds. No cluster has as many, but
	// events may name kinds and versions that don't exist.
	mostKinds = 4096
)

// kindQuestion is what a reference says of its object's kind.
type kindQuestion struct {
	apiVersion string
	kind       string

	// everywhere, without an API version, asks in all groups but core; a question
	// with neither asks in core.
	everywhere bool
}

// kindAnswer holds the kinds that may be meant, the best guess first. With an
// API version there is at most one.
type kindAnswer struct {
	kinds []*kind
	// failure says why the kinds are not known now; kinds are then those that
	// were known before, whose objects may be in the cache still.
	failure Resolution
}

// kindMemo is an answer and until when it is believed.
type kindMemo struct {
	kindAnswer
	until time.Duration
}

// kinds knows which kinds the API server serves, and asks when it does not know.
// It may be used concurrently.
type kinds struct {
	documents *documents
	now       func() time.Duration
	questions *calls[kindQuestion, kindAnswer]

	mu    sync.Mutex
	memos *simplelru.LRU[kindQuestion, kindMemo] // guarded by mu
}

func newKinds(b *background, d *discoverer) *kinds {
	return &kinds{
		documents: newDocuments(b, d),
		now:       d.now,
		questions: newCalls[kindQuestion, kindAnswer](b),
		memos:     newLRU[kindQuestion, kindMemo](mostKinds),
	}
}

// find returns the answer that needs no request, if there is one.
func (k *kinds) find(q kindQuestion) (kindAnswer, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	memo, found := k.memos.Get(q)
	if !found || k.now() >= memo.until {
		return kindAnswer{}, false
	}
	return memo.kindAnswer, true
}

// ask finds the answer out in the background. Who asks must see the call done,
// or leave it.
func (k *kinds) ask(q kindQuestion) *call[kindAnswer] {
	return k.questions.join(q, func(wanted context.Context) (kindAnswer, bool) {
		// Another call may have ended since the caller found nothing.
		if answer, known := k.find(q); known {
			return answer, true
		}
		found, err := k.discover(wanted, q)
		switch {
		case errors.Is(err, errNotSent):
			return kindAnswer{}, false
		case err != nil:
			return k.fail(q, failureOf(err), true), true
		case len(found) == 0:
			return k.fail(q, NotFound, true), true
		default:
			return k.learn(q, found), true
		}
	})
}

// discover asks the API server. It finds nothing of what is not served.
func (k *kinds) discover(wanted context.Context, q kindQuestion) ([]*kind, error) {
	if q.everywhere {
		return k.documents.inAllGroups(wanted, q.kind)
	}
	found, err := k.inGroup(wanted, currentGroupVersion(q.apiVersion, q.kind), q.kind)
	if found == nil {
		return nil, err
	}
	return []*kind{found}, nil
}

// inGroup returns the kind as the named version of the group serves it, or else
// as the best other version does, or nil.
func (k *kinds) inGroup(wanted context.Context, gv schema.GroupVersion, name string) (*kind, error) {
	if gv.Group == "" {
		return k.documents.inVersion(wanted, schema.GroupVersion{Version: coreVersion}, name)
	}
	if !isSegment(gv.Group) {
		return nil, nil
	}
	if isSegment(gv.Version) {
		found, err := k.documents.inVersion(wanted, gv, name)
		if found != nil || err != nil {
			return found, err
		}
	}
	return k.inOtherVersions(wanted, gv, name)
}

// inOtherVersions returns the kind as the group's most preferred version serves
// it that has it, or nil. The version of gv has been asked.
func (k *kinds) inOtherVersions(wanted context.Context, gv schema.GroupVersion, name string) (*kind, error) {
	versions, err := k.documents.discoverer.versions(wanted, gv.Group)
	if err != nil {
		return nil, err
	}
	for _, version := range versions {
		if version == gv.Version {
			continue
		}
		found, err := k.documents.inVersion(wanted, schema.GroupVersion{Group: gv.Group, Version: version}, name)
		if found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// learn remembers the answer to a question.
func (k *kinds) learn(q kindQuestion, found []*kind) kindAnswer {
	memo := kindMemo{kindAnswer{kinds: found}, forGood}
	if q.everywhere {
		// Another group may get a kind of the same name.
		memo.until = k.now() + catalogueLifetime
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.memos.Add(q, memo)
	return memo.kindAnswer
}

// fail returns the answer to a question that could not be answered, or not by a
// kind that is served. With remember, it is not asked again for a while. An
// answer that came meanwhile is better.
func (k *kinds) fail(q kindQuestion, failure Resolution, remember bool) kindAnswer {
	k.mu.Lock()
	defer k.mu.Unlock()
	last, found := k.memos.Get(q)
	if found && last.failure == "" && k.now() < last.until {
		return last.kindAnswer
	}
	answer := kindAnswer{kinds: last.kinds, failure: failure}
	if !remember {
		return answer
	}
	lifetime := failureLifetime(failure)
	if failure == NotFound {
		lifetime = unservedLifetime
	}
	k.memos.Add(q, kindMemo{answer, k.now() + lifetime})
	return answer
}

// invalidate is told that a request for an object of the kind found that it is
// not served that way any more.
func (k *kinds) invalidate(unserved *kind) {
	k.documents.invalidate(unserved)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, q := range k.memos.Keys() {
		if memo, _ := k.memos.Peek(q); slices.Contains(memo.kinds, unserved) {
			memo.until = min(memo.until, k.now())
			k.memos.Add(q, memo)
		}
	}
}
