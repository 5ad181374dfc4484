// SPDX-License-Identifier: Apache-2.0

// Keeps the page up to date. Without this script the page works, but does not change.
"use strict";

const cards = document.getElementById("cards");
const state = document.getElementById("state");

function element(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
}

// Marks what was not there before.
function markNew(fresh, old) {
  if (!old) {
    fresh.classList.add("new");
    return;
  }
  const known = new Set(Array.from(old.querySelectorAll("tr[data-id]"), (row) => row.dataset.id));
  for (const row of fresh.querySelectorAll("tr[data-id]")) {
    if (!known.has(row.dataset.id)) row.classList.add("new");
  }
}

// Keeps the keyboard focus at the same link of the part, if the link is still there.
function keepFocus(change) {
  const link = document.activeElement?.closest("[id] a");
  const part = link?.closest("[id]");
  change();
  if (link && document.activeElement !== link) {
    const links = Array.from(document.getElementById(part.id)?.querySelectorAll("a") ?? []);
    links.find((other) => other.getAttribute("href") === link.getAttribute("href"))?.focus({preventScroll: true});
  }
}

let postponed = null; // the filters, while a list is open: it must not close under the pointer

function replacePart(html) {
  const fresh = element(html);
  const old = document.getElementById(fresh.id);
  if (old?.contains(document.activeElement) && document.activeElement.matches("select")) {
    postponed = html;
    return;
  }
  if (fresh.matches("article")) markNew(fresh, old);
  if (old) old.replaceWith(fresh);
  else cards.prepend(fresh);
}

function arrange(order) {
  for (const card of Array.from(cards.children)) {
    if (!order.includes(card.id)) card.remove();
  }
  order.forEach((id, at) => {
    const card = document.getElementById(id);
    if (card && cards.children[at] !== card) cards.insertBefore(card, cards.children[at]);
  });
}

function show(text, name) {
  state.value = text;
  state.className = name;
}

let updates = null;

function follow() {
  updates?.close();
  if (document.hidden) {
    // A browser has six connections to a server. Hidden tabs must not use them up.
    show("paused", "paused");
    return;
  }
  updates = new EventSource("updates" + location.search);
  updates.addEventListener("open", () => show("live", "live"));
  updates.addEventListener("error", () => {
    show("the Collector does not answer", "lost");
    // The browser reconnects, but not after an error response, such as that of a proxy in front of
    // the Collector.
    if (updates.readyState === EventSource.CLOSED) setTimeout(follow, 3000);
  });
  updates.addEventListener("part", (event) => keepFocus(() => replacePart(event.data)));
  updates.addEventListener("order", (event) => keepFocus(() => arrange(JSON.parse(event.data))));
}

document.addEventListener("visibilitychange", follow);
follow();

document.addEventListener("focusout", (event) => {
  if (postponed === null || event.relatedTarget?.closest("#facets")) return;
  const html = postponed;
  postponed = null;
  replacePart(html);
});
document.addEventListener("change", (event) => {
  if (event.target.matches("#facets select")) event.target.form.submit();
});
