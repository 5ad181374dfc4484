// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// hashLength is the number of hexadecimal digits that keep shortened names apart.
const hashLength = 10

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
