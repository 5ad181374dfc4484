// SPDX-License-Identifier: Apache-2.0

package memory

import "encoding/json"

// This file reads the state of the version before, which kept the streams in it. It may be removed
// with the version after the next. See legacy.go of package checkpoint.

// legacyState is the part of the state that is now in entries.
type legacyState struct {
	Streams map[string]struct {
		ResourceVersion string `json:"resourceVersion"`
		Listed          bool   `json:"listed"`
	} `json:"streams"`
	Scopes map[string]uint16 `json:"scopes"` // the ledger's numbers of the streams
}

// restoreLegacy restores the streams from a state of the version before. That version did not save
// the field selector: it counts as the present one.
func (s *streams) restoreLegacy(saved json.RawMessage) {
	var old legacyState
	_ = json.Unmarshal(saved, &old) // The caller reports errors.
	for namespace, of := range old.Streams {
		*s.of(namespace) = stream{
			Namespace: namespace, ResourceVersion: of.ResourceVersion,
			Listed: of.Listed, Covers: of.Listed, Selector: s.coverage.FieldSelector,
		}
	}
	for namespace, scope := range old.Scopes {
		s.of(namespace).Scope = int(scope) + 1
	}
}
