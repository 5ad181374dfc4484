// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// ObjectName returns the name of the ConfigMap for the name of the lease and the ID of the
// receiver: my-lease and kube_events/prod become my-lease-kube-events.prod. Upper case becomes lower case.
// If this is no valid name, a hash of both is in its place.
func ObjectName(lease, receiverID string) string {
	plain := lease + "-" + receiverID
	name := strings.ToLower(strings.NewReplacer("_", "-", "/", ".").Replace(plain))
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(plain))
	return "kube-events-" + hex.EncodeToString(sum[:10])
}
