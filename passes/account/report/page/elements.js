// DOM elements. All text is set as text nodes, so that markup in names is displayed and not interpreted.

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  return fill(element, attributes, children);
}

function draw(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return fill(element, attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, given] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), given);
    else if (name.startsWith("--")) element.style.setProperty(name, given);
    else if (given === true) element.setAttribute(name, "");
    else if (given !== false && given != null) element.setAttribute(name, given);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

const AMOUNTS = new Set(["received", "avoidable", "bytes per device", "compute time"]);
const headings = (...names) => names.map((name) => make("span", { class: AMOUNTS.has(name) ? "amount" : "" }, name));

// Text with its own direction, so that right-to-left characters in a name do not affect their surroundings.
const code = (text, attributes) => make("code", { dir: "auto", ...attributes }, text);
