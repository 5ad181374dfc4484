// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"regexp"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxChanges bounds the sentences of a list.
const maxChanges = 50

// Details are what the receiver read because the Event does not say it.
type Details struct {
	Ended   *Ended   // how the container ended before the Event; nil: not known
	Changes []string // of a new revision of a workload
	// ConfigMap is the one of the pod that changed last; nil: not known.
	ConfigMap *ConfigMapChange
	Tool      string // the object of the tool that deployed the workload, such as application.argoproj.io/shop; empty: not known
	ChangedBy string // the manager that changed the pod template last; empty: not known
}

// Ended is the end of a container.
type Ended struct {
	Reason      string    `json:"r"` // OOMKilled, Error, Completed and others
	ExitCode    int64     `json:"c,omitempty"`
	Signal      int64     `json:"s,omitempty"` // 0: none, or not known
	MemoryLimit int64     `json:"m,omitempty"` // bytes; 0: none, or not known
	At          time.Time `json:"t"`
}

// String returns the form of "OOMKilled at 128 MiB, exit 137".
func (e *Ended) String() string {
	text := e.Reason
	if e.Reason == OOMKilled && e.MemoryLimit > 0 {
		text += " at " + inBytes(e.MemoryLimit)
	}
	text += ", exit " + strconv.FormatInt(e.ExitCode, 10)
	if e.Signal > 0 && e.Reason != OOMKilled {
		text += ", signal " + strconv.FormatInt(e.Signal, 10)
	}
	return text
}

// OOMKilled is the reason of a container that the kernel ended at its limit of memory.
const OOMKilled = "OOMKilled"

// inBytes returns a number of bytes in the largest unit that needs no fraction.
func inBytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; n%1024 == 0 && i < len(units)-1; i++ {
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + " " + units[i]
}

// ConfigMapChange is the last change of a ConfigMap.
type ConfigMapChange struct {
	Name, By string
	At       time.Time
	IsNew    bool // it was created, and has not changed since
}

// detailsOf returns the details of a record; nil: it has none.
func detailsOf(event pcommon.Map) *Details {
	d := Details{
		Ended: endedOf(event), Changes: texts(event, "k8s.rollout.changes"),
		Tool: text(event, "k8s.workload.deployed_by"), ChangedBy: text(event, "k8s.workload.changed_by"),
	}
	if all := texts(event, "k8s.config_map.changes"); len(all) > 0 {
		d.ConfigMap = configMapChangeOf(all[0])
	}
	if d.Ended == nil && len(d.Changes) == 0 && d.ConfigMap == nil && d.Tool == "" && d.ChangedBy == "" {
		return nil
	}
	return &d
}

func endedOf(event pcommon.Map) *Ended {
	finished := text(event, "k8s.container.last_terminated.finished_at")
	if finished == "" { // The error of Parse would cost more than all other attributes.
		return nil
	}
	at, err := time.Parse(time.RFC3339, finished)
	if err != nil {
		return nil
	}
	return &Ended{
		Reason: cmp.Or(text(event, "k8s.container.status.last_terminated_reason"), "Error"), At: at.UTC(),
		ExitCode: integer(event, "process.exit.code"), Signal: integer(event, "k8s.container.last_terminated.signal"),
		MemoryLimit: integer(event, "k8s.container.memory.limit"),
	}
}

// changedConfigMap matches the sentence of the receiver.
var changedConfigMap = regexp.MustCompile(`^configmap (\S+) (changed|created) at (\S+) by (.+)$`)

func configMapChangeOf(sentence string) *ConfigMapChange {
	match := changedConfigMap.FindStringSubmatch(sentence)
	if match == nil {
		return nil
	}
	at, err := time.Parse(time.RFC3339, match[3])
	if err != nil {
		return nil
	}
	return &ConfigMapChange{match[1], match[4], at.UTC(), match[2] == "created"}
}

// texts returns the first values of a list.
func texts(m pcommon.Map, key string) (all []string) {
	value, ok := m.Get(key)
	if !ok || value.Type() != pcommon.ValueTypeSlice {
		return nil
	}
	for _, one := range value.Slice().All() {
		if len(all) < maxChanges {
			all = append(all, Cut(one.AsString(), maxName))
		}
	}
	return all
}

func integer(m pcommon.Map, key string) int64 {
	value, ok := m.Get(key)
	if !ok || value.Type() != pcommon.ValueTypeInt {
		return 0
	}
	return value.Int()
}

// Size is about how many bytes the details take.
func (d *Details) Size() int {
	if d == nil {
		return 0
	}
	size := 96 + len(d.Tool) + len(d.ChangedBy)
	for _, sentence := range d.Changes {
		size += 16 + len(sentence)
	}
	if d.Ended != nil {
		size += 80 + len(d.Ended.Reason)
	}
	if d.ConfigMap != nil {
		size += 64 + len(d.ConfigMap.Name) + len(d.ConfigMap.By)
	}
	return size
}
