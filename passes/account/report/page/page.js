// The page: header, tabs, the view and the details that the address selects, and keyboard shortcuts.

const VIEWS = {
  ...(found.findings && { findings: findingsView }),
  collectives: collectivesView, memory: memoryView,
  arrays: arraysView,
  program: programView,
};
if (found.hardware) VIEWS.time = timeView;
if (found.python !== null) VIEWS.python = pythonView;

const viewElement = document.getElementById("view");
const detailsElement = document.getElementById("details");
const search = make("input", { type: "search", placeholder: "search, or press /", "aria-label": "search" });
let current = { view: "", show: null };

function drawTop() {
  const meshes = found.meshes.map(
    ({ name, axes }) => `@${name} ${axes.map(([axis, size]) => `${axis}=${size}`).join(", ")}`,
  );
  const compiled = found.compiled && [
    "compiled: ",
    shownBytes(found.compiled.received),
    " received, ",
    found.compiled.memory === null ? "" : `${shownBytes(found.compiled.memory)} of memory`,
  ];
  document
    .getElementById("facts")
    .replaceChildren(
      ...[meshes.join("; "), found.hardware, compiled && compiled.join("")]
        .filter(Boolean)
        .map((text) => make("span", { class: "chip", dir: "auto" }, text)),
    );
  const paragraphs = [found.findings?.headline ?? [], found.headline].filter((sentences) => sentences.length);
  document
    .getElementById("headline")
    .replaceChildren(
      ...paragraphs.map((sentences) => make("p", { dir: "auto" }, sentences.join(" "))),
      ...[found.partitioned, ...found.notes].map((text) => make("p", { class: "quiet" }, text)),
      ...(found.under ? [drawUnder(found.under)] : []),
    );
}

// The collectives of the program as XLA partitions it.
function drawUnder({ summary, collectives }) {
  const rows = collectives.map(([kind, times, bytes, number, where]) =>
    make(
      "tr",
      {},
      ...[kind, times.toLocaleString("en"), shownBytes(bytes)].map((text) => make("td", {}, text)),
      make("td", {}, number === NONE ? where : placeLink(place(number))),
    ),
  );
  return make("details", { class: "under" }, make("summary", {}, summary), make("table", {}, ...rows));
}

function drawTabs() {
  const tabs = Object.keys(VIEWS).map((name) =>
    link({ view: name }, { class: "tab", "aria-current": address.view === name ? "page" : null }, name),
  );
  document.querySelector("nav").replaceChildren(...tabs, search);
}

function drawView() {
  const name = address.view in VIEWS ? address.view : FIRST_VIEW;
  const view = VIEWS[name](address.search);
  viewElement.replaceChildren(view.element);
  viewElement.dataset.none = view.none;
  current = { ...current, name, view, search: address.search };
  if (search.value !== address.search) search.value = address.search;
  drawTabs();
}

function drawDetails() {
  detailsElement.hidden = !address.show;
  document.body.classList.toggle("has-details", Boolean(address.show));
  if (!address.show) return;
  const close = make(
    "button",
    { type: "button", class: "close", "aria-label": "close", onclick: () => go({ show: "" }) },
    "✕",
  );
  detailsElement.replaceChildren(close, ...detailsOf(address.show).filter((child) => child != null && child !== false));
  detailsElement.scrollTop = 0;
}

function render() {
  address = readAddress();
  const isOther = current.name !== address.view || current.search !== address.search;
  if (isOther || (address.view === "program" && current.show !== address.show && shownRow() !== NONE)) drawView();
  else current.view.refresh();
  if (current.show !== address.show) drawDetails();
  current.show = address.show;
}

function find() {
  goQuietly({ search: search.value });
  current.search = search.value;
  current.view.find(search.value);
}

function pressed(event) {
  const isTyping = event.target.closest("input");
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    search.focus();
  } else if (event.key === "Escape" && isTyping) {
    document.querySelector(".rows")?.focus();
  } else if (event.key === "Escape" && address.show) {
    go({ show: "" });
    document.querySelector(".rows")?.focus({ preventScroll: true });
  } else if (!isTyping && !event.ctrlKey && !event.metaKey && !event.altKey && Object.keys(VIEWS)[event.key - 1]) {
    go({ view: Object.keys(VIEWS)[event.key - 1] });
  }
}

function switchTheme() {
  const isDark =
    (document.documentElement.dataset.theme ??
      (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  document.documentElement.dataset.theme = isDark ? "light" : "dark";
}

search.addEventListener("input", find);
document.addEventListener("keydown", pressed);
document.getElementById("theme").addEventListener("click", switchTheme);
addEventListener("hashchange", render);
drawTop();
drawView();
drawDetails();
current.show = address.show;
