// SPDX-License-Identifier: Apache-2.0

// Keeps the page up to date, and shows times in the viewer's time zone. Without this script the page
// works: a button applies the filters, and times are in UTC.
"use strict";

const content = document.getElementById("content");
const filters = document.getElementById("filters");
const state = document.getElementById("state");
const news = document.getElementById("news");
const pause = 2000; // milliseconds between two requests

// --- Times: the server writes them in UTC. ---

const clock = new Intl.DateTimeFormat(undefined, {hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23"});
const moment = new Intl.DateTimeFormat(undefined, {dateStyle: "full", timeStyle: "long"});

function localize(root) {
  for (const element of root.querySelectorAll("time")) {
    const at = new Date(element.dateTime);
    element.textContent = clock.format(at);
    element.title = moment.format(at);
  }
  for (const title of root.querySelectorAll("svg title")) {
    title.textContent = title.textContent.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, (text) => clock.format(new Date(text)));
  }
}

// A field for a time has no time zone: it shows the viewer's.
const fields = [filters.elements.from, filters.elements.until];
for (const field of fields) {
  if (!field.value) continue;
  const at = new Date(field.value + "Z");
  field.value = new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
}

filters.addEventListener("submit", (event) => {
  event.preventDefault();
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(filters)) {
    if (value && !(name === "minutes" && fields.some((field) => field.value))) query.set(name, value);
  }
  for (const field of fields) {
    if (field.value) query.set(field.name, new Date(field.value).toISOString().replace(/\.\d+/, ""));
  }
  location.search = query;
});
filters.addEventListener("change", (event) => {
  if (event.target.name === "minutes") for (const field of fields) field.value = "";
  if (event.target.matches("select")) filters.requestSubmit();
});

// --- Updates ---

let etag = "";
let fetched = null; // an answer that waits until the viewer is done with the content
const opened = new Map(); // what the viewer opened or closed

// Reports whether the viewer selects text, to copy it.
function isInUse() {
  const selection = document.getSelection();
  return !selection.isCollapsed && content.contains(selection.anchorNode);
}

const problems = () => new Map(Array.from(content.querySelectorAll("article.current"), (each) => [each.dataset.id, each.querySelector("h3").textContent.trim()]));

// Finds the link or the summary that had the keyboard focus.
function describe(element) {
  const owner = element.closest("[data-key], [data-id], [id]");
  return [element.localName, element.getAttribute("href"), owner.dataset.key, owner.dataset.id].join("\n");
}

function replace(html) {
  const before = problems();
  const focused = content.contains(document.activeElement) && document.activeElement !== content ? describe(document.activeElement) : null;
  content.innerHTML = html;
  localize(content);
  for (const details of content.querySelectorAll("details")) {
    if (opened.has(details.dataset.key)) details.open = opened.get(details.dataset.key);
  }
  if (focused) Array.from(content.querySelectorAll("a, summary")).find((each) => describe(each) === focused)?.focus({preventScroll: true});
  point();
  const names = Array.from(problems()).filter(([id]) => !before.has(id)).map(([, name]) => name);
  if (names.length) news.textContent = "New problems: " + names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more` : "");
}

function show(text, name) {
  if (state.value !== text) state.value = text;
  state.className = name;
}

async function update() {
  try {
    const response = await fetch("content" + location.search, {headers: etag ? {"If-None-Match": etag} : {}, signal: AbortSignal.timeout(30000)});
    if ([200, 400, 404].includes(response.status)) { // An error is shown, too.
      fetched = await response.text();
      etag = response.headers.get("ETag");
    } else if (response.status !== 304) {
      throw new Error(response.statusText);
    }
    show("live", "live");
  } catch {
    show("the Collector does not answer", "lost");
  }
}

async function follow() {
  if (document.hidden) {
    show("paused", "paused");
  } else {
    await update();
    if (fetched !== null && !isInUse()) {
      replace(fetched);
      fetched = null;
    }
  }
  setTimeout(follow, pause);
}

content.addEventListener("click", (event) => {
  const details = event.target.closest("summary")?.parentElement;
  if (details) opened.set(details.dataset.key, !details.open);
});

// Marks the record that the address names. A browser forgets it when the content is replaced.
function point() {
  for (const old of content.querySelectorAll(".target")) old.classList.remove("target");
  const hash = decodeURIComponent(location.hash.slice(1));
  if (hash.startsWith("record-")) document.getElementById(hash)?.classList.add("target");
}
window.addEventListener("hashchange", point);

document.querySelector("#zone span").textContent = clock.resolvedOptions().timeZone;
localize(document);
point();
follow();
