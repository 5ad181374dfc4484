// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"crypto/sha256"
	"encoding/binary"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// traceID returns the id of a rollout. The activation is empty for the first rollout of a revision.
// A later one, such as a rollback, has the UID of the record that began it.
func (w *Workload) traceID(e episode) (id pcommon.TraceID) {
	copy(id[:], digest(w.Cluster, w.Namespace, w.UID, e.revision, e.activation))
	return id
}

// spanID returns the id of a phase of an object, or of a container of this object.
func spanID(trace pcommon.TraceID, object, phase, container string) (id pcommon.SpanID) {
	copy(id[:], digest(string(trace[:]), object, phase, container))
	return id
}

// digest hashes the parts with their lengths: ("ab", "c") is not ("a", "bc").
func digest(parts ...string) []byte {
	content := make([]byte, 0, 256)
	for _, part := range parts {
		content = binary.BigEndian.AppendUint64(content, uint64(len(part)))
		content = append(content, part...)
	}
	sum := sha256.Sum256(content)
	return sum[:]
}
