// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strconv"
	"strings"
)

// idOf returns an id for names that consist of parts. Nobody can compute parts that have the id of
// others: it is cut from SHA-256 over the parts with their lengths.
func idOf(prefix string, parts ...string) string {
	var content []byte
	for _, part := range parts {
		content = append(binary.BigEndian.AppendUint64(content, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(content)
	return prefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))
}

// name identifies what has the problem, without the time: two of them are the same problem again.
func (p *Problem) name() []string {
	own := p.intervals[0]
	if own.shownBy != nil {
		own = own.shownBy
	}
	return []string{p.Key.ID(), own.name()}
}

// identify gives the problem its ids.
func (p *Problem) identify() {
	p.Series = idOf("s", p.name()...)
	p.ID = idOf("p", append(p.name(), strconv.FormatInt(p.Onset.Unix(), 10))...)
}
