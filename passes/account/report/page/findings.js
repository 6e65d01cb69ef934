// View of the avoidable costs: the findings of lint, each with its cause and the line to write.

const FINDING_HEIGHT = 96;

function findingsView(search) {
  const list = new List({
    label: "findings",
    header: headings("avoidable", "cause and fix"),
    height: FINDING_HEIGHT,
    drawRow: findingRow,
    open: (number) => go({ show: `f${number}` }),
    isShown: (number) => address.show === `f${number}`,
  });
  list.show(findingItems(search));
  return {
    element: list.element,
    find: (text) => list.show(findingItems(text)),
    refresh: () => list.redraw(),
    none: found.findings.items.length ? "No finding has these words." : found.findings.none,
  };
}

function findingItems(search) {
  const text = ({ rule, message, fix }) => `${rule} ${message} ${fix}`.toLowerCase();
  return [...found.findings.items.keys()].filter((number) =>
    text(found.findings.items[number]).includes(search.toLowerCase()),
  );
}

function findingRow(number) {
  const { rule, what, fix, received: bytes, held, like, place: at } = found.findings.items[number];
  return make(
    "div",
    {},
    make(
      "span",
      { class: "amount" },
      bytes > 0 && make("b", { title: exact(bytes) }, shownBytes(bytes)),
      held > 0 && make("small", { title: exact(held) }, `${shownBytes(held)} held`),
    ),
    make(
      "span",
      {},
      make("b", { class: "sentence", dir: "auto" }, what),
      make("span", { class: "fix sentence", dir: "auto" }, fix),
      make("small", { class: "quiet" }, placeLink(place(at)), " ", rule, like > 0 && `, and ${inWords(like, "other")} like it`),
    ),
  );
}

function findingDetails(number) {
  const { rule, what, fix, compared, received: bytes, held, like, folded, place: at, notes } = found.findings.items[number];
  const explained = found.collectives.flatMap((group, index) =>
    group.flatMap((each, member) => (each.finding === number ? [alike(index, member, each)] : [])),
  );
  return [
    make("h2", { class: "sentence", dir: "auto" }, what),
    facts(
      bytes > 0 && fact("avoidable", bytesElement(bytes), " received per device and step"),
      held > 0 && fact("memory", bytesElement(held), " per device"),
      like > 0 && fact("count", `${inWords(like + 1, "place")}; this is the costliest`),
      folded > 0 && fact("with the fix", `${inWords(folded, "other finding")} ${folded > 1 ? "go" : "goes"} too`),
      fact("rule", code(rule)),
    ),
    fix && [
      make("h3", {}, "Fix"),
      make("p", { class: "fix sentence", dir: "auto" }, fix),
      make("p", { class: "quiet sentence", dir: "auto" }, compared || "It was not tried."),
    ],
    notes.length > 0 && [
      make("h3", {}, "Cause"),
      make(
        "ul",
        {},
        notes.map(([text, where]) => make("li", { dir: "auto" }, text, " ", placeLink(place(where)))),
      ),
    ],
    at !== NONE && [make("h3", {}, "Source"), sourceExcerpt(place(at))],
    explained.length > 0 && [
      make("h3", {}, inWords(explained.length, "avoidable collective")),
      make("ul", { class: "readers" }, explained.slice(0, 100)),
    ],
  ].flat();
}

// The badge of a collective: avoidable where a finding names it, else the reason that a good layout has it.
function badgeElement({ badge, finding }) {
  if (finding !== NONE) return link({ show: `f${finding}` }, { class: "chip avoidable", title: found.findings.items[finding].what }, "avoidable");
  const [name, text] = found.badges[badge];
  return make("span", { class: "chip", title: `expected: ${text}` }, name);
}

function badgeFact({ badge, finding }) {
  const [name, text] = found.badges[badge];
  return finding === NONE
    ? fact("expected", make("span", { class: "chip" }, name), " ", text)
    : fact("avoidable", link({ show: `f${finding}` }, { dir: "auto" }, found.findings.items[finding].what));
}
