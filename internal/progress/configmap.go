// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"

	"github.com/kubeevents/kubeeventsreceiver/internal/ledger"
)

const (
	// configMapEvery is the least time between two writes of the ConfigMap. With the request itself,
	// progress is noted within two seconds.
	configMapEvery = 1800 * time.Millisecond
	// ConfigMapPart is the part of the receiver that the status names if the ConfigMap cannot be read
	// or written.
	ConfigMapPart = "the progress of the leader"
)

// The keys of the ConfigMap's data.
const (
	clusterData = "cluster" // UID of the namespace kube-system
	leaderData  = "leader"  // the term that wrote it last
	streamsData = "streams" // the resource version of each stream, as JSON
)

// description is why the ConfigMap exists, for those who find it in their cluster.
const description = "The resource versions up to which the leader of the kube_events receivers has delivered events. A new leader continues from here."

// ConfigMap notes the progress of a leader in the watched cluster, for the next one. Its resourceVersion
// is the fencing token: a new leader writes it first, so that the next note of a leader that was
// deposed fails. It is not in the Lease, whose updates would conflict.
type ConfigMap struct {
	client          rest.Interface
	namespace, name string
	observer        Observer
	logger          *zap.Logger
	leader          string // of this term
	cluster         string // UID; empty: it is not known
	superseded      func()

	ledger *ledger.Ledger
	saver  saver
	// Only Load and then the saver use the following.
	object       *corev1.ConfigMap // as it was last read or written
	isSuperseded bool              // another leader has written since: nothing may be written any more

	mu       sync.Mutex // guards versions
	versions ledger.Versions
}

// NewConfigMap returns the progress of one term. It makes no request yet. The client is one for the
// core group, such as that of kubeclient.Events.
func NewConfigMap(client rest.Interface, namespace, name string, observer Observer, logger *zap.Logger) *ConfigMap {
	c := &ConfigMap{client: client, namespace: namespace, name: name, observer: observer, logger: logger, leader: string(uuid.NewUUID())}
	c.saver = saver{every: configMapEvery, most: configMapEvery, write: c.write}
	return c
}

// Load implements Progress. If the ConfigMap does not exist, nobody has led.
func (c *ConfigMap) Load(ctx context.Context, cluster string, fresh func() *ledger.Ledger, superseded func()) *ledger.Ledger {
	c.cluster, c.superseded = cluster, superseded
	for failures := 0; ctx.Err() == nil; failures++ {
		noted, isNoted, err := c.begin(ctx)
		if err == nil {
			if len(noted) == 0 {
				c.logger.Info("No progress in the ConfigMap: this is a first start; start_at decides whether existing events are emitted")
			} else {
				c.logger.Info("Continuing from the progress of the last leader", zap.String("streams", encode(noted)))
			}
			c.ledger = fresh()
			c.ledger.StartFrom(noted)
			c.versions = noted
			c.saver.start()
			if !isNoted { // Perhaps no event comes.
				c.saver.signal()
			}
			return c.ledger
		}
		if ctx.Err() == nil && (failures > 0 || causeOf(err) != "unavailable") { // A single request may fail when an API server restarts.
			c.observer.Failed(ConfigMapPart, causeOf(err), "Cannot read the progress of the last leader; retrying. The receiver emits nothing until then", err)
		}
		Pause(ctx, RetryRead)
	}
	return nil
}

// begin reads the progress and notes that this term has begun. The error is that of reading: a note
// that cannot be written is tried again, and the next leader repeats more until then.
func (c *ConfigMap) begin(ctx context.Context) (noted ledger.Versions, isNoted bool, err error) {
	for {
		if noted, err = c.read(ctx); err != nil {
			return nil, false, err
		}
		if known := c.object.Data[clusterData]; known != "" && c.cluster != "" && known != c.cluster {
			c.logger.Warn("The progress in the ConfigMap is of another cluster; it is not used: start_at decides whether existing events are emitted",
				zap.String("progress_cluster", known), zap.String("cluster", c.cluster))
			noted = nil
		}
		if c.object.ResourceVersion == "" {
			return nil, true, nil // Without a version, it would say that the next leader starts for the first time.
		}
		err = c.put(ctx, noted)
		if !isConflict(err) || ctx.Err() != nil {
			c.report(ctx, err)
			return noted, err == nil, nil //nolint:nilerr // It is tried again.
		}
	}
}

// Note implements Progress.
func (c *ConfigMap) Note() {
	versions := c.ledger.Versions()
	c.mu.Lock()
	defer c.mu.Unlock()
	if maps.Equal(versions, c.versions) {
		return
	}
	c.versions = versions
	c.saver.signal()
}

// End implements Progress.
func (c *ConfigMap) End(ctx context.Context) { c.saver.end(ctx) }

// write writes the newest versions. If another process has written since, it leads now.
func (c *ConfigMap) write(ctx context.Context) error {
	if c.isSuperseded {
		return nil
	}
	c.mu.Lock()
	versions := c.versions
	c.mu.Unlock()
	for {
		err := c.put(ctx, versions)
		if !isConflict(err) {
			c.report(ctx, err)
			return err
		}
		// The answer to the last write may be lost, or somebody has changed or deleted the object.
		if _, err := c.read(ctx); err != nil {
			c.report(ctx, err)
			return err
		}
		if leader := c.object.Data[leaderData]; leader != "" && leader != c.leader {
			c.logger.Warn("Another process has noted progress as the leader; ending this term. If this happens often, another Collector uses the same Lease or the same progress_config_map",
				zap.String("namespace", c.namespace), zap.String("config_map", c.name))
			c.isSuperseded = true // A delivery that is accepted before the session has ended is noted, too.
			c.superseded()
			return nil
		}
	}
}

// report reports whether the ConfigMap can be written, unless the term has ended: a standby notes nothing.
func (c *ConfigMap) report(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	if err == nil {
		c.observer.Works(ConfigMapPart, "The progress of the leader is noted again")
		return
	}
	c.observer.Failed(ConfigMapPart, causeOf(err), "Cannot note the progress of the leader; retrying. Events are still delivered, but the next leader repeats more of them", err)
}

// read reads the ConfigMap into object, which is new if it does not exist.
func (c *ConfigMap) read(ctx context.Context) (ledger.Versions, error) {
	ctx, cancel := context.WithTimeout(ctx, Slow)
	defer cancel()
	object := &corev1.ConfigMap{}
	err := c.client.Get().Namespace(c.namespace).Resource("configmaps").Name(c.name).Do(ctx).Into(object)
	if apierrors.IsNotFound(err) {
		c.object = &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: c.namespace, Name: c.name, Annotations: map[string]string{"kubernetes.io/description": description},
			},
			Data: map[string]string{},
		}
		return nil, nil
	}
	if err != nil {
		return nil, c.failed("get", err)
	}
	noted, err := decode(object.Data)
	if err != nil {
		// It is never overwritten.
		return nil, &failure{"unreadable", fmt.Errorf("cannot read the progress in ConfigMap %q in namespace %q: %w; delete the ConfigMap: the leader then makes a first start, and start_at decides whether existing events are emitted",
			c.name, c.namespace, err)}
	}
	if c.object = object; object.Data == nil {
		object.Data = map[string]string{}
	}
	return noted, nil
}

// put writes the object with these versions. Its resourceVersion is the precondition.
func (c *ConfigMap) put(ctx context.Context, versions ledger.Versions) error {
	ctx, cancel := context.WithTimeout(ctx, Slow)
	defer cancel()
	next := c.object.DeepCopy()
	next.Data[leaderData], next.Data[streamsData] = c.leader, encode(versions)
	if c.cluster != "" {
		next.Data[clusterData] = c.cluster
	}
	verb, request := "create", c.client.Post()
	if next.ResourceVersion != "" {
		verb, request = "update", c.client.Put().Name(c.name)
	}
	written := &corev1.ConfigMap{}
	if err := request.Namespace(c.namespace).Resource("configmaps").Body(next).Do(ctx).Into(written); err != nil {
		if verb == "update" && apierrors.IsNotFound(err) {
			err = apierrors.NewConflict(corev1.Resource("configmaps"), c.name, err) // Somebody has deleted it.
		}
		return c.failed(verb, err)
	}
	c.object = written
	return nil
}

func isConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// encode writes versions as they are in the ConfigMap.
func encode(versions ledger.Versions) string {
	streams := make(map[string]string, len(versions))
	for stream, version := range versions {
		if version > 0 {
			streams[stream] = strconv.FormatUint(version, 10)
		}
	}
	encoded, _ := json.Marshal(streams) // It knows no error for strings.
	return string(encoded)
}

// decode reads the versions from the data of a ConfigMap. The error names the key.
func decode(data map[string]string) (ledger.Versions, error) {
	text, ok := data[streamsData]
	if !ok {
		return nil, fmt.Errorf("the key %q is missing", streamsData)
	}
	var streams map[string]string
	if err := json.Unmarshal([]byte(text), &streams); err != nil {
		return nil, fmt.Errorf("the key %q is not a JSON object of strings: %w", streamsData, err)
	}
	versions := make(ledger.Versions, len(streams))
	for stream, text := range streams {
		version, err := strconv.ParseUint(text, 10, 64)
		if err != nil || version == 0 {
			return nil, fmt.Errorf("the key %q has %q for the stream %q, which is not a resource version", streamsData, text, stream)
		}
		versions[stream] = version
	}
	return versions, nil
}

// failure is an error with its cause in one word.
type failure struct {
	cause string
	error
}

// Unwrap implements errors.Unwrap.
func (f *failure) Unwrap() error { return f.error }

// failed names the object and the request in the error.
func (c *ConfigMap) failed(verb string, err error) error {
	// The API server also forbids to create an object in a namespace that is being deleted.
	if !apierrors.IsForbidden(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("cannot %s ConfigMap %q in namespace %q: %w", verb, c.name, c.namespace, err)
	}
	return &failure{"forbidden", fmt.Errorf("cannot %s ConfigMap %q in namespace %q (%w): bind a Role in namespace %[3]s with the rules "+
		"{apiGroups: [''], resources: [configmaps], verbs: [create]} and "+
		"{apiGroups: [''], resources: [configmaps], resourceNames: [%[2]s], verbs: [get, update]}", verb, c.name, c.namespace, err)}
}

// causeOf returns the cause of an error.
func causeOf(err error) string {
	var known *failure
	if errors.As(err, &known) {
		return known.cause
	}
	return "unavailable"
}
