// SPDX-License-Identifier: Apache-2.0

package position

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/reached"
)

const (
	// requestTimeout is the deadline of each request.
	requestTimeout = 10 * time.Second
	// tryTimeout is the deadline of a request that only asks for permission: the request for the
	// position of a new leader may wait for it.
	tryTimeout = 2 * time.Second
	// maxAttempts bounds how often a write is repeated because another process wrote in between.
	maxAttempts = 10
	// hashLength is the number of hexadecimal digits that keep shortened names apart.
	hashLength = 10
)

// description is why the ConfigMap exists, for those who find it in their cluster.
const description = "The resource versions up to which the leader of the kube_events receivers has delivered events. A new leader continues from here."

// State is what is known about the stored position.
type State int

const (
	Unknown State = iota // it was never read: nothing may be dropped
	Missing              // it does not exist: nobody has led
	Known                // it exists and was read
)

// Store is the ConfigMap that holds the position. Its methods may be called concurrently.
type Store struct {
	client          rest.Interface
	namespace, name string
}

// NewStore returns the store of the ConfigMap. It makes no request. The client is one for the core
// group, such as that of kubeclient.Events.
func NewStore(client rest.Interface, namespace, name string) *Store {
	return &Store{client: client, namespace: namespace, name: name}
}

// ObjectName returns the name of the ConfigMap for the name of the lease and the ID of the
// receiver: my-lease and kube_events/prod become my-lease-kube-events.prod. The result is a valid
// name: upper case becomes lower case. If this is not enough, the result ends with a hash.
func ObjectName(lease, receiverID string) string {
	plain := lease + "-" + receiverID
	name := strings.ToLower(strings.NewReplacer("_", "-", "/", ".").Replace(plain))
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, name)
	sum := sha256.Sum256([]byte(plain))
	hash := hex.EncodeToString(sum[:])[:hashLength]
	name = name[:min(len(name), validation.DNS1123SubdomainMaxLength-hashLength-1)]
	var labels []string
	for label := range strings.SplitSeq(name, ".") {
		if label = strings.Trim(label, "-"); label != "" {
			labels = append(labels, label)
		}
	}
	if len(labels) == 0 {
		return hash
	}
	return strings.Join(labels, ".") + "-" + hash
}

// PermissionError is a request that the API server forbids.
type PermissionError struct {
	Namespace, Name string // of the ConfigMap
	Verb            string
	err             error
}

func (e *PermissionError) Error() string {
	return fmt.Sprintf("cannot %s ConfigMap %q in namespace %q (%v): bind a Role in namespace %[3]s with the rules "+
		"{apiGroups: [''], resources: [configmaps], verbs: [create]} and "+
		"{apiGroups: [''], resources: [configmaps], resourceNames: [%[2]s], verbs: [get, update]}", e.Verb, e.Name, e.Namespace, e.err)
}

// Unwrap implements errors.Unwrap.
func (e *PermissionError) Unwrap() error { return e.err }

// DataError is a stored position that cannot be read. It is never overwritten.
type DataError struct {
	Namespace, Name string // of the ConfigMap
	err             error
}

func (e *DataError) Error() string {
	if e.Name == "" {
		return e.err.Error()
	}
	return fmt.Sprintf("cannot read the position in ConfigMap %q in namespace %q: %v; delete the ConfigMap, the leader will create it again",
		e.Name, e.Namespace, e.err)
}

// errUnknownName is the error of a store without a name.
var errUnknownName = errors.New("cannot read the name and namespace of the leader election Lease from the elector's configuration, " +
	"so there is no position of the leader: use the extension k8s_leader_elector, or a storage that all replicas share")

// Unwrap implements errors.Unwrap.
func (e *DataError) Unwrap() error { return e.err }

// update stores what next returns for the stored position. next is called again if another process
// wrote in between. An equal position is not stored again. update returns what is stored, as far as
// this is known, also with an error.
func (s *Store) update(ctx context.Context, next func(stored Position) Position) (Position, State, error) {
	var err error
	for range maxAttempts {
		object, stored, state, readErr := s.read(ctx)
		if readErr != nil {
			return Position{}, Unknown, readErr
		}
		p := next(stored)
		if p.equal(stored) {
			return stored, state, nil
		}
		var retry bool
		if retry, err = s.put(ctx, object, p, state == Known); err == nil {
			return p, Known, nil
		}
		if !retry {
			return stored, state, err
		}
		reached.State("another process writes the position at the same time")
	}
	return Position{}, Unknown, fmt.Errorf("%w (given up after %d attempts)", err, maxAttempts)
}

// read returns the ConfigMap, new if it does not exist, with its position.
func (s *Store) read(ctx context.Context) (*corev1.ConfigMap, Position, State, error) {
	if s.name == "" {
		return nil, Position{}, Unknown, &DataError{err: errUnknownName}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	object := &corev1.ConfigMap{}
	err := s.client.Get().Namespace(s.namespace).Resource("configmaps").Name(s.name).Do(ctx).Into(object)
	switch {
	case apierrors.IsNotFound(err):
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace:   s.namespace,
			Name:        s.name,
			Annotations: map[string]string{"kubernetes.io/description": description},
		}}, Position{}, Missing, nil
	case err != nil:
		return nil, Position{}, Unknown, s.failed("get", err)
	}
	p, err := decode(object.Data)
	if err != nil {
		return nil, Position{}, Unknown, &DataError{Namespace: s.namespace, Name: s.name, err: err}
	}
	return object, p, Known, nil
}

// put writes the object with the position. The object's resource version is the precondition. retry
// is true if another process created, changed or deleted the object since it was read.
func (s *Store) put(ctx context.Context, object *corev1.ConfigMap, p Position, exists bool) (retry bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	if err := p.encode(object.Data); err != nil {
		return false, err
	}
	verb, request := s.writing(object, exists)
	if err = request.Do(ctx).Error(); err == nil {
		return false, nil
	}
	// A creation that is not found has no namespace.
	retry = apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || exists && apierrors.IsNotFound(err)
	return retry, s.failed(verb, err)
}

// try asks whether the object, as it was read, may be written. It writes nothing.
func (s *Store) try(ctx context.Context, object *corev1.ConfigMap, exists bool) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	verb, request := s.writing(object, exists)
	if err := request.Param("dryRun", metav1.DryRunAll).Do(ctx).Error(); err != nil {
		return s.failed(verb, err)
	}
	return nil
}

// writing returns the request that writes the object, and its verb.
func (s *Store) writing(object *corev1.ConfigMap, exists bool) (verb string, request *rest.Request) {
	verb, request = "create", s.client.Post()
	if exists {
		verb, request = "update", s.client.Put().Name(s.name)
	}
	return verb, request.Namespace(s.namespace).Resource("configmaps").Body(object)
}

// failed names the object and the request in the error.
func (s *Store) failed(verb string, err error) error {
	// The API server also forbids to create an object in a namespace that is being deleted.
	if apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return &PermissionError{Namespace: s.namespace, Name: s.name, Verb: verb, err: err}
	}
	return fmt.Errorf("cannot %s ConfigMap %q in namespace %q: %w", verb, s.name, s.namespace, err)
}
