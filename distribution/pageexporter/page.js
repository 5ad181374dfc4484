// SPDX-License-Identifier: Apache-2.0

// Keeps the page as the server would render it now. Without this script the page works, but stands still.
"use strict";

const cards = document.getElementById("cards");
const state = document.getElementById("state");

function element(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
}

// What was not there before is marked, so that one sees what happens.
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

function replacePart(html) {
  const fresh = element(html);
  const old = document.getElementById(fresh.id);
  // Somebody is choosing: the list must not close under the pointer.
  if (old && old.contains(document.activeElement) && document.activeElement.matches("select")) return;
  if (fresh.matches("article")) markNew(fresh, old);
  if (old) old.replaceWith(fresh);
  else cards.prepend(fresh);
}

function arrange(order) {
  const wanted = order === "" ? [] : order.split(" ");
  for (const card of Array.from(cards.children)) {
    if (!wanted.includes(card.id)) card.remove();
  }
  wanted.forEach((id, at) => {
    const card = document.getElementById(id);
    if (card && cards.children[at] !== card) cards.insertBefore(card, cards.children[at]);
  });
}

const updates = new EventSource("updates" + location.search);
updates.addEventListener("open", () => { state.value = "live"; state.className = "live"; });
updates.addEventListener("error", () => { state.value = "the Collector does not answer"; state.className = "lost"; });
updates.addEventListener("part", (event) => replacePart(event.data));
updates.addEventListener("order", (event) => arrange(event.data));

document.addEventListener("change", (event) => {
  if (event.target.matches("#facets select")) event.target.form.submit();
});
