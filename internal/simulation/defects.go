// SPDX-License-Identifier: Apache-2.0

package simulation

// defect is a known defect of the receiver. While it is marked, random plans leave out what shows it,
// so that they find others; its scenario (defects_test.go) must fail as long.
type defect struct {
	name  string
	avoid func(*Plan) // nil: random plans do not show it
}

// marked are the defects that are known and not fixed.
var marked = []defect{
	{name: "i"},
	{name: "g", avoid: func(p *Plan) {
		p.drop(func(f Fault) bool { return f.Kind == BackupRestored || f.Kind == ClusterNew })
	}},
}

func avoidMarkedDefects(p *Plan) {
	for _, d := range marked {
		if d.avoid != nil {
			d.avoid(p)
		}
	}
}

func isMarked(name string) bool {
	for _, d := range marked {
		if d.name == name {
			return true
		}
	}
	return false
}
