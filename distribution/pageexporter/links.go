// SPDX-License-Identifier: Apache-2.0

package pageexporter

// link adds a value to the filter, or removes it.
type link struct {
	To     string // an address of the page
	Active bool   // the filter has the value
}

// Link returns the link for a value of a parameter of the page's address.
func (f filter) Link(name, value string) link {
	query := f.query()
	active := value != "" && query.Get(name) == value
	if active {
		value = ""
	}
	query.Set(name, value)
	return link{addressOf(query), active}
}

// chosenValue is a value of the filter.
type chosenValue struct {
	Label, Value string
	Without      string // the address of the page without it
}

// Values returns the values of the filter that a viewer can remove one by one.
func (f filter) Values() (values []chosenValue) {
	add := func(name, label, value string) {
		if value != "" {
			values = append(values, chosenValue{label, value, f.Link(name, value).To})
		}
	}
	add("name", "Name", f.Name)
	add("kind", "Kind", f.Kind)
	add("text", "Message", f.Text)
	for _, c := range choices {
		add(c.name, c.label, f.traits[c.trait])
	}
	return values
}

// placed is a branch of a card's tree.
type placed struct {
	*branch
	Card *card
}

// In returns a branch with its card, whose filter is that of the branch's links.
func (c *card) In(b *branch) placed { return placed{b, c} }

// Kind returns the kind of the branch's object with its group.
func (p placed) Kind() string { return p.Object.kind() }

// Commands returns kubectl commands about the branch's object.
func (p placed) Commands() []string { return commandsFor(p.Object, p.Card.Namespace) }
