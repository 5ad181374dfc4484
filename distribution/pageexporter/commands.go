// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// commandsFor returns kubectl commands about an object, for a shell. There are none if Kubernetes
// allows no object with these names: anybody may write any name into an event.
func commandsFor(o object, namespace string) []string {
	if o.kind() == "node" {
		namespace = clusterScoped // also if it owns a pod
	}
	if !isNameable(o.kind()) || !isNameable(o.Name) || !isNameable(namespace) {
		return nil
	}
	name, in, events := shellQuoted(o.Name), " -n "+shellQuoted(namespace), " -n "+shellQuoted(namespace)
	if namespace == clusterScoped {
		in, events = "", " -A"
	}
	commands := []string{"kubectl describe " + shellQuoted(o.kind()) + in + " " + name}
	if o.kind() == "pod" {
		commands = append(commands, "kubectl logs"+in+" "+name+" --previous")
	}
	return append(commands, "kubectl get events"+events+" --field-selector involvedObject.name="+name)
}

// isNameable reports whether kubectl takes the text for one name. A terminal may act on characters
// that are not printable, also if they are quoted.
func isNameable(text string) bool {
	return text != "" && len(text) < maxName && text[0] != '-' && !strings.ContainsAny(text, `/%,=\`) &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError })
}

var needsNoQuotes = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9.-]*$`)

func shellQuoted(text string) string {
	if needsNoQuotes.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
