// SPDX-License-Identifier: Apache-2.0

// Returns the texts whose contrast is below 4.5, which WCAG 2.2 asks for at level AA.
(() => {
  const channels = (color) => color.match(/[\d.]+/g).map(Number);

  function luminance(color) {
    const [red, green, blue] = channels(color).map((channel) => {
      const part = channel / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }

  function background(element) {
    for (; element; element = element.parentElement) {
      const color = getComputedStyle(element).backgroundColor;
      if (channels(color)[3] !== 0) return color;
    }
    return "rgb(255, 255, 255)";
  }

  function contrast(text, back) {
    const [dark, light] = [luminance(text), luminance(back)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  }

  const poor = [];
  function check(what, text, back) {
    if (contrast(text, back) < 4.5) poor.push(`${what}: ${text} on ${back}`);
  }

  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, (node) =>
    node.data.trim() && node.parentElement.checkVisibility() && !node.parentElement.closest("svg, option") ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    check(texts.currentNode.data.trim(), getComputedStyle(element).color, background(element));
  }
  for (const field of document.querySelectorAll("select, input")) {
    check(field.name, getComputedStyle(field).color, background(field));
  }
  for (const mark of document.querySelectorAll(".mark")) {
    const style = getComputedStyle(mark, "::before");
    check("the mark of a warning", style.color, style.backgroundColor);
  }
  return poor;
})()
