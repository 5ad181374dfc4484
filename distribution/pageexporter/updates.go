// SPDX-License-Identifier: Apache-2.0

package pageexporter

import (
	"bytes"
	"net/http"
	"strings"
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

// updates answers with server-sent events: those parts of a page that have changed since they were sent last, and, where
// that has changed, the order of the cards.
type updates struct {
	board *board
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
	changed, stop := u.board.watch()
	defer stop()
	sent := map[string]string{}
	interval := time.NewTicker(updateInterval)
	defer interval.Stop()
	for {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
		if err := send(session, u.board.see(filterFrom(r.URL.Query())), sent); err != nil {
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
	order := make([]string, len(v.Cards))
	for i := range v.Cards {
		order[i] = v.Cards[i].ID
	}
	for _, name := range []string{"summary", "facets", "chart", "more"} {
		if err := sendPart(session, name, name, v, sent); err != nil {
			return err
		}
	}
	for i := range v.Cards {
		if err := sendPart(session, v.Cards[i].ID, "card", &v.Cards[i], sent); err != nil {
			return err
		}
	}
	if err := sendIfNew(session, "order", "", strings.Join(order, " "), sent); err != nil {
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
	if last, ok := sent[kind+id]; ok && last == data {
		return nil
	}
	sent[kind+id] = data
	message := &sse.Message{Type: sse.Type(kind)}
	message.AppendData(data)
	return session.Send(message)
}
