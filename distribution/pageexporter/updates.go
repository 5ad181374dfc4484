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

// parts are the templates that a page contains once. Their names are also the ids of their
// elements.
var parts = []string{"summary", "facets", "chart", "more"}

// updates answers with server-sent events. It sends the parts of a page that have changed since it
// last sent them. It sends the order of the cards, an array of their ids, if the order has changed.
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

// send writes the parts of the view that differ from those in sent, and records them in sent.
func send(session *sse.Session, v view, sent map[string]string) error {
	for _, name := range parts {
		if err := sendPart(session, name, name, v, sent); err != nil {
			return err
		}
	}
	cards := make([]string, len(v.Cards))
	for i := range v.Cards {
		cards[i] = v.Cards[i].ID
		if err := sendPart(session, cards[i], "card", &v.Cards[i], sent); err != nil {
			return err
		}
	}
	// The page drops cards that are not in the order. If a card comes back, send must write it
	// again.
	maps.DeleteFunc(sent, func(id, _ string) bool {
		return id != "order" && !slices.Contains(parts, id) && !slices.Contains(cards, id)
	})
	// A browser ignores events without data. An empty array is data.
	order, err := json.Marshal(cards)
	if err != nil {
		return err
	}
	if err := sendIfNew(session, "order", "order", string(order), sent); err != nil {
		return err
	}
	return session.Flush()
}

func sendPart(session *sse.Session, id, template string, data any, sent map[string]string) error {
	var html bytes.Buffer
	if err := templates.ExecuteTemplate(&html, template, data); err != nil {
		return err
	}
	return sendIfNew(session, "part", id, html.String(), sent)
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
