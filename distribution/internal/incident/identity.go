// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"unicode"
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

// identify gives the problem its ids. Those of its effects are in aliases: an effect can be shown
// first, and its cause a moment later.
func (p *Problem) identify() {
	own := cmp.Or(p.intervals[0].shownBy, p.intervals[0])
	p.Series = idOf("s", p.Key.ID(), own.name())
	p.ID = idOf("p", p.Key.ID(), own.name(), strconv.FormatInt(p.Onset.Unix(), 10))
	for _, s := range p.intervals {
		if name := s.ownName(); s.shownBy != nil {
			p.aliases = append(p.aliases, idOf("s", p.Key.ID(), name))
		}
	}
	slices.Sort(p.aliases)
	p.aliases = slices.Compact(p.aliases)
}

// AllSeries returns the series of the problem, of its effects, and of its members with theirs.
func (p *Problem) AllSeries() []string {
	all := append([]string{p.Series}, p.aliases...)
	for _, m := range p.members {
		if m.Series != p.Series {
			all = append(all, m.AllSeries()...)
		}
	}
	return all
}

// Sentence says what is wrong, and why, as somebody on call would.
func (p *Problem) Sentence() string {
	what := p.subject()
	isOfOne := p.Shared == ""
	if isOfOne || slices.ContainsFunc(shares, func(s sharing) bool { return s.name == p.Shared && s.within > 0 }) {
		what += ": " + p.headline()
	}
	cause := "; the cause is not known"
	if len(p.Causes) > 0 {
		cause = "; the cause: " + p.Causes[0].Text
	}
	return strings.Map(onOneLine, what+cause)
}

// onOneLine replaces control characters: anybody who may create Events chooses names and messages.
func onOneLine(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

// subject says what has the problem.
func (p *Problem) subject() string {
	what := p.Key.Top.Kind + " " + p.Key.Top.Name
	switch {
	case p.Shared != "":
		return p.Scope[0]
	case p.Key.Namespace != "":
		return what + " in " + p.Key.Namespace
	}
	return what
}

// headline says what is wrong with one workload.
func (p *Problem) headline() string {
	if p.Ended != "" {
		return p.titleOfEnd()
	}
	if p.Class == classNode || p.Class == classOther {
		return p.Reason + ", " + p.Message
	}
	i := slices.IndexFunc(symptoms, func(s symptom) bool { return s.class == p.Class })
	text := strings.TrimSuffix(symptoms[i].text, ".")
	return strings.ToLower(text[:1]) + text[1:]
}

// ID identifies the change.
func (c *Change) ID() string {
	return idOf("c", c.Key.ID(), c.Kind, c.Object, strconv.FormatInt(c.At.Unix(), 10), c.pod, c.says)
}

// Resource returns attributes of the resource of a workload's newest record; nil: they are not known.
// Callers must not change it.
func (v *At) Resource(k Key) map[string]string {
	if w := v.model.workloads[k]; w != nil {
		return w.resource
	}
	return nil
}
