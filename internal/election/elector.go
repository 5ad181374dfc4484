// SPDX-License-Identifier: Apache-2.0

package election

import (
	"reflect"
	"time"
)

// The defaults of the extension k8s_leader_elector.
const (
	defaultLeaseDuration = 15 * time.Second
	defaultRenewDeadline = 10 * time.Second
)

// ElectorConfig is the part of the elector's configuration that the receiver needs.
type ElectorConfig struct {
	// LeaseNamespace and LeaseName are empty if they are not known.
	LeaseNamespace, LeaseName string
	// AuthType and Context say how the elector reaches the API server.
	AuthType, Context string
	// LeaseDuration is how long others wait for a leader that no longer renews the lease.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew the lease before it stops leading.
	RenewDeadline time.Duration
}

// ElectorConfigOf reads the configuration of the extension k8s_leader_elector. The extension has no
// method for it, so the fields are read by reflection. A field that is not there gets its default.
func ElectorConfigOf(extension any) ElectorConfig {
	config := reflect.Indirect(reflect.ValueOf(extension))
	if config.Kind() == reflect.Struct {
		config = reflect.Indirect(config.FieldByName("config"))
	}
	return ElectorConfig{
		LeaseNamespace: text(config, "LeaseNamespace"),
		LeaseName:      text(config, "LeaseName"),
		AuthType:       text(config, "AuthType"),
		Context:        text(config, "Context"),
		LeaseDuration:  duration(config, "LeaseDuration", defaultLeaseDuration),
		RenewDeadline:  duration(config, "RenewDuration", defaultRenewDeadline),
	}
}

// field returns the field if config is a struct that has one of this name and kind.
func field(config reflect.Value, name string, kind reflect.Kind) (value reflect.Value, ok bool) {
	if config.Kind() != reflect.Struct {
		return value, false
	}
	found, ok := config.Type().FieldByName(name)
	if !ok {
		return value, false
	}
	value, err := config.FieldByIndexErr(found.Index) // It may be in an embedded pointer that is nil.
	return value, err == nil && value.Kind() == kind
}

// duration returns the value of the field, or the default if there is none.
func duration(config reflect.Value, name string, otherwise time.Duration) time.Duration {
	value, ok := field(config, name, reflect.Int64)
	if !ok || value.Int() <= 0 {
		return otherwise
	}
	return time.Duration(value.Int())
}

// text returns the value of the field, or the empty string if there is none.
func text(config reflect.Value, name string) string {
	value, ok := field(config, name, reflect.String)
	if !ok {
		return ""
	}
	return value.String()
}
