// SPDX-License-Identifier: BSD-3-Clause
// Elements. Whatever comes from a file gets into the page as text alone.

const make = (tag, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
};

/** A name from a file, set apart from the text around it: it may be written from right to left. */
const name = (text) => make("bdi", { textContent: text });

const drawn = (tag, attributes = {}, ...children) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
};

/** A labelled list of choices; `texts` are [value, text to show]. */
function choice(label, texts, value, change) {
  const list = make("select", {}, ...texts.map(([one, text]) => make("option", { value: one, textContent: text })));
  list.value = value;
  list.addEventListener("change", () => change(list.value));
  return make("label", {}, make("span", { textContent: label }), list);
}

/** A box of a table or a picture that scrolls by itself, also by keys. */
function scrolled(label, ...children) {
  const box = make("div", { className: "scroll", tabIndex: 0 }, ...children);
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", label);
  return box;
}
