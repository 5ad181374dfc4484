// SPDX-License-Identifier: Apache-2.0

package kubeeventsreceiver

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"go.opentelemetry.io/collector/confmap"
)

var _ confmap.Unmarshaler = (*Config)(nil)

// Unmarshal reads the configuration. Errors about unknown keys, which the Collector lists without the
// known ones, also name the closest known key, or the few that there are. It implements confmap.Unmarshaler.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	err := conf.Unmarshal(c)
	if err == nil {
		return nil
	}
	return errors.Join(append([]error{err}, closestKeys("", conf.ToStringMap(), reflect.TypeFor[Config]())...)...)
}

// mostListed is how many keys an error lists at most.
const mostListed = 8

// closestKeys returns a suggestion for each key that the type does not have. The path is the beginning
// of the written keys.
func closestKeys(path string, written any, t reflect.Type) (suggestions []error) {
	switch written := written.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return nil
		}
		types := keysOf(t)
		known := slices.Sorted(maps.Keys(types))
		for _, key := range slices.Sorted(maps.Keys(written)) {
			if field, ok := types[key]; ok {
				suggestions = append(suggestions, closestKeys(path+key+".", written[key], field)...)
			} else if closest, ok := closest(key, known); ok {
				suggestions = append(suggestions, fmt.Errorf("%s%s: did you mean %s?", path, key, closest))
			} else if len(known) <= mostListed {
				suggestions = append(suggestions, fmt.Errorf("%s%s: the keys here are %s", path, key, strings.Join(known, ", ")))
			}
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return nil
		}
		for i, item := range written {
			suggestions = append(suggestions, closestKeys(fmt.Sprintf("%s[%d].", strings.TrimSuffix(path, "."), i), item, t.Elem())...)
		}
	}
	return suggestions
}

// keysOf returns the types of a struct's fields by their keys.
func keysOf(t reflect.Type) map[string]reflect.Type {
	keys := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		if key, _, _ := strings.Cut(field.Tag.Get("mapstructure"), ","); key != "" {
			keys[key] = field.Type
		}
	}
	return keys
}

// closest returns the known key that begins like the written one, or else differs from it in at most
// half of its letters.
func closest(written string, known []string) (key string, ok bool) {
	least := len(written)/2 + 1
	for _, k := range known {
		if len(written) > 2 && (strings.HasPrefix(k, written) || strings.HasPrefix(written, k)) {
			return k, true
		}
		if distance := levenshtein.ComputeDistance(written, k); distance < least {
			least, key = distance, k
		}
	}
	return key, key != ""
}
