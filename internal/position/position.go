// SPDX-License-Identifier: Apache-2.0

// Package position has the position of a leader: the resource versions up to which events are
// delivered. A leader publishes it in a ConfigMap; the standby's gate keeps events until it has
// reached them.
package position

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
)

// The keys of the ConfigMap's data.
const (
	clusterKey = "cluster"
	historyKey = "history" // missing: 0
	streamsKey = "streams"
)

// Position is how far deliveries have come. It is a fact about deliveries, not a claim to lead.
type Position struct {
	// Cluster is the UID of the namespace kube-system. It is empty while it is not known.
	Cluster string
	// History is how often etcd was restored from a backup, as far as leaders have noticed it. The
	// versions of two histories cannot be compared: of two positions, that of the later history
	// counts.
	History uint64
	// Streams holds, for each stream, the resource version up to which its events are delivered.
	// A stream is named after its namespace; the cluster-wide stream is "".
	Streams map[string]uint64
}

// Reached reports whether the event of this namespace and resource version is delivered: its
// version is not above that of its namespace's stream or of the cluster-wide stream.
func (p Position) Reached(namespace string, version uint64) bool {
	reached, ok := p.Of(namespace)
	return ok && version <= reached
}

// Of returns the version from which a stream may start: the higher of its own version and that of
// the cluster-wide stream. ok is false if there is neither.
func (p Position) Of(stream string) (version uint64, ok bool) {
	version = max(p.Streams[stream], p.Streams[""])
	return version, version > 0
}

// Merge returns the position of the later history, and of the same history the higher version of
// each stream. The result shares no memory with p and other. If other is a position of another
// cluster, its versions mean nothing here and the result is p.
func (p Position) Merge(other Position) Position {
	merged := Position{
		Cluster: p.Cluster, History: p.History, Streams: make(map[string]uint64, max(len(p.Streams), len(other.Streams))),
	}
	if other.foreign(p.Cluster) {
		raise(merged.Streams, p.Streams)
		return merged
	}
	if merged.Cluster == "" {
		merged.Cluster = other.Cluster
	}
	merged.History = max(p.History, other.History)
	for _, of := range []Position{p, other} {
		if of.History == merged.History {
			raise(merged.Streams, of.Streams)
		}
	}
	return merged
}

// startingAfter adds the streams of a position of an earlier history, from their beginning: nobody has
// delivered anything of them in this one. A receiver that starts would take what it lists for old if
// it found no version at all.
func (p Position) startingAfter(earlier Position) Position {
	if earlier.History < p.History && !earlier.foreign(p.Cluster) {
		for stream := range earlier.Streams {
			p.Streams[stream] = max(p.Streams[stream], 1)
		}
	}
	return p
}

// raise puts the higher version of each stream into streams. It reports whether one became higher.
func raise(streams, versions map[string]uint64) bool {
	raised := false
	for stream, version := range versions {
		if version > streams[stream] {
			streams[stream] = version
			raised = true
		}
	}
	return raised
}

// foreign reports whether p is known to be a position of another cluster than this one.
func (p Position) foreign(cluster string) bool {
	return p.Cluster != "" && cluster != "" && p.Cluster != cluster
}

func (p Position) equal(other Position) bool {
	return p.Cluster == other.Cluster && p.History == other.History && maps.Equal(p.Streams, other.Streams)
}

// Highest returns the highest version of all streams; 0: there is none.
func (p Position) Highest() (highest uint64) {
	for _, version := range p.Streams {
		highest = max(highest, version)
	}
	return highest
}

// lowerTo lowers the versions that are above this one.
func (p Position) lowerTo(version uint64) {
	for stream := range p.Streams {
		p.Streams[stream] = min(p.Streams[stream], version)
	}
}

// encode writes the position into the data of a ConfigMap. It leaves other keys as they are.
func (p Position) encode(data map[string]string) error {
	streams := make(map[string]string, len(p.Streams))
	for stream, version := range p.Streams {
		if version > 0 {
			streams[stream] = strconv.FormatUint(version, 10)
		}
	}
	encoded, err := json.Marshal(streams)
	if err != nil {
		return err
	}
	data[clusterKey], data[streamsKey] = p.Cluster, string(encoded)
	if delete(data, historyKey); p.History > 0 {
		data[historyKey] = strconv.FormatUint(p.History, 10)
	}
	return nil
}

// decode reads the position from the data of a ConfigMap. The error names the key.
func decode(data map[string]string) (Position, error) {
	var streams map[string]string
	text, ok := data[streamsKey]
	if !ok {
		return Position{}, fmt.Errorf("the key %q is missing", streamsKey)
	}
	if err := json.Unmarshal([]byte(text), &streams); err != nil {
		return Position{}, fmt.Errorf("the key %q is not a JSON object of strings: %w", streamsKey, err)
	}
	if streams == nil {
		return Position{}, fmt.Errorf("the key %q is not a JSON object of strings: it is null", streamsKey)
	}
	p := Position{Cluster: data[clusterKey], Streams: make(map[string]uint64, len(streams))}
	if history := data[historyKey]; history != "" {
		number, err := strconv.ParseUint(history, 10, 64)
		if err != nil {
			return Position{}, fmt.Errorf("the key %q has %q, which is not a number", historyKey, history)
		}
		p.History = number
	}
	for stream, text := range streams {
		version, err := strconv.ParseUint(text, 10, 64)
		if err != nil || version == 0 {
			return Position{}, fmt.Errorf("the key %q has %q for the stream %q, which is not a resource version", streamsKey, text, stream)
		}
		p.Streams[stream] = version
	}
	return p, nil
}
