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
	// updatePause is the least time between two updates of a page, so that a storm costs no more than that.
	updatePause = 500 * time.Millisecond
	// updateInterval is the most: the chart moves on while nothing happens.
	updateInterval = 5 * time.Second
	// writeTimeout is how long a browser may take for an update.
	writeTimeout = 10 * time.Second
)

// parts are the templates of what a page has one of, and the ids of their elements.
var parts = []string{"summary", "facets", "chart", "more"}

// updates answers with server-sent events: those parts of a page that have changed since they were sent last, and, where
// that has changed, the order of the cards, as an array of their ids.
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

// send writes the parts of the view that are others than those in sent, where it notes them.
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
	// The page drops cards that are not in the order, and needs them again when they come back.
	maps.DeleteFunc(sent, func(id, _ string) bool {
		return id != "order" && !slices.Contains(parts, id) && !slices.Contains(cards, id)
	})
	order, err := json.Marshal(cards) // A browser passes over events without data, which the names of no cards would be.
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
