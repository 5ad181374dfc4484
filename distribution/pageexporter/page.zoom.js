// SPDX-License-Identifier: Apache-2.0

// Zooms the chart: a viewer drags over it, or sets two sliders. The zoom is a filter: it is in the
// address.
"use strict";

const zoom = document.getElementById("zoom");
const {start, end, reset} = zoom.elements;
const shortestDrag = 5; // pixels; less is a click
let range = null; // what the viewer chooses before it is applied: from and until, in seconds
let drag = null; // the chart and the place where the viewer began to drag

// Returns the time that the chart shows, in seconds.
function charted() {
  const {from, end, each} = document.getElementById("chart").dataset;
  return {from: Date.parse(from) / 1000, end: Date.parse(end) / 1000, each: Number(each)};
}

function setSlider(slider, value, low, high, each) {
  Object.assign(slider, {min: low, max: high, step: each, value});
  const text = clock.format(new Date(value * 1000));
  slider.setAttribute("aria-valuetext", text);
  slider.nextElementSibling.value = text;
}

// Shows the range in the sliders and on the chart.
function showRange() {
  const {from, end: until, each} = charted();
  if (range && (range[1] <= from || range[0] >= until)) range = null; // the chart has moved on
  const [first, last] = range ?? [from, until];
  setSlider(start, Math.max(first, from), from, until, each);
  setSlider(end, Math.min(last, until), from, until, each);
  reset.hidden = !filters.elements.from.value;

  const svg = document.querySelector("#chart svg");
  svg.querySelector(".range")?.remove();
  if (!range) return;
  const mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const percent = (time) => 100 * (time - from) / (until - from);
  for (const [name, value] of Object.entries({class: "range", x: percent(start.value), width: percent(end.value) - percent(start.value), y: 0, height: 100})) {
    mark.setAttribute(name, value);
  }
  svg.append(mark);
}

// Returns the whole bars between two places of the window.
function barsBetween(x, y) {
  const box = document.querySelector("#chart svg").getBoundingClientRect();
  const {from, end: until, each} = charted();
  const bars = (until - from) / each;
  const [left, right] = [Math.min(x, y), Math.max(x, y)].map((place) => Math.min(1, Math.max(0, (place - box.left) / box.width)) * bars);
  const first = Math.min(Math.floor(left), bars - 1);
  return [from + first * each, from + Math.max(Math.ceil(right), first + 1) * each];
}

// Shows the time of the range only. Without one, it shows all the time again.
function applyZoom(to) {
  const moments = to?.map((time) => new Date(time * 1000).toISOString().replace(".000", "")) ?? ["", ""];
  range = null;
  [filters.elements.from.value, filters.elements.until.value] = moments;
  apply(false);
  if (!to) start.focus();
}

function endDrag() {
  drag.svg.classList.remove("dragged");
  drag = null;
  range = null;
  showRange();
  replacePostponed();
}

document.addEventListener("pointerdown", (event) => {
  const svg = event.target.closest("#chart svg");
  if (!svg || event.button !== 0) return;
  svg.setPointerCapture(event.pointerId);
  svg.classList.add("dragged"); // No update replaces the chart now.
  drag = {svg, x: event.clientX};
});
document.addEventListener("pointermove", (event) => {
  if (!drag) return;
  range = barsBetween(drag.x, event.clientX);
  showRange();
});
document.addEventListener("pointerup", (event) => {
  if (!drag) return;
  const dragged = Math.abs(event.clientX - drag.x) >= shortestDrag ? barsBetween(drag.x, event.clientX) : null;
  endDrag();
  if (dragged) applyZoom(dragged);
});
document.addEventListener("pointercancel", () => drag && endDrag());
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || (!drag && !range)) return;
  if (drag) endDrag();
  range = null;
  showRange();
});

zoom.addEventListener("input", (event) => {
  const {from, end: until, each} = charted();
  let [first, last] = [Number(start.value), Number(end.value)];
  // At least one bar is between the sliders: one slider pushes the other.
  if (event.target === start) last = Math.max(last, (first = Math.min(first, until - each)) + each);
  else first = Math.min(first, (last = Math.max(last, from + each)) - each);
  range = [first, last];
  showRange();
});
zoom.addEventListener("submit", (event) => {
  event.preventDefault();
  if (range) applyZoom(range);
});
reset.addEventListener("click", () => applyZoom(null));

// Who chooses how far back the page looks does not want the zoom. This is before the page reads the
// form.
filters.addEventListener("input", (event) => {
  if (event.target.name === "minutes") filters.elements.from.value = filters.elements.until.value = "";
}, {capture: true});

document.addEventListener("replaced", (event) => {
  if (event.target.id === "chart") showRange();
});
showRange();
