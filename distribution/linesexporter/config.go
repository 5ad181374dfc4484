// SPDX-License-Identifier: Apache-2.0

package linesexporter

import (
	"fmt"
	"os"
)

// Color selects when lines are coloured.
type Color string

// The values of Color.
const (
	ColorAuto   Color = "auto"
	ColorAlways Color = "always"
	ColorNever  Color = "never"
)

// Config is the configuration of the exporter.
type Config struct {
	// Color is auto (the default), always or never. With auto, lines are coloured if standard
	// output is a terminal and the environment variable NO_COLOR is empty.
	Color Color `mapstructure:"color"`
}

// Validate reports a value of color that does not exist.
func (c *Config) Validate() error {
	switch c.Color {
	case ColorAuto, ColorAlways, ColorNever:
		return nil
	}
	return fmt.Errorf("color: %q is not a valid value: use %s, %s or %s", c.Color, ColorAuto, ColorAlways, ColorNever)
}

// enabled reports whether lines written to out are coloured.
func (c Color) enabled(out *os.File) bool {
	if c != ColorAuto {
		return c == ColorAlways
	}
	info, err := out.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == ""
}
