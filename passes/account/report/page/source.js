// Excerpt of the source file around a location.

const SHOWN_AROUND = 4;

function sourceExcerpt(at) {
  const name = make("p", { class: "file" }, code(`${at.file}:${at.line}:${at.column}`));
  const lines = found.sources[at.file];
  if (!lines || !(at.line in lines))
    return make(
      "div",
      { class: "source" },
      name,
      make("p", { class: "quiet" }, "The file was not available when this page was created."),
    );
  const shown = Object.entries(lines).filter(([line]) => Math.abs(line - at.line) <= SHOWN_AROUND);
  const rows = shown.map(([line, text]) =>
    make(
      "div",
      { class: Number(line) === at.line ? "line here" : "line" },
      make("span", { class: "number" }, line),
      code(text),
    ),
  );
  return make("div", { class: "source" }, name, make("div", { class: "lines", tabindex: 0 }, rows));
}
