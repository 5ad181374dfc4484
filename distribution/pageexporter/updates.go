// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/tmaxmax/go-sse"
)

const (
	// updatePause is the minimum time between two updates of a page. It bounds the cost of a storm.
	updatePause = 500 * time.Millisecond
	// updateInterval is the maximum time between two updates: the chart moves on while nothing
	// happens.
	updateInterval = 5 * time.Second
	// writeTimeout is how long a browser may take to read an update.
	writeTimeout = 10 * time.Second
)

// updates answers with server-sent events. It sends the parts of a page that have changed since it
// last sent them. It sends the order of the list of workloads, an array of ids, if the order has
// changed.
type updates struct {
	store *store
	ended <-chan struct{}
}

// ServeHTTP implements http.Handler.
func (u *updates) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	session, err := sse.Upgrade(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx then passes each update on at once
	changed, stop := u.store.watch()
	defer stop()
	sent := map[string]string{}
	interval := time.NewTicker(updateInterval)
	defer interval.Stop()
	for {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
		if err := send(session, u.store.see(filterFrom(r.URL.Query())), sent); err != nil {
			return
		}
		select {
		case <-changed:
		case <-interval.C:
			if err := session.Send(&keepAlive); err != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-u.ended:
			return
		}
		select {
		case <-time.After(updatePause):
		case <-u.ended:
			return
		}
	}
}

// keepAlive is a comment: browsers ignore it. Proxies close a connection that is silent for a
// minute.
var keepAlive = func() (comment sse.Message) {
	comment.AppendComment("no change")
	return comment
}()

// part is an element of the page that updates replace.
type part struct {
	id, template string
	data         any
}

// parts returns the elements that are on the page once, and those of the list of workloads in their
// order: headings and cards.
func (v *view) parts() (once, listed []part) {
	for _, f := range v.Facets {
		once = append(once, part{f.ID(), "facet", f})
	}
	for _, name := range []string{"standby", "summary", "chosen", "chart", "more"} {
		once = append(once, part{name, name, v})
	}
	for i := range v.Cards {
		if i == 0 {
			listed = append(listed, part{"troubled", "troubled", v})
		}
		if i == v.Urgent {
			listed = append(listed, part{"others", "others", v})
		}
		listed = append(listed, part{v.Cards[i].ID, "card", &v.Cards[i]})
	}
	return once, listed
}

// send writes the parts of the view that differ from those in sent, and records them in sent.
func send(session *sse.Session, v view, sent map[string]string) error {
	once, listed := v.parts()
	order := make([]string, len(listed))
	for i, p := range listed {
		order[i] = p.id
	}
	for _, p := range append(once, listed...) {
		if err := sendPart(session, p, sent); err != nil {
			return err
		}
	}
	// The page drops what is not in the order. If it comes back, send must write it again.
	maps.DeleteFunc(sent, func(id, _ string) bool {
		return id != "order" && !slices.Contains(order, id) && !slices.ContainsFunc(once, func(p part) bool { return p.id == id })
	})
	// A browser ignores events without data. An empty array is data.
	ids, err := json.Marshal(order)
	if err != nil {
		return err
	}
	if err := sendIfNew(session, "order", "order", string(ids), sent); err != nil {
		return err
	}
	return session.Flush()
}

func sendPart(session *sse.Session, p part, sent map[string]string) error {
	var html bytes.Buffer
	if err := templates.ExecuteTemplate(&html, p.template, p.data); err != nil {
		return err
	}
	return sendIfNew(session, "part", p.id, html.String(), sent)
}

func sendIfNew(session *sse.Session, kind, id, data string, sent map[string]string) error {
	if sent[id] == data {
		return nil
	}
	sent[id] = data
	message := &sse.Message{Type: sse.Type(kind)}
	message.AppendData(data)
	return session.Send(message)
}
