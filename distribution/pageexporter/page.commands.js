// SPDX-License-Identifier: Apache-2.0

// Shows kubectl commands about an object, to copy, and filters for its kind and its name.
"use strict";

const commands = document.getElementById("commands");
const told = commands.querySelector("[role=status]");

// Copies the text of an element, and reports whether it has. A page that does not come from this
// machine, or over HTTPS, may not use the clipboard, but may copy what is selected.
async function copy(source) {
  try {
    await navigator.clipboard.writeText(source.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(source);
    return document.execCommand("copy");
  }
}

function commandRow(text) {
  const row = document.createElement("li");
  const code = document.createElement("code");
  const button = document.createElement("button");
  code.textContent = text;
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy " + text);
  button.addEventListener("click", async () => {
    const copied = await copy(code);
    for (const other of commands.querySelectorAll("li button")) other.textContent = "Copy";
    if (copied) button.textContent = "Copied";
    told.textContent = copied ? "Copied: " + text : "The browser does not allow it. The command is selected: copy it with the keyboard.";
  });
  row.append(code, button);
  return row;
}

// Returns a link of the object's, for the keyboard.
function filterFor(link) {
  const own = document.createElement("a");
  own.href = link.getAttribute("href");
  own.textContent = link.textContent;
  return own;
}

function showCommands(button) {
  const object = button.closest(".object");
  const texts = button.dataset.commands.split("\n").filter(Boolean);
  commands.querySelector("#commands-of").textContent = object.title;
  commands.querySelector("#commands-filters").replaceChildren("Filter by its kind: ", filterFor(object.querySelector("a.kind")),
    " or its name: ", filterFor(object.querySelector("a.name")));
  commands.querySelector("ul").replaceChildren(...texts.map(commandRow));
  told.textContent = texts.length ? "" : "Kubernetes allows no object with this name, so there are no commands.";
  commands.showModal();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest(".kubectl");
  if (button) showCommands(button);
});
commands.addEventListener("click", (event) => {
  if (event.target.closest("a, [name=close]")) commands.close();
  // The listener for all links shows what the link selects. The focus may not return to the button:
  // the key that follows the link would then press it.
  if (event.target.closest("a")) cards.focus({preventScroll: true});
});
commands.addEventListener("close", () => {
  if (document.activeElement !== document.body) return;
  // An update has replaced the button that the browser would return the focus to.
  const of = "Commands and filters for " + commands.querySelector("#commands-of").textContent;
  Array.from(document.querySelectorAll(".kubectl")).find((button) => button.ariaLabel === of)?.focus({preventScroll: true});
});
