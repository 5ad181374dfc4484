// SPDX-License-Identifier: Apache-2.0

// Package userconfig reads the configuration of a component, and explains what is wrong with it.
package userconfig

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// Unmarshal reads what a user wrote into a configuration, which has the defaults. Errors have the key, the
// value and the fix. The hints are fixes for keys of other systems, and for optional maps that are none.
func Unmarshal(conf *confmap.Conf, config any, hints map[string]string) error {
	defaults, read := confmap.New(), confmap.New()
	errDefaults := defaults.Marshal(config)
	err := conf.Unmarshal(config)
	if errMarshal := errors.Join(errDefaults, read.Marshal(config)); errMarshal != nil {
		return errors.Join(err, errMarshal)
	}
	c := comparison{hints: hints, defaults: defaults, options: read.AllKeys(), known: namesOf(reflect.TypeOf(config).Elem())}
	if err != nil {
		c.refused = err.Error()
	}
	c.compare("", conf.ToStringMap(), read.ToStringMap())
	if c.problems == nil {
		return err
	}
	return errors.New(strings.Join(c.problems, "\n")) // The Collector would write a title above joined errors.
}

// namesOf returns the names of the options of a struct. What the Collector has read lacks some that are empty.
func namesOf(config reflect.Type) (names []string) {
	for i := range config.NumField() {
		name, flags, _ := strings.Cut(config.Field(i).Tag.Get("mapstructure"), ",")
		if flags == "squash" {
			names = append(names, namesOf(config.Field(i).Type)...)
		} else if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// comparison compares what is written with what the Collector read. The Collector's errors have no values
// and no fixes, and it reads 30 as 30 nanoseconds, and 1.5 as 1.
type comparison struct {
	hints    map[string]string
	defaults *confmap.Conf
	options  []string // with the keys around them
	known    []string // those that are not inside another one
	refused  string   // the Collector's error; empty: none
	problems []string
}

func (c *comparison) fail(key string, written any, fix string) {
	value, err := json.Marshal(written)
	if err != nil { // JSON has no .inf and .nan.
		value = fmt.Append(nil, written)
	}
	c.problems = append(c.problems, fmt.Sprintf("%s: %.100s %s", key, value, fix))
}

// isRefused reports whether the Collector refused the value of a key.
func (c *comparison) isRefused(key string) bool { return strings.Contains(c.refused, "'"+key+"' ") }

// extensions has an example for each option that names an extension.
var extensions = map[string]string{"storage": "file_storage", "k8s_leader_elector": "k8s_leader_elector"}

func (c *comparison) compare(key string, written, read any) {
	_, isText := written.(string)
	list, isList := written.([]any)
	number, err := strconv.ParseFloat(fmt.Sprint(written), 64)
	isNumber := err == nil
	switch read := read.(type) {
	case map[string]any:
		c.compareMap(key, written, read)
	case []any:
		if !isList && c.isRefused(key) {
			c.fail(key, written, "is not a list; write [ and ] around it")
		}
		for i := range min(len(list), len(read)) {
			c.compare(fmt.Sprintf("%s[%d]", key, i), list[i], read[i])
		}
	case time.Duration:
		isFinite := isNumber && !math.IsInf(number, 0) && !math.IsNaN(number)
		if isFinite && (isText || number != 0) {
			c.fail(key, written, "has no unit; write "+strconv.FormatFloat(number, 'f', -1, 64)+c.unit(key))
		} else if _, err := time.ParseDuration(fmt.Sprint(written)); err != nil && !isFinite {
			c.fail(key, written, "is not a duration; write numbers with the units ms, s, m or h and no blanks, such as 30s or 1h30m")
		}
	case bool:
		if written != true && written != false {
			c.fail(key, written, "is neither true nor false; write one of them, without quotes")
		}
	case int, int64:
		if isText || !isNumber || number != float64(int64(number)) {
			c.fail(key, written, "is not a whole number; write one without quotes, such as 100")
		}
	case float32, float64:
		if isText || !isNumber {
			c.fail(key, written, "is not a number; write one without quotes, such as 1.5")
		}
	default:
		if extension := extensions[key]; extension != "" && (!isText || c.isRefused(key)) {
			c.fail(key, written, "is not the name of an extension; write one, such as "+extension+", and configure it below extensions")
		} else if _, isString := read.(string); isString && !isText && c.isRefused(key) {
			c.fail(key, written, "is not a text; write one, with quotes if it is a number")
		}
	}
}

// unit returns the unit that a user may have meant: that of the default.
func (c *comparison) unit(key string) string {
	value, _ := c.defaults.Get(strings.ReplaceAll(key, ".", confmap.KeyDelimiter)).(time.Duration)
	if value > 0 && value < time.Second {
		return "ms"
	}
	return "s"
}

func (c *comparison) compareMap(key string, written any, read map[string]any) {
	fields, isMap := written.(map[string]any)
	known := slices.Sorted(maps.Keys(read))
	if key == "" {
		known = c.known
	}
	if _, isSwitch := read["enabled"]; isSwitch && (written == true || written == false) {
		c.fail(key, written, fmt.Sprintf("is not a map; write {enabled: %v}", written))
	} else if !isMap && c.isRefused(key) {
		c.fail(key, written, "is not a map; write a map with "+strings.Join(known, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		inner := strings.TrimPrefix(key+"."+name, ".")
		value, isKnown := read[name]
		_, isInnerMap := fields[name].(map[string]any)
		switch {
		case value == nil && !isInnerMap && c.isRefused(inner) && c.hints[name] != "": // An optional map, of which read has no keys.
			c.fail(inner, fields[name], "is not a map; "+c.hints[name])
		case isKnown && fields[name] != nil: // Without a value, the default stays.
			c.compare(inner, fields[name], value)
		case !isKnown && strings.Contains(c.refused, " has invalid keys: "): // Some options without a value are not in read.
			c.problems = append(c.problems, inner+" is not an option; "+cmp.Or(c.hints[name], c.closest(key, name, known)))
		}
	}
}

// closest names the option that a user may have meant: one of this name below the key or elsewhere, or a similar
// one here.
func (c *comparison) closest(key, name string, here []string) string {
	for _, around := range []string{key + ".", ""} {
		for _, option := range c.options {
			option = strings.ReplaceAll(option, confmap.KeyDelimiter, ".")
			if strings.HasPrefix(option, around) && strings.HasSuffix(option, "."+name) {
				return "did you mean " + option + "?"
			}
		}
	}
	difference := func(option string) int { return distance(strings.ToLower(name), option) }
	best := slices.MinFunc(here, func(a, b string) int { return difference(a) - difference(b) })
	if difference(best) <= len(best)/3+1 {
		return "did you mean " + best + "?"
	}
	return "write one of " + strings.Join(here, ", ")
}

// distance returns how many letters of a to insert, delete and replace to get b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			if a[i] != b[j] {
				diagonal = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], diagonal
		}
	}
	return row[len(b)]
}
