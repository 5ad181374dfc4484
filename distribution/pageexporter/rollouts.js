// SPDX-License-Identifier: Apache-2.0

// Keeps the timeline of rollouts as the viewer left it while the server replaces its card. Without
// this script it can be opened and closed, too: it is made of <details>.
"use strict";

{
  const opened = new Map(); // what the viewer opened or closed, by the ids of spans
  let focused = null; // the span whose summary has the keyboard focus

  const spanOf = (summary) => summary?.closest("details").dataset.span;

  cards.addEventListener("click", (event) => {
    const details = event.target.closest("summary")?.closest("details");
    if (details) opened.set(details.dataset.span, !details.open);
  });
  document.addEventListener("focusin", (event) => {
    focused = spanOf(event.target.closest("summary")) ?? null;
  });
  document.addEventListener("pointerdown", () => {
    focused = null;
  });

  // Marks the record that the address names. A browser forgets it when the card is replaced.
  function point() {
    for (const old of cards.querySelectorAll(".target")) old.classList.remove("target");
    const hash = decodeURIComponent(location.hash.slice(1));
    if (hash.startsWith("record-")) document.getElementById(hash)?.classList.add("target");
  }
  window.addEventListener("hashchange", point);

  new MutationObserver(() => {
    point();
    for (const details of cards.querySelectorAll("details[data-span]")) {
      const open = opened.get(details.dataset.span);
      if (open !== undefined && details.open !== open) details.open = open;
    }
    if (focused && document.activeElement === document.body) {
      cards.querySelector(`details[data-span="${focused}"] > summary`)?.focus({preventScroll: true});
    }
  }).observe(cards, {childList: true});
  point();
}
