// SPDX-License-Identifier: Apache-2.0

// Keeps the page up to date, and shows another selection without loading the page again. Without
// this script the page works: a button applies the filters, and times are in UTC.
"use strict";

const cards = document.getElementById("cards");
const filters = document.getElementById("filters");
const state = document.getElementById("state");

// --- Times: the server writes them in UTC. ---

const time = {hour: "2-digit", minute: "2-digit", hourCycle: "h23"};
const minute = new Intl.DateTimeFormat(undefined, time);
const clock = new Intl.DateTimeFormat(undefined, {...time, second: "2-digit"});
const moment = new Intl.DateTimeFormat(undefined, {dateStyle: "full", timeStyle: "long"});

// Shows times in the viewer's time zone.
function localize(root) {
  for (const element of root.querySelectorAll("time")) {
    const at = new Date(element.dateTime);
    element.textContent = (element.matches(".minute") ? minute : clock).format(at);
    element.title = moment.format(at);
  }
  for (const title of root.querySelectorAll("svg title")) {
    title.textContent = title.textContent.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, (text) => clock.format(new Date(text)));
  }
}

// --- Parts: elements that the server sends when they change. ---

const postponed = new Map(); // new parts by their ids, while the old ones are in use
let postponedOrder = null; // the ids of the cards in their new order, while a card is in use
let arriving = false; // after a change of the filters, until the new selection is complete

function element(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  localize(template.content);
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

// Keeps the keyboard focus at the same link or button of the part, if it is still there.
function keepFocus(change) {
  const link = document.activeElement?.closest("[id] :is(a, .kubectl)");
  const part = link?.closest("[id]");
  change();
  if (link && document.activeElement !== link) {
    const links = Array.from(document.getElementById(part.id)?.querySelectorAll("a, .kubectl") ?? []);
    links.find((other) => ["href", "aria-label"].every((name) => other.getAttribute(name) === link.getAttribute(name)))?.focus({preventScroll: true});
  }
}

// Reports whether a list is open in the part, or a viewer drags over it, or selects its text to copy
// it.
function isInUse(part) {
  const active = document.activeElement;
  const selection = document.getSelection();
  return (active.matches("select") && part.contains(active)) || part.querySelector(".dragged") !== null ||
    (!selection.isCollapsed && part.contains(selection.anchorNode) && part.contains(selection.focusNode));
}

function replacePart(html) {
  const fresh = element(html);
  const old = document.getElementById(fresh.id);
  if (old && isInUse(old)) {
    postponed.set(fresh.id, html);
    return;
  }
  postponed.delete(fresh.id);
  if (fresh.matches("article") && !arriving) markNew(fresh, old);
  if (old) old.replaceWith(fresh);
  else cards.prepend(fresh);
  fresh.dispatchEvent(new Event("replaced", {bubbles: true}));
}

function replacePostponed() {
  for (const [id, html] of Array.from(postponed)) {
    const old = document.getElementById(id);
    if (!old) postponed.delete(id);
    else if (!isInUse(old)) keepFocus(() => replacePart(html));
  }
  if (postponedOrder) keepFocus(() => arrange(postponedOrder));
}

// Puts the cards in order and removes those that are not in it. A card that is moved loses its
// selected text: while a viewer selects text, no card is moved, and that one stays.
function arrange(order) {
  const keeps = (card) => !arriving && isInUse(card);
  for (const child of Array.from(cards.children)) {
    if (!order.includes(child.id) && !keeps(child)) child.remove();
  }
  postponedOrder = Array.from(cards.children).some(keeps) ? order : null;
  if (postponedOrder) return;
  order.forEach((id, at) => {
    const child = document.getElementById(id);
    if (child && cards.children[at] !== child) cards.insertBefore(child, cards.children[at]);
  });
}

// --- News: for those who hear the page. ---

const warned = () => Array.from(cards.querySelectorAll("article.warning"));
const idsOf = (elements) => new Set(elements.map((each) => each.id));
let warnedBefore = idsOf(warned());

function tell(text) {
  document.getElementById("news").textContent = text;
}

// Tells of workloads that have their first warning.
function tellWarnings() {
  const fresh = warned().filter((card) => !warnedBefore.has(card.id));
  warnedBefore = idsOf(warned());
  if (fresh.length === 0) return;
  const names = fresh.slice(0, 3).map((card) => card.querySelector("h3").textContent.trim()).join(", ");
  tell("New warnings: " + names + (fresh.length > 3 ? ` and ${fresh.length - 3} more` : ""));
}

// Ends a change of the filters: the new selection is there.
function arrived() {
  arriving = false;
  cards.removeAttribute("aria-busy");
  warnedBefore = idsOf(warned());
  tell(document.querySelector("#summary span").textContent);
  // The link that was followed may be gone.
  if (document.activeElement === document.body) cards.focus({preventScroll: true});
}

// --- Updates ---

let updates = null;

function show(text, name) {
  if (state.value !== text) state.value = text;
  state.className = name;
}

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
  updates.addEventListener("order", (event) => {
    keepFocus(() => arrange(JSON.parse(event.data)));
    if (arriving) arrived();
    else tellWarnings();
  });
}

document.addEventListener("visibilitychange", follow);
document.addEventListener("focusout", () => setTimeout(replacePostponed));
document.addEventListener("selectionchange", replacePostponed);

// --- Filters: they are in the address, so that it can be shared and the history works. ---

let shown = location.search;
let typing = 0; // the timer that waits for the next letter

// Returns the address of the page with the filters of the form.
function address() {
  const query = new URLSearchParams(new FormData(filters));
  for (const [name, value] of Array.from(query)) {
    const control = filters.elements[name];
    if (value.trim() === "" || (control.options && value === control.options[0].value)) query.delete(name);
  }
  query.sort();
  return query.toString() ? "?" + query : location.pathname;
}

// Sets the form to the filters of the address.
function fillForm() {
  const query = new URLSearchParams(location.search);
  for (const control of filters.elements) {
    const value = query.get(control.name) ?? "";
    if (control.type === "checkbox") {
      control.checked = value === control.value;
    } else if (control.matches("select, input") && control.value !== value) {
      control.value = value;
      if (control.selectedIndex < 0) control.selectedIndex = 0;
    }
  }
}

// Shows what the address selects.
function select() {
  clearTimeout(typing);
  shown = location.search;
  postponedOrder = null;
  arriving = true;
  cards.setAttribute("aria-busy", "true");
  fillForm();
  follow();
}

// Applies the filters of the form. A name is one step of the history, not one for each letter.
function apply(typed) {
  clearTimeout(typing);
  const next = new URL(address(), location);
  if (next.search === location.search) return;
  if (typed && history.state?.typed) history.replaceState({typed}, "", next);
  else history.pushState({typed}, "", next);
  select();
}

filters.addEventListener("input", (event) => {
  clearTimeout(typing);
  if (event.target.type === "search") typing = setTimeout(apply, 200, true);
  else apply(false);
});
filters.addEventListener("submit", (event) => {
  event.preventDefault();
  apply(true);
});
window.addEventListener("popstate", () => {
  if (location.search !== shown) select();
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || link.hash) return;
  if (link.origin !== location.origin || link.pathname !== location.pathname) return;
  event.preventDefault();
  window.scrollTo(0, 0);
  if (link.search === location.search) return;
  history.pushState({typed: false}, "", link.href);
  select();
});

document.querySelector("#zone span").textContent = clock.resolvedOptions().timeZone;
localize(document);
follow();
