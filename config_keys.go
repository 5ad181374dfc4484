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
// known ones, also name the closest known key. It implements confmap.Unmarshaler.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	err := conf.Unmarshal(c)
	if err == nil {
		return nil
	}
	return errors.Join(append([]error{err}, closestKeys("", conf.ToStringMap(), reflect.TypeFor[Config]())...)...)
}

// closestKeys returns a suggestion for each key that the type does not have, but one that is almost the
// same. The path is the beginning of the written keys.
func closestKeys(path string, written any, t reflect.Type) (suggestions []error) {
	switch written := written.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return nil
		}
		known := keysOf(t)
		for _, key := range slices.Sorted(maps.Keys(written)) {
			if field, ok := known[key]; ok {
				suggestions = append(suggestions, closestKeys(path+key+".", written[key], field)...)
			} else if closest, ok := closest(key, slices.Sorted(maps.Keys(known))); ok {
				suggestions = append(suggestions, fmt.Errorf("%s%s: did you mean %s?", path, key, closest))
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

// closest returns the known key that differs from the written one in at most a third of its letters.
func closest(written string, known []string) (key string, ok bool) {
	least := len(written)/3 + 1
	for _, k := range known {
		if distance := levenshtein.ComputeDistance(written, k); distance < least {
			least, key = distance, k
		}
	}
	return key, key != ""
}
