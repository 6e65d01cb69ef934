// State in the URL fragment, such as #view=collectives&show=c3&search=dot, so that a view can be shared.

const FIRST_VIEW = found.findings?.items.length ? "findings" : "collectives";

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  return { view: given.get("view") ?? FIRST_VIEW, show: given.get("show") ?? "", search: given.get("search") ?? "" };
}

let address = readAddress();

function hashOf(changes) {
  const entries = Object.entries({ ...address, ...changes }).filter(([, text]) => text);
  return `#${new URLSearchParams(entries)}`;
}

function go(changes) {
  location.hash = hashOf(changes);
}

// Replace the current entry of the browser's history, so that typing does not add an entry per letter.
function goQuietly(changes) {
  const hash = hashOf(changes);
  address = { ...address, ...changes };
  try {
    history.replaceState(null, "", hash);
  } catch {
    // An iframe with srcdoc, as in a notebook, cannot change its address.
  }
}

function link(changes, attributes, ...children) {
  const follow = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    go(changes);
  };
  return make("a", { href: hashOf(changes), onclick: follow, ...attributes }, ...children);
}

const placeLink = (at) =>
  at &&
  link({ show: `p${at.number}` }, { class: "place", title: `${at.file}:${at.line}:${at.column}` }, shortPlace(at));
const valueLink = (number) => link({ show: `v${number}` }, { class: "value" }, code(value(number).name));
const rowLink = (number) => link({ show: `r${number}` }, { class: "op" }, row(number).op);
